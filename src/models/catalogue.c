#include "models/catalogue.h"

#include <string.h>

#include "models/flux.h"

/* ---- Flux.state's values ---- */

static wb_record *empty(wb_arena *arena) { return wb_record_new(arena, WB_RECORD_LIST); }

static wb_record *integer(wb_arena *arena, int64_t value) {
    wb_record *r = wb_record_new(arena, WB_RECORD_INTEGER);
    if (r) r->integer = value;
    return r;
}

static wb_record *real(wb_arena *arena, double value) {
    wb_record *r = wb_record_new(arena, WB_RECORD_REAL);
    if (r) r->real = value;
    return r;
}

static wb_record *boolean(wb_arena *arena, bool value) {
    wb_record *r = wb_record_new(arena, WB_RECORD_BOOL);
    if (r) r->boolean = value;
    return r;
}

static wb_record *tuple(wb_arena *arena, int count, const int64_t *numbers) {
    wb_record *r = wb_record_new(arena, WB_RECORD_LIST);
    if (!r || !wb_record_room(arena, r, count, false)) return NULL;
    for (int i = 0; i < count; i++)
        if (!(r->children[i] = integer(arena, numbers[i]))) return NULL;
    return r;
}

static int spatial(const int64_t *kernel) {
    int n = 0;
    while (n < 3 && kernel[n]) n++;
    return n;
}

/* pad = 1 and SamePad() are kept before and after each dimension, pad = (1, 2) is kept as it is. */
static wb_record *padding(wb_arena *arena, int n, const int64_t *pad, const int64_t *more,
                          bool same_pad) {
    int64_t both[6];
    bool is_whole = same_pad, is_equal = true;
    for (int i = 0; i < n; i++) {
        both[2 * i] = pad[i], both[2 * i + 1] = pad[i] + more[i];
        is_whole = is_whole || more[i] != 0;
        is_equal = is_equal && pad[i] == pad[0];
    }
    return is_whole || is_equal ? tuple(arena, 2 * n, both) : tuple(arena, n, pad);
}

static wb_record *function_value(wb_arena *arena, const wb_layer *layer, const char *field) {
    (void)layer, (void)field;
    return empty(arena);
}

static wb_record *conv_value(wb_arena *arena, const wb_layer *layer, const char *field) {
    const wb_conv_desc d = wb_conv_desc_of(layer);
    const int n = spatial(d.kernel);
    if (strcmp(field, "stride") == 0) return tuple(arena, n, d.stride);
    if (strcmp(field, "dilation") == 0) return tuple(arena, n, d.dilation);
    if (strcmp(field, "pad") == 0) return padding(arena, n, d.pad, d.pad_more, d.same_pad);
    if (strcmp(field, "groups") == 0) return integer(arena, d.groups);
    return empty(arena);
}

static wb_record *pool_value(wb_arena *arena, const wb_layer *layer, const char *field) {
    const wb_pool_desc d = wb_pool_desc_of(layer);
    const int n = spatial(d.kernel);
    if (strcmp(field, "pad") == 0) return padding(arena, n, d.pad, d.pad_more, false);
    return tuple(arena, n, strcmp(field, "k") == 0 ? d.kernel : d.stride);
}

/* nothing: automatic. */
static wb_record *mode(wb_arena *arena, const wb_layer *layer) {
    return layer->mode_ == WB_MODE_AUTO ? wb_record_new(arena, WB_RECORD_NULL)
                                        : boolean(arena, layer->mode_ == WB_MODE_TRAIN);
}

static wb_record *dropout_value(wb_arena *arena, const wb_layer *layer, const char *field) {
    const wb_dropout_desc d = wb_dropout_desc_of(layer);
    int64_t dims[WB_MAX_DIMS];
    if (strcmp(field, "active") == 0) return mode(arena, layer);
    if (strcmp(field, "dims") == 0) {
        const int count = wb_dims_numbers(d.dims, dims);
        return count == 1 ? integer(arena, dims[0]) : tuple(arena, count, dims);
    }
    return strcmp(field, "p") == 0 ? real(arena, d.p) : empty(arena);
}

