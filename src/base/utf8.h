/* Whether bytes are text, and characters as bytes. */
#ifndef WB_BASE_UTF8_H
#define WB_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Index of the first byte that is not valid UTF-8; -1: there is none. */
int64_t wb_utf8_fault(const char *text, size_t size_bytes);

/* Writes the character, which is at most U+10FFFF, and returns how many bytes it has. */
size_t wb_utf8_bytes(uint32_t code, char bytes[4]);

#endif
