/* A model's parameters as one vector, and a model with other arrays in their places. */
#include <weber/parameters.h>

#include <stdio.h>
#include <string.h>

#include "array/use.h"
#include "array/user_call.h"
#include "base/memory.h"
#include "layers/layer.h"
#include "ops/ops.h"

/* ---- what the parameters are ---- */

typedef struct slot {
    wb_array **place;
    wb_array *old; /* what it held, whose hold is the list's while another one is in */
    int64_t parameter;
    bool is_replaced;
} slot;

typedef struct collector {
    wb_visitor visitor;
    slot *slots;
    int64_t count, capacity;
    wb_ties ties;          /* one number for each slot, in the order of first places */
    wb_array **parameters; /* the array of the first place of each */
    int64_t parameter_count, parameter_capacity;
} collector;

static bool collect(wb_visitor *visitor, const wb_path *path, wb_array **place, bool trainable) {
    collector *c = (collector *)(void *)visitor;
    (void)path;
    if (!trainable || !wb_dtype_is_float((wb_dtype)(*place)->dtype)) return true;
    const int64_t first = wb_ties_find(&c->ties, *place);
    if (!wb_ties_add(&c->ties, *place) || !WB_GROW(c->slots, c->count, c->capacity)) return false;
    slot *s = &c->slots[c->count++];
    *s = (slot){.place = place, .old = *place};
    if (first >= 0) {
        s->parameter = c->slots[first].parameter;
        return true;
    }
    if (!WB_GROW(c->parameters, c->parameter_count, c->parameter_capacity)) return false;
    s->parameter = c->parameter_count;
    c->parameters[c->parameter_count++] = *place;
    return true;
}

/* False with the error recorded; to be released in any case. */
static bool collect_all(collector *c, const char *function, wb_layer *model) {
    *c = (collector){.visitor = {.array = collect}};
    return wb_check_layer(function, model) && wb_visit(&c->visitor, model);
}

static void release(collector *c) {
    wb_ties_release(&c->ties);
    wb_release(c->slots);
    wb_release(c->parameters);
}

/* ---- one vector ---- */

/* x's numbers in memory's order: those of a transpose are not moved. */
static wb_array *flat_of(wb_array *x) { return x ? wb_reshape(x, -1) : NULL; }

static wb_array *join(collector *c) {
    const int64_t none = 0;
    if (c->parameter_count == 0) return wb_full_make(WB_F32, 0, 1, &none);
    wb_array **parts = wb_alloc((size_t)c->parameter_count * sizeof *parts);
    wb_dtype dtype = (wb_dtype)c->parameters[0]->dtype;
    bool good = parts != NULL;
    for (int64_t i = 0; i < c->parameter_count; i++)
        dtype = wb_promote(dtype, (wb_dtype)c->parameters[i]->dtype);
    for (int64_t i = 0; good && i < c->parameter_count; i++) {
        parts[i] = flat_of(wb_cast(wb_scope_add(c->parameters[i]), dtype));
        good = parts[i] != NULL;
    }
    wb_array *flat = good ? wb_concat_make(0, (int)c->parameter_count, parts) : NULL;
    wb_release(parts);
    return flat;
}

wb_array *wb_destructure(wb_layer *model) {
    collector c;
    wb_array *flat = collect_all(&c, "destructure", model) ? join(&c) : NULL;
    release(&c);
    return flat;
}

