/* Settings: what the rows of a layer's table say of the numbers in its struct. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "array/use.h"
#include "layers/layer.h"
#include "ops/ops.h"

bool wb_field_is_array(const wb_field *f) {
    return f->kind == WB_FIELD_ARRAY || f->kind == WB_FIELD_STATE;
}

bool wb_field_is_setting(const wb_field *f) { return f->kind > WB_FIELD_VALUE; }

/* The numbers of an INTEGER, PAIR, SIZES, EACH or PADDING. */
static int64_t *numbers_of(const wb_layer *layer, const wb_field *f) {
    return wb_field_at(layer, f);
}

int wb_field_most(const wb_field *f) { return f->most ? f->most : WB_MOST_SIZES; }

const int64_t *wb_layer_sizes(const wb_layer *layer, int *n) {
    for (int i = 0; i < layer->class_->field_count; i++) {
        const wb_field *f = &layer->class_->fields[i];
        if (f->kind != WB_FIELD_SIZES) continue;
        const int64_t *sizes = numbers_of(layer, f);
        for (*n = 0; *n < wb_field_most(f) && sizes[*n] != 0;) ++*n;
        return sizes;
    }
    *n = 0;
    return NULL;
}

static const wb_array *array_at(const wb_layer *layer, size_t offset) {
    return offset ? *(wb_array *const *)(const void *)((const char *)layer + offset) : NULL;
}

bool wb_is_without(const wb_layer *layer, const wb_field *f) {
    return (f->without && *(const bool *)((const char *)layer + f->without)) ||
           (f->with && !*(const bool *)((const char *)layer + f->with));
}

bool wb_field_is_presence(const wb_layer_class *k, const wb_field *f) {
    for (int i = 0; f->kind == WB_FIELD_BOOL && i < k->field_count; i++)
        if (k->fields[i].with == f->offset) return true;
    return false;
}

/* ---- defaults ---- */

void wb_layer_begin_settings(wb_layer *layer) {
    for (int i = 0; i < layer->class_->field_count; i++) {
        const wb_field *f = &layer->class_->fields[i];
        void *at = wb_field_at(layer, f);
        if (f->kind == WB_FIELD_INTEGER) *(int64_t *)at = (int64_t)f->usual;
        if (f->kind == WB_FIELD_REAL) *(double *)at = f->usual;
        if (f->kind == WB_FIELD_BOOL) *(bool *)at = f->usual != 0;
    }
}

static bool in_range(const wb_field *f, double x) {
    return (f->is_above ? x > f->low : x >= f->low) && (f->high == 0 || x <= f->high);
}

static void set_integer(int64_t *x, int64_t usual) {
    if (*x == 0) *x = usual;
    if (*x == WB_NONE_) *x = 0;
}

static void set_each(const wb_layer *layer, const wb_field *f, int64_t *numbers) {
    int n;
    const int64_t *sizes = wb_layer_sizes(layer, &n);
    wb_spread_all(n, numbers);
    if (f->low > 0) wb_repeat_last(n, numbers); /* else a 0 may be meant */
    for (int i = 0; i < WB_MOST_SIZES; i++) {
        if (i >= n) numbers[i] = 0;
        if (i < n) set_integer(&numbers[i], f->usual >= 0 ? (int64_t)f->usual : sizes[i]);
    }
}

/* The identity is written, and saved, as no activation. */
static void set_activation(wb_activation **activation, double usual) {
    if (*activation == wb_identity && usual == 0) *activation = NULL;
}

/* One number of ins is both. */
static void set_joint(int64_t *x) {
    if (x[1] == 0) x[1] = x[0];
}

/* Each number that is not given is the one before; out is the first. */
static void set_projections(int64_t *x) {
    for (int i = 1; i < 5; i++)
        if (x[i] == 0) x[i] = x[i == 3 ? 0 : i - 1];
    if (x[5] == 0) x[5] = x[0];
}