static wb_record *batchnorm_value(wb_arena *arena, const wb_layer *layer, const char *field) {
    const wb_batchnorm_desc d = wb_batchnorm_desc_of(layer);
    if (strcmp(field, "ϵ") == 0) return real(arena, d.eps);
    if (strcmp(field, "momentum") == 0) return real(arena, d.momentum);
    if (strcmp(field, "affine") == 0) return boolean(arena, !d.no_affine);
    if (strcmp(field, "track_stats") == 0) return boolean(arena, !d.no_track_stats);
    if (strcmp(field, "active") == 0) return mode(arena, layer);
    return strcmp(field, "chs") == 0 ? integer(arena, d.channels) : empty(arena);
}

/* ---- text ---- */

static void print_dropout(FILE *file, const wb_layer *layer) {
    const wb_dropout_desc d = wb_dropout_desc_of(layer);
    char p[40], dims[128];
    wb_real_text(d.p, p, sizeof p);
    wb_dims_text(d.dims, dims, sizeof dims);
    (void)fprintf(file, "Dropout(%s%s)", p, dims);
}

static void print_batchnorm(FILE *file, const wb_layer *layer) {
    char text[300];
    wb_batchnorm_text(layer, wb_real_text, text, sizeof text);
    (void)fputs(text, file);
}

/* ---- layers ---- */

static wb_layer *make_chain(const wb_part *p) {
    const wb_record *layers = p->record ? wb_part_field(p, "layers") : NULL;
    return wb_part_container(p, layers, "layers", false);
}

static wb_layer *make_dense(const wb_part *p) {
    static const char *const keys[] = {"bias", NULL};
    wb_dense_desc d = {.start_ = 0};
    if (p->term && !wb_part_has_only(p, 2, keys)) return NULL;
    d.weight = wb_part_weight(p, "weight", 2);
    if (!d.weight || !wb_part_bias(p, &d.bias) || !wb_part_activation(p, 1, "σ", &d.activation))
        return NULL;
    d.no_bias = !d.bias;
    if (p->term && !wb_part_pair_is(p, 0, d.weight->sizes[1], d.weight->sizes[0])) return NULL;
    return wb_dense_make(d);
}

/* One number for all dimensions, or one for each; what is not said stays. */
static bool each(const wb_part *p, const char *name, int n, int64_t *numbers) {
    int64_t given[3];
    const int count = wb_part_numbers(p, name, n, given);
    if (count > 1 && count < n) {
        (void)wb_part_fail(p, WB_ERROR_FORMAT, "%d numbers for %s in %d dimensions", count, name,
                           n);
        return false;
    }
    for (int i = 0; count > 0 && i < n; i++) numbers[i] = given[count == 1 ? 0 : i];
    return count >= 0;
}

/* One number, one for each dimension, or two for each. */
static bool padding_of(const wb_part *p, int n, int64_t *pad, int64_t *more) {
    int64_t given[6];
    const int count = wb_part_numbers(p, "pad", 2 * n, given);
    if (count > 1 && count != n && count != 2 * n) {
        (void)wb_part_fail(p, WB_ERROR_FORMAT, "%d numbers for pad in %d dimensions", count, n);
        return false;
    }
    for (int i = 0; count > 0 && i < n; i++) {
        const bool is_whole = count == 2 * n;
        pad[i] = given[is_whole ? 2 * i : count == 1 ? 0 : i];
        more[i] = is_whole ? given[2 * i + 1] - pad[i] : 0;
    }
    return count >= 0;
}

static bool kernel_is(const wb_part *p, int n, const int64_t *sizes) {
    int64_t kernel[3];
    const wb_term *t = wb_term_at(p->term, 0);
    if (t && wb_numbers_of(p, t, NULL, 3, kernel) == n &&
        memcmp(kernel, sizes, (size_t)n * sizeof *sizes) == 0)
        return true;
    return wb_part_fail(p, WB_ERROR_SHAPE, "another kernel is written than the arrays have") !=
           NULL;
}

