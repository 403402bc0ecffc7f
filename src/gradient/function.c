/* Derivatives that the user gives: functions of arrays, functions on host memory, straight-through
 * values and hooks. All are custom nodes over their value. */
#include <weber/gradient.h>

#include "array/thread.h"
#include "array/use.h"
#include "array/user_call.h"
#include "base/memory.h"
#include "evaluate/evaluate.h"
#include "gradient/walk.h"
#include "ops/build.h"
#include "ops/custom.h"

/* g as a cotangent of x; false with the error recorded. NULL is fine. */
static bool check_cotangent(const char *function, int i, wb_array *g, const wb_array *x) {
    if (!g) return !wb_failed();
    if (!wb_is_usable(g)) return wb_refuse(function, g, "a cotangent") != NULL;
    if ((g->flags & WB_NODE_WEAK || g->dtype == x->dtype) && wb_same_sizes(g, x)) return true;
    (void)wb_fail(g->dtype == x->dtype ? WB_ERROR_SHAPE : WB_ERROR_DTYPE,
                  "%s: cotangent %d must be %s %s, as its array is, got %s %s", function, i,
                  wb_dtype_name((wb_dtype)x->dtype), wb_text_of(x),
                  wb_dtype_name((wb_dtype)g->dtype), wb_text_of(g));
    return false;
}

/* ---- functions of arrays ---- */

static const char *name_of(const wb_function_desc *f) { return f->name ? f->name : "function"; }

/* The status of a user's function; an error if it did not close its scopes. */
static wb_status end_call(wb_user_call *call, const char *name, wb_status said) {
    const bool is_kept = wb_user_call_end(call, name);
    return said == WB_OK && !is_kept ? wb_error_status() : said;
}

static void release_user(void (*release)(void *context), void *context, const char *name) {
    if (!release) return;
    wb_user_call call;
    wb_user_call_begin(&call, "its release");
    release(context);
    (void)wb_user_call_end(&call, name);
}

static void release_function(void *context) {
    wb_function_desc *f = context;
    release_user(f->release, f->context, name_of(f));
    wb_release(f);
}

static void pull_function(void *context, wb_array *o, wb_array *g, const bool *want,
                          wb_array **out) {
    const wb_function_desc *f = context;
    const int count = o->ninputs - 1;
    wb_array **cotangents = wb_alloc((size_t)(count + 1) * sizeof *cotangents);
    if (!cotangents) return;
    wb_user_call call;
    wb_user_call_begin(&call, "the pullback");
    wb_status status = f->pullback(f->context, o, g, count, o->inputs + 1, cotangents);
    status = end_call(&call, name_of(f), status);
    if (status != WB_OK) (void)wb_fail(status, "%s: the pullback failed", name_of(f));
    for (int i = 0; status == WB_OK && i < count; i++)
        if (want[i + 1] && check_cotangent(name_of(f), i, cotangents[i], o->inputs[i + 1]))
            out[i + 1] = cotangents[i];
    wb_release(cotangents);
}

static wb_array *value_of(const wb_function_desc *f, int count, wb_array *const *arrays) {
    wb_user_call call;
    wb_user_call_begin(&call, "the function");
    wb_array *y = f->value(f->context, count, arrays);
    if (!wb_user_call_end(&call, name_of(f))) return NULL;
    if (!y && !wb_failed())
        return wb_fail_null(WB_ERROR_ARGUMENT, "%s: the function returned NULL", name_of(f));
    return wb_is_usable(y) ? y : wb_refuse(name_of(f), y, "the result");
}

static wb_array *function_node(const wb_function_desc *desc, int count, wb_array *const *arrays) {
    wb_array *y = value_of(desc, count, arrays);
    wb_function_desc *f = y ? wb_alloc(sizeof *f) : NULL;
    if (!f) {
        release_user(desc->release, desc->context, name_of(desc));
        return NULL;
    }
    *f = *desc;
    return wb_custom_node(y, count, arrays, pull_function, f, release_function);
}

static bool check_function(const wb_function_desc *f, int count, wb_array *const *arrays) {
    if (f->value && f->pullback) return wb_may_use_arrays(name_of(f), count, arrays);
    (void)wb_fail(WB_ERROR_ARGUMENT, "%s: .%s must be given", name_of(f),
                  f->value ? "pullback" : "value");
    return false;
}

wb_array *wb_function_make(int count, wb_array *const *arrays, wb_function_desc desc) {
    if (check_function(&desc, count, arrays)) return function_node(&desc, count, arrays);
    release_user(desc.release, desc.context, name_of(&desc));
    return NULL;
}

/* ---- functions on host memory ---- */

typedef struct host_function {
    wb_host_function_desc desc;
    const void **numbers; /* of the arrays, while the function is called */
    void **cotangents;
    int begun; /* how many of the arrays are being read */
} host_function;

static const char *host_name(const wb_host_function_desc *f) {
    return f->name ? f->name : "host_function";
}

