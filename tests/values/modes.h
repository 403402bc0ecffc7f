/* Every rule holds in all ways of evaluating: planned, eagerly, unfused.
 *
 *     int main(void) { return run_in_all_modes(run); }
 *
 * Rows that count plans, stores or donations look at is_eager() and is_unfused() first. */
#ifndef WB_TESTS_VALUES_MODES_H
#define WB_TESTS_VALUES_MODES_H

#include "array/array.h"
#include "support/support.h"

static inline bool is_set(const char *name, const char *value) {
    const char *text = getenv(name);
    return text && strcmp(text, value) == 0;
}
static inline bool is_eager(void) { return is_set("WEBER_EAGER", "1"); }
static inline bool is_unfused(void) { return is_set("WEBER_FUSE", "0"); }

/* True where plans and buffers are those that the rules speak of. */
static inline bool is_planned(void) { return !is_eager() && !is_unfused(); }

/* The program's exit status. To be called before anything of Weber. */
static inline int run_in_all_modes(int (*run)(void)) {
    int failed = run_with(NULL, NULL, run);
    if (compiles_kernels() || is_brief()) return failed != 0;
    failed += run_with("WEBER_EAGER", "1", run);
    failed += run_with("WEBER_FUSE", "0", run);
    return failed != 0;
}

#endif