static bool conv_settings(const wb_part *p, int n, wb_conv_desc *d) {
    return each(p, "stride", n, d->stride) && each(p, "dilation", n, d->dilation) &&
           padding_of(p, n, d->pad, d->pad_more) && each(p, "groups", 1, &d->groups);
}

static bool conv_sizes(const wb_part *p, int n, wb_conv_desc *d) {
    const int64_t *sizes = d->weight->sizes;
    for (int i = 0; i < n; i++) d->kernel[i] = sizes[i];
    d->out = sizes[n + 1];
    if (d->groups == 0) d->groups = 1;
    if (__builtin_mul_overflow(sizes[n], d->groups, &d->in))
        return wb_part_fail(p, WB_ERROR_SHAPE, "%lld groups", (long long)d->groups) != NULL;
    return !p->term || (kernel_is(p, n, sizes) && wb_part_pair_is(p, 1, d->in, d->out));
}

static wb_layer *make_convolution(const wb_part *p, wb_layer *(*make)(wb_conv_desc desc)) {
    static const char *const keys[] = {"stride", "pad", "dilation", "groups", "bias", NULL};
    wb_conv_desc d = {.exact_ = true};
    if (p->term && !wb_part_has_only(p, 3, keys)) return NULL;
    d.weight = wb_part_weight(p, "weight", 0);
    if (!d.weight) return NULL;
    const int n = d.weight->ndim - 2;
    if (n < 1 || n > 3)
        return wb_part_fail(p, WB_ERROR_SHAPE, "its weight is %s", wb_text_of(d.weight));
    if (!conv_settings(p, n, &d) || !conv_sizes(p, n, &d) || !wb_part_bias(p, &d.bias) ||
        !wb_part_activation(p, 2, "σ", &d.activation))
        return NULL;
    d.no_bias = !d.bias;
    return make(d);
}

static wb_layer *make_conv(const wb_part *p) { return make_convolution(p, wb_conv_make); }
static wb_layer *make_cross_cor(const wb_part *p) { return make_convolution(p, wb_cross_cor_make); }

static wb_layer *make_pool(const wb_part *p, wb_layer *(*make)(wb_pool_desc desc)) {
    static const char *const keys[] = {"stride", "pad", NULL};
    wb_pool_desc d = {.exact_ = true};
    if (p->term && !wb_part_has_only(p, 1, keys)) return NULL;
    const wb_term *t = p->term ? wb_term_at(p->term, 0) : NULL;
    const wb_record *k = p->term ? NULL : wb_part_field(p, "k");
    if (!t && !k) return wb_part_fail(p, WB_ERROR_FORMAT, "it has no window");
    const int n = wb_numbers_of(p, t, k, 3, d.kernel);
    if (n < 0 || !each(p, "stride", n, d.stride) || !padding_of(p, n, d.pad, d.pad_more))
        return NULL;
    return make(d);
}

static wb_layer *make_maxpool(const wb_part *p) { return make_pool(p, wb_maxpool_make); }
static wb_layer *make_meanpool(const wb_part *p) { return make_pool(p, wb_meanpool_make); }

static wb_layer *make_flatten(const wb_part *p) {
    (void)p;
    return wb_flatten();
}

static bool probability(const wb_part *p, double *probability) {
    const wb_term *t = p->term ? wb_term_at(p->term, 0) : NULL;
    const wb_record *r = p->term ? NULL : wb_part_field(p, "p");
    if (t && t->kind <= WB_TERM_REAL)
        *probability = t->kind == WB_TERM_REAL ? t->real : (double)t->integer;
    else if (r && (r->kind == WB_RECORD_REAL || r->kind == WB_RECORD_INTEGER))
        *probability = wb_record_real(r);
    else
        return wb_part_fail(p, WB_ERROR_FORMAT, "its probability is no number") != NULL;
    return true;
}