/* Parts of flat in the sizes of the parameters. */
static bool cut(const char *function, const collector *c, wb_array *flat, wb_array **parts) {
    int64_t wanted = 0, start = 0;
    for (int64_t i = 0; i < c->parameter_count; i++) wanted += wb_count(c->parameters[i]);
    if (!wb_is_usable(flat)) return wb_refuse(function, flat, "the vector") != NULL;
    if (flat->ndim != 1 || wb_count(flat) != wanted) {
        (void)wb_fail(WB_ERROR_SHAPE,
                      "%s: the vector must have %lld numbers, as the model has "
                      "parameters, got %s",
                      function, (long long)wanted, wb_text_of(flat));
        return false;
    }
    for (int64_t i = 0; i < c->parameter_count; i++) {
        const wb_array *x = c->parameters[i];
        const int64_t stop = start + wb_count(x);
        parts[i] = wb_reshape_make(wb_slice(flat, 0, start, stop, 1), x->ndim, x->sizes);
        if (!parts[i]) return false;
        start = stop;
    }
    return true;
}

/* ---- a model with other arrays ---- */

/* The array for slot s: parts[i], in the order of dimensions of that slot. */
static wb_array *part_for(const collector *c, const slot *s, wb_array *const *parts) {
    wb_array *first = c->parameters[s->parameter];
    wb_array *x = wb_cast(parts[s->parameter], (wb_dtype)first->dtype);
    return x ? wb_through_memory(first, x, s->old) : NULL;
}

static bool put_in(collector *c, wb_array *const *parts) {
    int64_t done = 0;
    for (; done < c->count; done++) {
        wb_array *x = part_for(c, &c->slots[done], parts);
        if (!x) break;
        *c->slots[done].place = wb_hold(x);
        c->slots[done].is_replaced = true;
    }
    return done == c->count;
}

/* A slot that got another array meanwhile keeps it. put: what was put in, by slot. */
static void take_out(collector *c, wb_array *const *put) {
    for (int64_t i = 0; i < c->count; i++) {
        slot *s = &c->slots[i];
        if (!s->is_replaced) continue;
        if (*s->place == put[i]) {
            wb_unhold(put[i]);
            *s->place = s->old;
        } else
            wb_unhold(s->old);
    }
}

/* Calls use(context, model) with the parts in their places. False: an error is recorded. */
static bool with_parts(collector *c, wb_layer *model, wb_array *const *parts,
                       void (*use)(void *context, wb_layer *model), void *context) {
    wb_array **put = wb_alloc((size_t)(c->count + 1) * sizeof *put);
    if (!put) return false;
    const bool good = put_in(c, parts);
    for (int64_t i = 0; i < c->count; i++) put[i] = *c->slots[i].place;
    if (good) use(context, model);
    take_out(c, put);
    wb_release(put);
    return good && !wb_failed();
}

/* Calls use with parts of flat. */
static bool with_flat(const char *function, wb_layer *model, wb_array *flat,
                      void (*use)(void *context, wb_layer *model), void *context) {
    collector c;
    bool good = collect_all(&c, function, model);
    wb_array **parts = good ? wb_alloc((size_t)(c.parameter_count + 1) * sizeof *parts) : NULL;
    good = parts && cut(function, &c, flat, parts) && with_parts(&c, model, parts, use, context);
    wb_release(parts);
    release(&c);
    return good;
}

static void clone(void *context, wb_layer *model) { *(wb_layer **)context = wb_clone(model); }

wb_layer *wb_rebuild(wb_layer *model, wb_array *flat) {
    wb_layer *made = NULL;
    if (with_flat("rebuild", model, flat, clone, &made)) return made;
    wb_free(made);
    return NULL;
}

typedef struct application {
    wb_array *x, *y;
} application;

static void apply(void *context, wb_layer *model) {
    application *a = context;
    a->y = wb_apply(model, a->x);
}

wb_array *wb_apply_with(wb_layer *model, wb_array *flat, wb_array *x) {
    application a = {.x = x};
    return with_flat("apply_with", model, flat, apply, &a) ? a.y : NULL;
}

/* ---- arrays of the caller ---- */

typedef struct call {
    wb_model_fn *fn;
    void *context;
    wb_array *result;
} call;