static void release_host(void *context) {
    host_function *h = context;
    release_user(h->desc.release, h->desc.context, host_name(&h->desc));
    wb_release(h->numbers);
    wb_release(h->cotangents);
    wb_release(h);
}

static bool read_all(host_function *h, int count, wb_array *const *arrays) {
    for (h->begun = 0; h->begun < count; h->begun++)
        if (!(h->numbers[h->begun] = wb_read_begin(arrays[h->begun]))) return false;
    return true;
}

static void end_reading(host_function *h, wb_array *const *arrays) {
    while (h->begun > 0) wb_read_end(arrays[--h->begun]);
}

static size_t bytes_of(const wb_array *x) {
    return (size_t)wb_count(x) * wb_dtype_size((wb_dtype)x->dtype);
}

static void release_numbers(void *context, void *data) {
    (void)context;
    wb_release_aligned(data);
}

/* Memory of the host, all zeros, that an array will take over. */
static void *blank_numbers(size_t size_bytes) {
    char *data = wb_alloc_aligned(size_bytes + 1);
    for (size_t i = 0; data && i < size_bytes; i++) data[i] = 0;
    return data;
}

static wb_array *array_over(void *data, wb_dtype dtype, int ndim, const int64_t *sizes,
                            const wb_array *beside) {
    wb_array *x = wb_adopt_make(dtype, data, release_numbers, NULL, ndim, sizes);
    if (!x || !beside || !beside->device || beside->device == x->device) return x;
    return wb_move_node(beside->device, x);
}

/* An array that is on a device; NULL: none is. */
static const wb_array *placed(int count, wb_array *const *arrays) {
    for (int i = 0; i < count; i++)
        if (arrays[i]->device) return arrays[i];
    return NULL;
}

/* The derivative of a cotangent that the function's pullback computed. */
static void refuse_second(void *context, wb_array *o, wb_array *g, const bool *want,
                          wb_array **out) {
    (void)o, (void)g, (void)want, (void)out;
    (void)wb_fail(WB_ERROR_GRADIENT,
                  "%s: a function on host memory has only a first derivative in reverse mode; "
                  "wb_function, which works with arrays, has all",
                  (const char *)context);
}

static void *constant_text(const char *text) { return (void *)(uintptr_t)text; }

/* The cotangents as arrays that depend on everything that the pullback read. */
static bool give_cotangents(host_function *h, wb_array *o, wb_array *g, wb_array **out) {
    wb_array **read = wb_alloc((size_t)(o->ninputs + 1) * sizeof *read);
    bool good = read != NULL;
    for (int k = 1; good && k < o->ninputs; k++) read[k - 1] = o->inputs[k];
    if (good) read[o->ninputs - 1] = g;
    for (int k = 1; k < o->ninputs; k++) {
        const wb_array *x = o->inputs[k];
        void *data = h->cotangents[k - 1];
        h->cotangents[k - 1] = NULL;
        if (!data) continue;
        wb_array *y = array_over(data, (wb_dtype)x->dtype, x->ndim, x->sizes, x);
        if (good && y)
            out[k] = wb_custom_node(y, o->ninputs, read, refuse_second,
                                    constant_text(host_name(&h->desc)), NULL);
        good = good && out[k];
    }
    wb_release(read);
    return good;
}

/* Computes what the pullback reads, in one plan. */
static bool evaluate_for(wb_array *o, wb_array *g) {
    wb_array **all = wb_alloc((size_t)(o->ninputs + 1) * sizeof *all);
    if (!all) return false;
    for (int k = 0; k < o->ninputs; k++) all[k] = o->inputs[k];
    all[o->ninputs] = g;
    const wb_status status = wb_evaluate_roots(o->ninputs + 1, all);
    wb_release(all);
    return status == WB_OK;
}

static bool call_pullback(host_function *h, wb_array *o, wb_array *g, const bool *want) {
    const int count = o->ninputs - 1;
    for (int i = 0; i < count; i++)
        if (want[i + 1] && !(h->cotangents[i] = blank_numbers(bytes_of(o->inputs[i + 1]))))
            return false;
    const void *y = wb_read_begin(o->inputs[0]), *cotangent = y ? wb_read_begin(g) : NULL;
    wb_status status = cotangent && read_all(h, count, o->inputs + 1) ? WB_OK : WB_ERROR_MEMORY;
    if (status == WB_OK) {
        wb_user_call call;
        wb_user_call_begin(&call, "the pullback");
        status = h->desc.pullback(h->desc.context, count, h->numbers, y, cotangent, h->cotangents);
        status = end_call(&call, host_name(&h->desc), status);
        if (status != WB_OK) (void)wb_fail(status, "%s: the pullback failed", host_name(&h->desc));
    }
    end_reading(h, o->inputs + 1);
    if (cotangent) wb_read_end(g);
    if (y) wb_read_end(o->inputs[0]);
    return status == WB_OK;
}