static void set_name(char *name, const wb_field *f) {
    if (!*name) (void)snprintf(name, WB_NAME_BYTES, "%s", f->choices[0]);
}

static void set_usual(const wb_layer *layer, const wb_field *f) {
    if (f->kind == WB_FIELD_NAME) set_name(wb_field_at(layer, f), f);
    if (f->kind == WB_FIELD_INTEGER)
        set_integer(wb_field_at(layer, f), in_range(f, 0) ? 0 : (int64_t)f->usual);
    if (f->kind == WB_FIELD_JOINT) set_joint(numbers_of(layer, f));
    if (f->kind == WB_FIELD_PROJECTIONS) set_projections(numbers_of(layer, f));
    if (f->kind == WB_FIELD_EACH) set_each(layer, f, numbers_of(layer, f));
    if (f->kind == WB_FIELD_ACTIVATION) set_activation(wb_field_at(layer, f), f->usual);
    if (f->kind != WB_FIELD_REAL) return;
    double *x = wb_field_at(layer, f);
    if (*x == 0) *x = signbit(*x) || in_range(f, 0) ? 0 : f->usual;
}

/* ---- ranges ---- */

void wb_range_text(const wb_field *f, char *text, size_t size) {
    const bool is_real = f->kind == WB_FIELD_REAL;
    if (f->high == 0 && f->low == 1 && !is_real)
        (void)snprintf(text, size, "positive");
    else if (f->high == 0)
        (void)snprintf(text, size, "%s %g", f->is_above ? "above" : "at least", f->low);
    else if (f->is_above)
        (void)snprintf(text, size, "above %g and at most %.10g", f->low, f->high);
    else
        (void)snprintf(text, size, "from %g to %.10g", f->low, f->high);
}

static bool fail_range(const wb_layer *layer, const wb_field *f, const char *name,
                       const char *got) {
    char range[80];
    wb_range_text(f, range, sizeof range);
    (void)wb_fail(WB_ERROR_ARGUMENT, "%s: %s must be %s, got %s", layer->class_->name, name, range,
                  got);
    return false;
}

/* A 0 that counts. */
static int64_t said(int64_t x) { return x == WB_NONE_ ? 0 : x; }

static bool check_integers(const wb_layer *layer, const wb_field *f) {
    static const char *const pair[] = {"in", "out"}, *const joint[] = {"in", "in2", "out"},
                             *const projections[] = {"in", "k_in", "v_in", "qk", "v", "out"};
    const int64_t *x = numbers_of(layer, f);
    const char *const *names = f->kind == WB_FIELD_PAIR          ? pair
                               : f->kind == WB_FIELD_JOINT       ? joint
                               : f->kind == WB_FIELD_PROJECTIONS ? projections
                                                                 : &f->name;
    const int count = names == pair ? 2 : names == joint ? 3 : names == projections ? 6 : 1;
    for (int i = 0; i < count; i++)
        if (!in_range(f, (double)x[i])) {
            char got[24];
            (void)snprintf(got, sizeof got, "%lld", (long long)said(x[i]));
            return fail_range(layer, f, names[i], got);
        }
    return true;
}

/* The first of SIZES has to be there. */
static bool check_list(const wb_layer *layer, const wb_field *f) {
    const int64_t *x = numbers_of(layer, f);
    int n;
    (void)wb_layer_sizes(layer, &n);
    int64_t got[WB_MAX_DIMS] = {0};
    bool good = n > 0;
    for (int i = 0; i < n; i++) {
        got[i] = said(x[i]);
        good = good && in_range(f, (double)x[i]);
    }
    return good || fail_range(layer, f, f->name, wb_sizes_text(n ? n : 1, got));
}