static void call_it(void *context, wb_layer *model) {
    call *c = context;
    wb_user_call of_fn;
    wb_user_call_begin(&of_fn, "the function");
    c->result = c->fn(c->context, model);
    if (!wb_user_call_end(&of_fn, "call_with")) c->result = NULL;
    if (!c->result && !wb_failed())
        (void)wb_fail(WB_ERROR_ARGUMENT, "call_with: the function returned NULL");
}

typedef struct namer {
    wb_visitor visitor;
    const wb_array *wanted;
    char text[WB_PATH_BYTES];
} namer;

static bool name(wb_visitor *visitor, const wb_path *path, wb_array **place, bool trainable) {
    namer *n = (namer *)(void *)visitor;
    (void)trainable;
    if (*place != n->wanted) return true;
    wb_path_text(path, n->text, sizeof n->text);
    return false;
}

static void fail_sizes(const collector *c, wb_layer *model, int i, const wb_array *given) {
    namer n = {.visitor = {.array = name}, .wanted = c->parameters[i]};
    (void)wb_visit(&n.visitor, model);
    (void)wb_fail(WB_ERROR_SHAPE, "call_with: parameter %d, %s, is %s, got %s", i, n.text,
                  wb_text_of(c->parameters[i]), wb_text_of(given));
}

static bool check_arrays(const collector *c, wb_layer *model, int count, wb_array *const *arrays) {
    if (!wb_may_use_arrays("call_with", count, arrays)) return false;
    if (count != c->parameter_count) {
        (void)wb_fail(WB_ERROR_ARGUMENT, "call_with: the model has %lld parameters, got %d arrays",
                      (long long)c->parameter_count, count);
        return false;
    }
    for (int i = 0; i < count; i++) {
        if (wb_same_sizes(arrays[i], c->parameters[i])) continue;
        fail_sizes(c, model, i, arrays[i]);
        return false;
    }
    return true;
}

wb_array *wb_call_with(wb_layer *model, int count, wb_array *const *arrays, wb_model_fn *fn,
                       void *context) {
    collector c;
    call made = {.fn = fn, .context = context};
    if (!fn) return wb_fail_argument_null("call_with", "the function");
    const bool good = collect_all(&c, "call_with", model) &&
                      check_arrays(&c, model, count, arrays) &&
                      with_parts(&c, model, arrays, call_it, &made);
    release(&c);
    return good ? made.result : NULL;
}

/* ---- another type ---- */

typedef struct conversion {
    wb_layer *model;
    wb_dtype dtype;
} conversion;

/* The layer that holds the array at path computes in f32. */
static bool stays_wide(const conversion *c, const char *path) {
    static const char *const names[] = {"BatchNorm", "InstanceNorm", "GroupNorm"};
    char outer[WB_PATH_BYTES];
    const char *dot = strrchr(path, '.');
    (void)snprintf(outer, sizeof outer, "%.*s", dot ? (int)(dot - path) : 0, path);
    const wb_layer *layer = wb_get_layer(c->model, outer);
    for (size_t i = 0; layer && i < sizeof names / sizeof *names; i++)
        if (strcmp(layer->class_->name, names[i]) == 0) return true;
    return false;
}

static wb_array *convert(void *user, const char *path, wb_array *x) {
    const conversion *c = user;
    if (!wb_dtype_is_float((wb_dtype)x->dtype)) return x;
    const bool is_wide = wb_is_half(c->dtype) && stays_wide(c, path);
    return wb_failed() ? NULL : wb_cast(x, is_wide ? WB_F32 : c->dtype);
}

wb_layer *(wb_model_as)(wb_layer *model, wb_dtype dtype) {
    conversion c = {model, dtype};
    if (!wb_check_layer("model_as", model) || !wb_check_dtype("model_as", dtype)) return NULL;
    if (wb_dtype_is_float(dtype)) return wb_map(convert, &c, model);
    return wb_fail_null(WB_ERROR_DTYPE, "model_as: the type must be floating, got %s",
                        wb_dtype_name(dtype));
}
