/* A small graph, taken through the stages of planning as far as a test wants.
 *
 * It is planned for a device of the test's own, whatever device the tests run on: what that is told
 * to have decides the plan. */
#ifndef WB_TESTS_EVALUATE_SMALL_H
#define WB_TESTS_EVALUATE_SMALL_H

#include <stdio.h>
#include <string.h>

#include <weber.h>

#include "evaluate/graph.h"
#include "support/scoped.h"

typedef struct small {
    wb_tape tape;
    wb_graph graph;
    wb_backend backend;
    wb_device device;
    char text[1024];
} small;

static inline bool small_takes_calls(void *device, const char *name, const wb_call *call) {
    (void)device, (void)name;
    return call;
}

static inline bool small_takes_names(void *device, const char *name, const wb_call *call) {
    (void)device, (void)name;
    return !call;
}

/* As the CPU is: it takes calls, and nothing by its name; its calls read parts of arrays, its
 * programs of rows have side sums. */
static inline void small_suppose_device(small *s) {
    s->backend = *s->tape.device->backend;
    s->backend.takes = small_takes_calls;
    s->device = *s->tape.device;
    s->device.backend = &s->backend;
    s->device.info.reads_parts = true, s->device.info.side_sum_row = 4096;
    s->device.info.takes_halves = s->device.info.joins_updates = false;
    s->tape.device = &s->device;
}

/* One that has neither. */
static inline void small_suppose_plain_device(small *s) {
    s->device.info.reads_parts = false, s->device.info.side_sum_row = 0;
}

/* One that takes every callable and elementwise operation. */
static inline void small_take_any(small *s) { s->backend.takes = small_takes_names; }

static inline void small_order(small *s, wb_array *root) {
    *s = (small){.text = ""};
    assert_true(wb_tape_walk(&s->tape, 1, &root));
    assert_true(wb_tape_order(&s->tape, 1, &root));
    small_suppose_device(s);
}

/* The graph of a tape that was ordered, with fusion, as if nobody but the plan had the nodes before
 * the root. */
static inline void small_fuse(small *s) {
    for (int64_t i = 0; i < s->tape.count; i++)
        if (!(s->tape.at[i].marks & (WB_TAPE_ROOT | WB_TAPE_LEAF)))
            s->tape.at[i].marks &= (uint8_t)~WB_TAPE_STORED;
    s->graph.fuse = true;
    assert_true(wb_graph_lower(&s->graph, &s->tape) && wb_graph_list_readers(&s->graph) &&
                wb_graph_fuse(&s->graph));
}

static inline void small_place(small *s) {
    small_fuse(s);
    assert_true(wb_graph_place(&s->graph));
}

static inline void small_end(small *s) {
    wb_graph_release(&s->graph);
    wb_tape_end(&s->tape);
}

/* Adds a word to the text. */
__attribute__((format(printf, 2, 3))) static inline void small_say(small *s, const char *format,
                                                                   ...) {
    va_list list;
    const size_t used = strlen(s->text);
    va_start(list, format);
    (void)vsnprintf(s->text + used, sizeof s->text - used, format, list);
    va_end(list);
}

static inline void small_check(const small *s, const char *name, const char *wanted) {
    if (strcmp(s->text, wanted) != 0) fail_msg("%s: \"%s\", not \"%s\"", name, s->text, wanted);
}

#endif
