/* How much compressed files may become. */
#ifndef WB_BASE_INFLATE_H
#define WB_BASE_INFLATE_H

#include <stdint.h>

/* Bytes that a compressed file of this size may inflate to, all in all: WEBER_INFLATE_MIB
 * mebibytes, by default 2048 or four times the file, whichever is more. A file may not claim the
 * memory of the machine: zeros shrink to a thousandth. */
int64_t wb_most_inflated(int64_t file_bytes);

/* For messages: how to have more. */
#define WB_INFLATE_ADVICE "WEBER_INFLATE_MIB sets the limit, in mebibytes"

#endif
