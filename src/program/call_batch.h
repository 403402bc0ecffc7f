/* Where the matrices of a batch begin. */
#ifndef WB_PROGRAM_CALL_BATCH_H
#define WB_PROGRAM_CALL_BATCH_H

#include "program/call_source.h"

/* OFFSETS(product): declares offset_a, offset_b and offset_c, in elements. Lists that are sums over
 * a few dimensions, as they come from strided or repeated arrays, become words; any others stand in
 * the text. */
void wb_call_batch(wb_call_source *source, const wb_matmul_call *product);

#endif
