/* Tokenizers: the input is a tokenizer.json, a zero byte, and a text. What can be read encodes the
 * text twice to the same ids, which are below its size, and decodes them. */
#include "fuzz_path.h"

#include <dlfcn.h>
#include <string.h>

#include "base/utf8.h"

enum { ROOM = 512 };

static void check_decoded(const wb_tokenizer *t, const int32_t *ids, int64_t count) {
    static char text[1 << 16];
    for (int i = 0; i < 2; i++) {
        const int64_t bytes =
            wb_decode(t, ids, count, text, sizeof text, .special = i > 0, .partial = i > 0);
        if (bytes < 0) {
            DEMAND(wb_failed());
            wb_clear_error();
        } else if (bytes < (int64_t)sizeof text) {
            DEMAND(text[bytes] == 0 && wb_utf8_fault(text, (size_t)bytes) < 0);
        }
    }
}

static void check(const wb_tokenizer *t, const char *text, size_t bytes) {
    int32_t ids[ROOM], again[ROOM];
    const int64_t count = wb_encode(t, text, ids, ROOM, (int64_t)bytes);
    if (count < 0) {
        DEMAND(wb_failed());
        wb_clear_error();
        return;
    }
    DEMAND(wb_encode(t, text, again, ROOM, (int64_t)bytes) == count);
    const int64_t written = count < ROOM ? count : ROOM;
    DEMAND(memcmp(ids, again, (size_t)written * sizeof *ids) == 0);
    check_decoded(t, ids, written);
    for (int64_t i = 0; i < written; i++) again[i] = (int32_t)(i * 7 % (wb_tokenizer_size(t) + 1));
    check_decoded(t, again, written);
}

/* Each tokenizer opens the libraries; those that are open are opened soon. */
static void keep_libraries_open(void) {
    static bool is_done;
    if (is_done) return;
    (void)dlopen("libpcre2-8.so.0", RTLD_NOW);
    (void)dlopen("libutf8proc.so.2", RTLD_NOW);
    is_done = true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
    const size_t file_bytes = zero ? (size_t)(zero - data) : size;
    keep_libraries_open();
    const char *path = fuzz_path(data, file_bytes);
    wb_clear_error();
    wb_tokenizer *t = wb_tokenizer_load(path);
    DEMAND((t == NULL) == wb_failed());
    if (!t) DEMAND(wb_error_status() == WB_ERROR_FORMAT || wb_error_status() == WB_ERROR_IO);
    if (t && zero && file_bytes + 1 < size) check(t, (const char *)zero + 1, size - file_bytes - 1);
    wb_free(t);
    wb_clear_error();
    return 0;
}