static void pull_host(void *context, wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    host_function *h = context;
    if (!h->desc.pullback || wb_is_tracing(host_name(&h->desc))) return;
    const bool was_walking = wb_walk_pause();
    const bool good = evaluate_for(o, g) && call_pullback(h, o, g, want);
    wb_walk_go_on(was_walking);
    if (good) (void)give_cotangents(h, o, g, out);
    for (int i = 0; i < o->ninputs - 1; i++) {
        wb_release_aligned(h->cotangents[i]);
        h->cotangents[i] = NULL;
    }
}

static host_function *host_new(const wb_host_function_desc *desc, int count) {
    host_function *h = wb_alloc(sizeof *h);
    if (!h) return NULL;
    h->desc = *desc;
    h->numbers = wb_alloc((size_t)(count + 1) * sizeof *h->numbers);
    h->cotangents = wb_alloc((size_t)(count + 1) * sizeof *h->cotangents);
    if (h->numbers && h->cotangents) return h;
    h->desc.release = NULL;
    release_host(h);
    return NULL;
}

/* The function's value as data; NULL with an error recorded. */
static wb_array *host_value(host_function *h, int count, wb_array *const *arrays) {
    const wb_host_function_desc *f = &h->desc;
    const int64_t bytes = wb_count_sizes(f->ndim, f->sizes) * (int64_t)wb_dtype_size(f->dtype);
    void *result = blank_numbers((size_t)bytes);
    wb_status status = result ? WB_OK : WB_ERROR_MEMORY;
    if (status == WB_OK) status = wb_evaluate_roots(count, arrays);
    if (status == WB_OK && !read_all(h, count, arrays)) status = WB_ERROR_MEMORY;
    if (status == WB_OK) {
        wb_user_call call;
        wb_user_call_begin(&call, "the function");
        status = f->value(f->context, count, h->numbers, result);
        status = end_call(&call, host_name(f), status);
        if (status != WB_OK) (void)wb_fail(status, "%s: the function failed", host_name(f));
    }
    end_reading(h, arrays);
    if (status == WB_OK)
        return array_over(result, f->dtype, f->ndim, f->sizes, placed(count, arrays));
    wb_release_aligned(result);
    return NULL;
}

static bool check_host(const wb_host_function_desc *f, int count, wb_array *const *arrays) {
    const char *name = host_name(f);
    if (wb_is_tracing(name)) return false;
    if (!f->value) {
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: .value must be given", name);
        return false;
    }
    return wb_check_sizes(name, f->ndim, f->sizes) && wb_check_dtype(name, f->dtype) &&
           wb_may_use_arrays(name, count, arrays);
}

wb_array *wb_host_function_make(int count, wb_array *const *arrays, wb_host_function_desc desc) {
    host_function *h = check_host(&desc, count, arrays) ? host_new(&desc, count) : NULL;
    if (!h) {
        release_user(desc.release, desc.context, host_name(&desc));
        return NULL;
    }
    wb_array *y = host_value(h, count, arrays);
    if (y) return wb_custom_node(y, count, arrays, pull_host, h, release_host);
    release_host(h);
    return NULL;
}

/* ---- straight-through ---- */

static void pull_straight(void *context, wb_array *o, wb_array *g, const bool *want,
                          wb_array **out) {
    (void)context, (void)o, (void)want;
    out[1] = wb_cast(g, (wb_dtype)o->inputs[1]->dtype);
}

wb_array *wb_straight_through(wb_array *y, wb_array *x) {
    static const char function[] = "straight_through";
    if (!wb_is_usable(y)) return wb_refuse(function, y, "y");
    if (!wb_is_usable(x)) return wb_refuse(function, x, "x");
    if (!wb_same_sizes(x, y))
        return wb_fail_null(WB_ERROR_SHAPE, "%s: x must have y's sizes %s, got %s", function,
                            wb_text_of(y), wb_text_of(x));
    if (y->dtype != x->dtype) y = wb_cast(y, (wb_dtype)x->dtype);
    return y ? wb_custom_node(y, 1, &x, pull_straight, NULL, NULL) : NULL;
}

/* ---- hooks ---- */

typedef struct hook {
    wb_hook_fn *fn;
    void *context;
} hook;

static void pull_hook(void *context, wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    const hook *h = context;
    (void)want;
    wb_user_call call;
    wb_user_call_begin(&call, "the function");
    wb_array *given = h->fn(h->context, g);
    if (!wb_user_call_end(&call, "hook")) return;
    if (!given && !wb_failed())
        (void)wb_fail(WB_ERROR_ARGUMENT, "hook: the function returned NULL");
    if (given && check_cotangent("hook", 0, given, o->inputs[1])) out[1] = given;
}

wb_array *wb_hook(wb_array *x, wb_hook_fn *fn, void *context) {
    if (!wb_is_usable(x)) return wb_refuse("hook", x, "x");
    if (!fn) return wb_fail_argument_null("hook", "the function");
    hook *h = wb_alloc(sizeof *h);
    if (!h) return NULL;
    *h = (hook){fn, context};
    return wb_custom_node(x, 1, &x, pull_hook, h, wb_release);
}