/* All of them; Flux 0.8 had no dims, and active in their place. */
static bool is_all_dims(const wb_record *r) {
    return r->kind == WB_RECORD_BOOL ||
           (r->kind == WB_RECORD_STRUCT && strcmp(wb_flux_last(r->type), "Colon") == 0);
}

static bool dims_of(const wb_part *p, unsigned *dims) {
    int64_t numbers[WB_MAX_DIMS];
    const wb_record *r = p->term ? NULL : wb_part_field(p, "dims");
    if (r && is_all_dims(r)) return true;
    const int count = wb_part_numbers(p, "dims", WB_MAX_DIMS, numbers);
    for (int i = 0; i < count; i++) {
        if (numbers[i] < 1 || numbers[i] > WB_MAX_DIMS)
            return wb_part_fail(p, WB_ERROR_FORMAT, "dims are from 1 to %d", WB_MAX_DIMS) != NULL;
        *dims |= WB_DIM(numbers[i] - 1);
    }
    return count >= 0;
}

/* testmode! and trainmode! are kept; before there was a third, true was what every layer began
 * with, and the mode a field with another name now. */
static wb_layer *in_mode(const wb_part *p, wb_layer *layer, const char *old_name,
                         bool has_automatic) {
    const wb_record *active = wb_part_field(p, "active");
    if (!active) active = wb_part_field(p, old_name);
    if (!layer || !active || active->kind != WB_RECORD_BOOL) return layer;
    if (!active->boolean) (void)wb_test_mode(layer);
    if (active->boolean && has_automatic) (void)wb_train_mode(layer);
    return layer;
}

static wb_layer *make_dropout(const wb_part *p) {
    static const char *const keys[] = {"dims", NULL};
    wb_dropout_desc d = {.start_ = 0};
    if (p->term && !wb_part_has_only(p, 1, keys)) return NULL;
    if (!probability(p, &d.p) || !dims_of(p, &d.dims)) return NULL;
    return in_mode(p, wb_dropout_make(d), "dims", wb_part_field(p, "rng") != NULL);
}

/* key=false is written if and only if the arrays are not there. */
static bool agrees(const wb_part *p, const char *key, bool are_there) {
    const wb_term *t = p->term ? wb_term_keyed(p->term, key) : NULL;
    const bool is_written = !t || (t->kind == WB_TERM_BOOL && t->integer);
    if (!p->term || is_written == are_there) return true;
    return wb_part_fail(p, WB_ERROR_FORMAT, "its arrays are %s, and %s=%s is written",
                        are_there ? "there" : "not there", key,
                        is_written ? "true" : "false") != NULL;
}

static bool batchnorm_arrays(const wb_part *p, wb_batchnorm_desc *d) {
    if (!wb_part_vector(p, "β", &d->beta) || !wb_part_vector(p, "γ", &d->gamma) ||
        !wb_part_vector(p, "μ", &d->mean) || !wb_part_vector(p, "σ²", &d->variance))
        return false;
    d->no_affine = !d->gamma;
    d->no_track_stats = !d->mean;
    if (!d->beta != !d->gamma || !d->mean != !d->variance)
        return wb_part_fail(p, WB_ERROR_FORMAT, "it has one of β and γ, or of μ and σ²") != NULL;
    return agrees(p, "affine", d->gamma) && agrees(p, "track_stats", d->mean);
}

/* The channels are written, or those of an array. */
static bool batchnorm_channels(const wb_part *p, wb_batchnorm_desc *d) {
    const wb_term *t = p->term ? wb_term_at(p->term, 0) : NULL;
    const wb_record *r = p->term ? NULL : wb_part_field(p, "chs");
    const wb_array *x = d->gamma ? d->gamma : d->mean;
    if (t || r) return wb_numbers_of(p, t, r, 1, &d->channels) == 1;
    if (x) d->channels = x->sizes[0];
    return x || wb_part_fail(p, WB_ERROR_FORMAT, "it says no number of channels");
}

