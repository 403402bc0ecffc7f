/* Kernels as text. */
#ifndef WB_PROGRAM_TEXT_H
#define WB_PROGRAM_TEXT_H

#include "base/text.h"

/* FNV-1a over a string, continuing from hash (0: a new one). */
uint64_t wb_text_hash(uint64_t hash, const char *string);

#endif