static bool check_padding(wb_layer *layer, const wb_field *f) {
    int64_t *pad = numbers_of(layer, f), *more = pad + WB_MOST_SIZES;
    int n;
    (void)wb_layer_sizes(layer, &n);
    wb_spread_all(n, more);
    if (!wb_check_padding(layer->class_->name, n, pad)) return false;
    for (int i = 0; i < WB_MOST_SIZES; i++) {
        if (i >= n) pad[i] = more[i] = 0;
        if (!wb_window_takes(pad[i], 0))
            return fail_range(layer, f, f->name, wb_sizes_text(n, pad));
        if (wb_window_takes(more[i], -pad[i])) continue;
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "%s: pad + pad_more must be from 0 to 1048575, got %s + %s",
                      layer->class_->name, wb_sizes_text(n, pad), wb_sizes_text(n, more));
        return false;
    }
    return true;
}

/* No setting is infinite: files could not say it. */
static bool check_number(const wb_layer *layer, const wb_field *f, double x) {
    char got[40];
    (void)snprintf(got, sizeof got, "%g", x);
    if (!in_range(f, x)) return fail_range(layer, f, f->name, got);
    if (!isinf(x)) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT, "%s: %s must be finite, got %s", layer->class_->name, f->name,
                  got);
    return false;
}

static bool check_real(const wb_layer *layer, const wb_field *f) {
    return check_number(layer, f, *(const double *)wb_field_at(layer, f));
}

int wb_count_reals(const double *x) {
    int n = 0;
    while (n < WB_MOST_SIZES && x[n] != 0) n++;
    return n;
}

static bool check_reals(const wb_layer *layer, const wb_field *f) {
    const double *x = wb_field_at(layer, f);
    const int n = wb_count_reals(x);
    for (int i = 0; i < n; i++)
        if (!check_number(layer, f, x[i])) return false;
    if (!f->instead) return true;
    const double *other = (const void *)((const char *)layer + f->instead);
    const int others = wb_count_reals(other);
    if ((n == 0) != (others == 0)) return true;
    const char *name = "";
    for (int i = 0; i < layer->class_->field_count; i++)
        if (layer->class_->fields[i].offset == f->instead) name = layer->class_->fields[i].name;
    (void)wb_fail(WB_ERROR_ARGUMENT, "%s: either %s or %s must be given, got %s",
                  layer->class_->name, name, f->name, n ? "both" : "none");
    return false;
}

static bool check_dims(const wb_layer *layer, const wb_field *f) {
    const unsigned dims = *(const unsigned *)wb_field_at(layer, f);
    if (dims < WB_DIM(WB_MAX_DIMS)) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT, "%s: %s must be among WB_DIM(0) to WB_DIM(%d), got 0x%x",
                  layer->class_->name, f->name, WB_MAX_DIMS - 1, dims);
    return false;
}

static bool check_choice(const wb_layer *layer, const wb_field *f) {
    const int x = *(const int *)wb_field_at(layer, f);
    int count = 0;
    while (f->choices[count]) count++;
    if (x >= 0 && x < count) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT, "%s: %s must be from 0 to %d, got %d", layer->class_->name,
                  f->name, count - 1, x);
    return false;
}

int wb_choice_named(const wb_field *f, const char *name) {
    name += *name == ':';
    for (int i = 0; f->choices[i]; i++) {
        const char *at = f->choices[i] + (f->choices[i][0] == ':');
        for (size_t length = strcspn(at, "|"); length; length = strcspn(at, "|")) {
            if (strlen(name) == length && strncmp(at, name, length) == 0) return i;
            at += length + (at[length] == '|');
        }
    }
    return -1;
}

const wb_field *wb_field_presence(const wb_layer_class *k, const wb_field *f) {
    for (int i = 0; f->with && i < k->field_count; i++)
        if (k->fields[i].offset == f->with) return &k->fields[i];
    return NULL;
}

/* What is given is there; it is an error beside the words that it is not. */
static bool check_array(wb_layer *layer, const wb_field *f) {
    const wb_layer_class *k = layer->class_;
    const wb_field *presence = wb_field_presence(k, f);
    const wb_array *given = *wb_field_array(layer, f);
    if (!presence || !given || !wb_is_without(layer, f)) return true;
    if (presence->usual == 0) {
        *(bool *)wb_field_at(layer, presence) = true;
        return true;
    }
    (void)wb_fail(WB_ERROR_ARGUMENT, "%s: %s is false, but %s %s was given", k->name,
                  presence->name, f->name, wb_text_of(given));
    return false;
}

