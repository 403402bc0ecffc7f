/* Where the matrices of a batch begin. */
#ifndef WB_PROGRAM_CALL_BATCH_H
#define WB_PROGRAM_CALL_BATCH_H

#include "program/call_source.h"

/* Defines OFFSETS(product), which declares offset_a, offset_b and offset_c, in elements. Offsets
 * that are sums over a few dimensions (strided or repeated arrays) are computed from words of the
 * block; others are a list in the text. */
void wb_call_batch(wb_call_source *source, const wb_matmul_call *product);

#endif
