/* What a rank reads of the others, by its first byte: greetings, collectives, a text, or the shared
 * memory of a run as another process has left it. All of it is refused with an error or understood;
 * rank 1 of 2 is this one. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz_path.h"
#include "platform/files.h"
#include "ranks/compare.h"
#include "ranks/greeting.h"
#include "ranks/segment.h"
#include "ranks/told.h"

enum { RANKS = 2, SEGMENT_BYTES = 4096 };

static void check_text(const char *text) {
    for (; *text; text++)
        DEMAND(((unsigned char)*text >= ' ' && *text != 0x7f) || *text == '\n' || *text == '\t');
}

static void demand_error(bool has_failed) {
    DEMAND(wb_failed() == has_failed);
    if (has_failed) check_text(wb_error_message());
    wb_clear_error();
}

/* A struct from the bytes, the rest of it zeros. */
static void take(void *to, size_t bytes, const uint8_t *data, size_t size) {
    memset(to, 0, bytes);
    memcpy(to, data, size < bytes ? size : bytes);
}

static void greet(const uint8_t *data, size_t size) {
    const wb_secret secret = {{1, 2}, true};
    wb_greeting all[RANKS];
    take(&all[0], sizeof all[0], data, size);
    DEMAND(wb_greeting_make(&all[1], &secret));
    demand_error(wb_greetings_check(all, RANKS) != WB_OK);
    /* nothing of what rank 0 may send makes this rank's proof its own */
    DEMAND(wb_greeting_proof(&secret, all, RANKS, 0) != wb_greeting_proof(&secret, all, RANKS, 1));
}

static void compare(const uint8_t *data, size_t size) {
    const wb_collective own = {.count = 4, .dtype = WB_F32};
    wb_collective other;
    const void *all[] = {&other, &own};
    take(&other, sizeof other, data, size);
    demand_error(wb_collectives_check(all, RANKS) != WB_OK);
}

static void read_text(const uint8_t *data, size_t size) {
    char text[64];
    char *exact = malloc(size + 1); /* so that a byte too many is seen */
    if (!exact) return;
    memcpy(exact, data, size);
    char *shrunk = size ? realloc(exact, size) : exact;
    wb_copy_told(text, sizeof text, shrunk, size);
    DEMAND(strlen(text) < sizeof text && strlen(text) <= size);
    check_text(text);
    free(shrunk);
}

static void attach(const uint8_t *data, size_t size) {
    static char name[64];
    wb_segment s;
    (void)snprintf(name, sizeof name, "/weber-fuzz-%d", (int)getpid());
    const int file = wb_platform_open_shared(name, O_CREAT | O_RDWR);
    const size_t bytes = size < SEGMENT_BYTES ? size : SEGMENT_BYTES;
    if (file < 0 || write(file, data, bytes) != (ssize_t)bytes) abort();
    const bool is_open = wb_segment_open(&s, name, 1, RANKS);
    demand_error(!is_open);
    if (is_open) {
        for (int r = 0; r < RANKS; r++)
            for (uint32_t step = 0; step < 2; step++)
                wb_segment_window(&s, r, step)[WB_WINDOW_BYTES - 1] = 1;
        if (atomic_load(&s.shared->failure) == 1) atomic_store(&s.shared->failure, 2); /* no wait */
        if (wb_segment_is_told(&s)) demand_error(wb_segment_fail_as_told(&s) != WB_OK);
        wb_segment_tell(&s, "rank 1 gives up");
        DEMAND(wb_segment_is_told(&s));
    }
    wb_segment_close(&s);
    wb_platform_unlink_shared(name);
    (void)close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static void (*const readers[])(const uint8_t *, size_t) = {greet, compare, read_text, attach};
    if (size == 0) return 0;
    readers[data[0] % 4](data + 1, size - 1);
    return 0;
}
