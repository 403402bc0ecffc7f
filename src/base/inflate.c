/* A small compressed file can claim gigabytes, so there is a limit: WEBER_INFLATE_MIB, else 2 GiB
 * or four times the size of the file, whichever is more. */
#include "base/inflate.h"

#include <stdlib.h>
#include <string.h>

int64_t wb_most_inflated(int64_t file_bytes) {
    enum { DEFAULT_MIB = 2048, TIMES = 4, MOST_DIGITS = 12 };
    const char *text = getenv("WEBER_INFLATE_MIB");
    const size_t digits = text ? strspn(text, "0123456789") : 0;
    const int64_t given = digits && digits <= MOST_DIGITS && !text[digits] ? atoll(text) : 0;
    const int64_t usual = (int64_t)DEFAULT_MIB << 20;
    if (given > 0) return given << 20;
    return file_bytes > usual / TIMES && file_bytes < INT64_MAX / TIMES ? file_bytes * TIMES
                                                                        : usual;
}