static bool check_field(wb_layer *layer, const wb_field *f) {
    if (array_at(layer, f->given_by)) return true;
    switch (f->kind) {
    case WB_FIELD_ARRAY:
    case WB_FIELD_STATE:
        return check_array(layer, f);
    case WB_FIELD_INTEGER:
    case WB_FIELD_PAIR:
    case WB_FIELD_JOINT:
    case WB_FIELD_PROJECTIONS:
        return check_integers(layer, f);
    case WB_FIELD_REAL:
        return check_real(layer, f);
    case WB_FIELD_REALS:
        return check_reals(layer, f);
    case WB_FIELD_CHOICE:
        return check_choice(layer, f);
    case WB_FIELD_SIZES:
    case WB_FIELD_EACH:
        return check_list(layer, f);
    case WB_FIELD_PADDING:
        return check_padding(layer, f);
    case WB_FIELD_DIMS:
        return check_dims(layer, f);
    default:
        return true;
    }
}

/* Numbers of EACH and PADDING for dimensions that the layer does not have. */
static bool check_surplus(const wb_layer *layer, const wb_field *f) {
    const int lists = f->kind == WB_FIELD_EACH ? 1 : f->kind == WB_FIELD_PADDING ? 2 : 0;
    int n;
    (void)wb_layer_sizes(layer, &n);
    for (int list = 0; n > 0 && list < lists; list++) {
        const int64_t *x = numbers_of(layer, f) + list * WB_MOST_SIZES;
        int64_t got[WB_MOST_SIZES];
        int count = 0;
        for (int i = 0; i < WB_MOST_SIZES; i++) {
            got[i] = said(x[i]);
            if (x[i] != 0 && x[i] != WB_SAME_) count = i + 1;
        }
        if (count <= n) continue;
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: %s must have at most %d number%s, got %s",
                      layer->class_->name, list ? "pad_more" : f->name, n, n == 1 ? "" : "s",
                      wb_sizes_text(count, got));
        return false;
    }
    return true;
}

/* in and out of an array (out, in), a length, sizes. */
static void derive_field(wb_layer *layer, const wb_field *f, const wb_array *x) {
    const int count = f->kind == WB_FIELD_INTEGER ? 1 : f->kind == WB_FIELD_PAIR ? 2 : 0;
    int64_t *numbers = wb_field_at(layer, f);
    if (f->kind == WB_FIELD_SIZES && numbers[0] == 0 && x->ndim <= wb_field_most(f))
        memcpy(numbers, x->sizes, (size_t)x->ndim * sizeof *numbers);
    for (int i = 0; x->ndim == count && i < count; i++)
        if (numbers[i] == 0) numbers[i] = x->sizes[count - 1 - i];
}

void wb_layer_derive(wb_layer *layer) {
    const wb_layer_class *k = layer->class_;
    if (k->derive) k->derive(layer);
    for (int i = 0; !k->derive && i < k->field_count; i++) {
        const wb_array *x = array_at(layer, k->fields[i].given_by);
        if (x) derive_field(layer, &k->fields[i], x);
    }
}

bool wb_layer_check_settings(wb_layer *layer) {
    const wb_layer_class *k = layer->class_;
    for (int i = 0; i < k->field_count; i++)
        if (!check_surplus(layer, &k->fields[i]) || !check_field(layer, &k->fields[i]))
            return false;
    return true;
}

static bool complete(wb_layer *layer) {
    const wb_layer_class *k = layer->class_;
    wb_layer_derive(layer);
    for (int i = 0; i < k->field_count; i++) {
        const wb_field *f = &k->fields[i];
        if (!check_surplus(layer, f)) return false;
        set_usual(layer, f);
        if (!check_field(layer, f)) return false;
    }
    return !k->complete || k->complete(layer);
}