static wb_layer *make_batchnorm(const wb_part *p) {
    static const char *const keys[] = {"affine", "track_stats", "eps", "momentum", NULL};
    wb_batchnorm_desc d = {.eps = WB_BATCHNORM_EPS, .momentum = WB_BATCHNORM_MOMENTUM};
    if (p->term && !wb_part_has_only(p, 2, keys)) return NULL;
    if (!batchnorm_arrays(p, &d) || !batchnorm_channels(p, &d) ||
        !wb_part_activation(p, 1, "λ", &d.activation) || !wb_part_real(p, "eps", "ϵ", &d.eps) ||
        !wb_part_real(p, "momentum", "momentum", &d.momentum))
        return NULL;
    if (d.eps == 0 || d.momentum == 0) /* which would be the default in a desc */
        return wb_part_fail(p, WB_ERROR_UNSUPPORTED, "its eps or momentum is 0");
    return in_mode(p, wb_batchnorm_make(d), "affine", wb_part_field(p, "track_stats") != NULL);
}

/* ---- the table ---- */

static const wb_layer_row rows[] = {
    {.name = "Chain", .layer_class = &wb_chain_class, .fields = {"layers"}, .make = make_chain},
    {.name = "Dense",
     .layer_class = &wb_dense_class,
     .fields = {"weight", "bias", "σ"},
     .make = make_dense,
     .value = function_value},
    {.name = "Conv",
     .layer_class = &wb_conv_class,
     .fields = {"σ", "weight", "bias", "stride", "pad", "dilation", "groups"},
     .make = make_conv,
     .value = conv_value},
    {.name = "CrossCor",
     .layer_class = &wb_cross_cor_class,
     .fields = {"σ", "weight", "bias", "stride", "pad", "dilation"},
     .make = make_cross_cor,
     .value = conv_value},
    {.name = "MaxPool",
     .layer_class = &wb_maxpool_class,
     .fields = {"k", "pad", "stride"},
     .make = make_maxpool,
     .value = pool_value},
    {.name = "MeanPool",
     .layer_class = &wb_meanpool_class,
     .fields = {"k", "pad", "stride"},
     .make = make_meanpool,
     .value = pool_value},
    {.name = "Dropout",
     .layer_class = &wb_dropout_class,
     .fields = {"p", "dims", "active", "rng"},
     .make = make_dropout,
     .value = dropout_value,
     .print = print_dropout},
    {.name = "BatchNorm",
     .layer_class = &wb_batchnorm_class,
     .fields = {"λ", "β", "γ", "μ", "σ²", "ϵ", "momentum", "affine", "track_stats", "active",
                "chs"},
     .make = make_batchnorm,
     .value = batchnorm_value,
     .print = print_batchnorm},
    {.name = "flatten", .layer_class = &wb_flatten_class, .make = make_flatten},
    {.name = "function", .layer_class = &wb_fn_class},
};
enum { ROWS = sizeof rows / sizeof *rows };

const wb_layer_row *wb_row_of_class(const wb_layer_class *layer_class) {
    for (int i = 0; i < ROWS; i++)
        if (rows[i].layer_class == layer_class) return &rows[i];
    return NULL;
}

const wb_layer_row *wb_row_named(const char *name) {
    for (int i = 0; i < ROWS; i++)
        if (rows[i].make && strcmp(rows[i].name, wb_flux_last(name)) == 0) return &rows[i];
    return NULL;
}

const wb_layer_row *wb_row_of_struct(const wb_record *r) {
    return r->kind == WB_RECORD_STRUCT ? wb_row_named(r->type) : NULL;
}

const char *wb_row_field(const wb_record *r, int64_t i) {
    const wb_layer_row *row = r->names ? NULL : wb_row_of_struct(r);
    if (row && i < WB_ROW_FIELDS) return row->fields[i];
    return wb_record_name(r, i);
}
