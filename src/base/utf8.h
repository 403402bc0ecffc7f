/* Whether bytes are text. */
#ifndef WB_BASE_UTF8_H
#define WB_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Index of the first byte that is not valid UTF-8; -1: there is none. */
int64_t wb_utf8_fault(const char *text, size_t size_bytes);

#endif