/* ---- making ---- */

/* Where memory ran out; other errors say what is wrong with which setting. */
static void name_in_error(const wb_layer *layer, uint64_t errors) {
    char text[160];
    if (wb_error_status() != WB_ERROR_MEMORY) return;
    wb_layer_describe(layer, true, text, sizeof text);
    (void)wb_error_prefix(errors, "%s: ", text);
}

wb_layer *wb_layer_complete(wb_layer *layer) {
    if (!layer || !wb_check_layer("wb_layer_complete", layer)) return NULL;
    if (!wb_layer_own_children(layer) || !wb_scope_begin()) {
        wb_free(layer);
        return NULL;
    }
    const uint64_t errors = wb_error_count();
    const bool is_complete = complete(layer);
    name_in_error(layer, errors);
    return wb_layer_finish(layer, !is_complete);
}

/* Holds the arrays that were given. One that was released, or is another thread's, leaves the
 * layer. */
static bool hold_given(wb_layer *layer) {
    const wb_layer_class *k = layer->class_;
    bool good = true;
    for (int i = 0; i < k->field_count; i++) {
        wb_array **slot = wb_field_array(layer, &k->fields[i]);
        if (!wb_field_is_array(&k->fields[i]) || !*slot) continue;
        if (wb_may_use_array(k->name, *slot, k->fields[i].name))
            (void)wb_hold(*slot);
        else
            *slot = NULL, good = false;
    }
    return good;
}

wb_layer *wb_layer_of_desc(const wb_layer_class *k, const void *desc, size_t desc_bytes) {
    return wb_check_start(k->name, *(const char *)desc) ? wb_layer_make(k, desc, desc_bytes) : NULL;
}

wb_layer *wb_layer_make(const wb_layer_class *k, const void *desc, size_t desc_bytes) {
    wb_layer *layer = wb_layer_new(k);
    if (!layer) return NULL;
    memcpy((char *)layer + sizeof *layer, desc, desc_bytes);
    if (hold_given(layer)) return wb_layer_complete(layer);
    (void)wb_layer_own_children(layer); /* which go with it */
    wb_free(layer);
    return NULL;
}

static const wb_field *field_of(const wb_layer *layer, wb_array *const *slot) {
    for (int i = 0; i < layer->class_->field_count; i++)
        if (wb_field_at(layer, &layer->class_->fields[i]) == slot) return &layer->class_->fields[i];
    return NULL;
}

bool wb_layer_fill(wb_layer *layer, wb_array **slot, wb_init *init, wb_dtype dtype, int ndim,
                   const int64_t *sizes) {
    const wb_field *f = field_of(layer, slot);
    const char *name = layer->class_->name;
    if (wb_is_without(layer, f)) return true;
    if (!*slot && wb_dtype_size(dtype) && !wb_dtype_is_float(dtype)) {
        (void)wb_fail(WB_ERROR_DTYPE, "%s: dtype must be floating, got %s", name,
                      wb_dtype_name(dtype));
        return false;
    }
    if (!*slot) *slot = wb_hold(init(ndim, sizes, dtype));
    const wb_array *x = *slot;
    if (!x) return false;
    if (x->ndim != ndim)
        (void)wb_fail(WB_ERROR_SHAPE, "%s: %s must have %d dimension%s, got %s", name, f->name,
                      ndim, ndim == 1 ? "" : "s", wb_text_of(x));
    else if (memcmp(x->sizes, sizes, (size_t)ndim * sizeof *sizes) != 0)
        (void)wb_fail(WB_ERROR_SHAPE, "%s: %s must be %s, got %s", name, f->name,
                      wb_sizes_text(ndim, sizes), wb_text_of(x));
    else if (!wb_dtype_is_float((wb_dtype)x->dtype))
        (void)wb_fail(WB_ERROR_DTYPE, "%s: %s must be floating, got %s", name, f->name,
                      wb_dtype_name((wb_dtype)x->dtype));
    else
        return true;
    return false;
}
