/* The question that every public function asks of each object that it is given: is it one of this
 * class, was it not released, does it belong to this thread? For arrays, wb_is_usable (array.h) is
 * the same. tests/calls/test_misuse.c finds a function that does not ask. */
#ifndef WB_ARRAY_USE_H
#define WB_ARRAY_USE_H

#include "array/array.h"

/* True if so; else an error names the function and `what`, "the loader". An object that belongs to
 * no thread yet is this one's afterwards. NULL is none, without a further error if one is
 * pending. */
bool wb_may_use(const char *function, const void *object, const wb_class *klass, const char *what);

/* Of an array. */
bool wb_may_use_array(const char *function, const wb_array *x, const char *what);
/* The same, and NULL is fine: it was not given. */
static inline bool wb_may_use_given(const char *function, const wb_array *x, const char *what) {
    return !x || wb_may_use_array(function, x, what);
}
/* For questions, which answer about NULL without an error: false for it. */
static inline bool wb_may_ask(const char *function, const wb_array *x) {
    return x && wb_may_use_array(function, x, "x");
}
/* A list of arrays, none of them NULL: "array 3" of it. */
bool wb_may_use_arrays(const char *function, int64_t count, wb_array *const *arrays);

/* The error of what belongs to another context; remedy: of another thread's, what brings it to
 * this one, or NULL. Returns NULL. */
void *wb_fail_foreign(const char *function, uint32_t owner, const char *what, const char *remedy);

/* Any object of Weber's; `what` NULL: called by its class. */
bool wb_may_use_any(const char *function, const void *object, const char *what);

#endif
