/* WeightNorm: an array of a layer written as length times direction. */
#include <float.h>
#include <stdio.h>
#include <string.h>

#include "array/use.h"
#include "layers/layer.h"

typedef struct wb_weight_norm_layer {
    wb_layer layer;
    wb_layer *inner;
    wb_array *g;
    char which[WB_NAME_BYTES];
    unsigned dims;
} wb_weight_norm_layer;

static wb_weight_norm_layer *norm_of(wb_layer *layer) {
    return (wb_weight_norm_layer *)(void *)layer;
}

/* ---- norms ---- */

static double epsilon_of(wb_dtype dtype) {
    static const double f16 = 1. / 1024, bf16 = 1. / 128;
    if (dtype == WB_F64) return DBL_EPSILON;
    return dtype == WB_F32 ? (double)FLT_EPSILON : dtype == WB_F16 ? f16 : bf16;
}

/* Those of the set that v has; dimensions that it does not have are of size 1. */
static int dims_of(unsigned set, const wb_array *v, int64_t *dims) {
    int count = 0;
    for (int i = 0; i < v->ndim; i++)
        if (set & WB_DIM(i)) dims[count++] = i;
    return count;
}

/* √(sum(v²) + e), of size 1 in the dimensions. */
static wb_array *norm(wb_array *v, unsigned set) {
    int64_t dims[WB_MAX_DIMS];
    const int count = dims_of(set, v, dims);
    wb_array *square = wb_square(v);
    if (count) square = wb_sum_make(square, count, dims);
    return wb_sqrt(wb_add_number(square, epsilon_of((wb_dtype)v->dtype)));
}

static wb_array *weight_of(const wb_weight_norm_layer *l, wb_array *v) {
    return wb_mul(v, wb_div(l->g, norm(v, l->dims)));
}

/* ---- forward ---- */

/* While the layer is applied its array is what follows from v and g. */
static int forward(wb_layer *layer, int count, wb_array *const *inputs, wb_array **results) {
    const wb_weight_norm_layer *l = norm_of(layer);
    wb_array **slot = wb_slot_at("WeightNorm", l->inner, l->which);
    wb_array *v = slot ? *slot : NULL, *w = v ? wb_hold(weight_of(l, v)) : NULL;
    if (!w) return 0;
    *slot = w;
    const int given = wb_apply_many(l->inner, count, inputs, WB_MOST_ARRAYS, results);
    *slot = v;
    wb_unhold(w);
    return given;
}

/* ---- the class ---- */

static const char *const usual_name[] = {"weight", NULL};

static const wb_field fields[] = {
    {.name = "layer",
     .offset = offsetof(wb_weight_norm_layer, inner),
     .kind = WB_FIELD_CHILD,
     .trainable = true,
     .positional = true,
     .counted = true},
    WB_ARRAY_FIELD(wb_weight_norm_layer, g),
    WB_SETTING(wb_weight_norm_layer, which, WB_FIELD_NAME, .positional = true,
               .choices = usual_name),
    WB_SETTING(wb_weight_norm_layer, dims, WB_FIELD_DIMS, .usual = -1),
};

/* The dimensions in which a given g has size 1; without g the last one. */
static unsigned usual_dims(const wb_array *g, const wb_array *v) {
    unsigned dims = 0;
    for (int i = 0; g && i < g->ndim; i++)
        if (g->sizes[i] == 1) dims |= WB_DIM(i);
    return dims ? dims : v->ndim ? WB_DIM(v->ndim - 1) : 1;
}

static bool has_direction(wb_array *v) {
    return wb_count(v) == 0 || wb_item(wb_maximum(wb_abs(wb_cpu(v)))) != 0;
}

static bool check_array(const wb_weight_norm_layer *l, wb_array *v) {
    if (wb_is_state_at(l->inner, l->which))
        (void)wb_fail(WB_ERROR_ARGUMENT, "WeightNorm: %s is a state, which is not trained",
                      l->which);
    else if (!v)
        (void)wb_fail(WB_ERROR_ARGUMENT, "WeightNorm: the layer was made without %s", l->which);
    else if (!wb_dtype_is_float((wb_dtype)v->dtype))
        (void)wb_fail(WB_ERROR_DTYPE, "WeightNorm: %s must be floating, got %s", l->which,
                      wb_dtype_name((wb_dtype)v->dtype));
    else if (!l->g && !has_direction(v))
        (void)wb_fail(WB_ERROR_ARGUMENT, "WeightNorm: %s is all zeros: it has no direction",
                      l->which);
    else
        return true;
    return false;
}

static bool complete(wb_layer *layer) {
    wb_weight_norm_layer *l = norm_of(layer);
    int64_t sizes[WB_MAX_DIMS];
    if (!l->inner) {
        (void)wb_fail(WB_ERROR_ARGUMENT, "WeightNorm: the layer is NULL");
        return false;
    }
    wb_array **slot = wb_slot_at("WeightNorm", l->inner, l->which), *v = slot ? *slot : NULL;
    if (!slot || !check_array(l, v)) return false;
    if (l->dims == 0)
        l->dims = usual_dims(l->g, v);
    else if (l->dims >= WB_DIM(v->ndim)) {
        (void)wb_fail(WB_ERROR_ARGUMENT, "WeightNorm: dims must be among the %d of %s %s, got 0x%x",
                      v->ndim, l->which, wb_text_of(v), l->dims);
        return false;
    }
    if (!l->g) l->g = wb_hold(norm(v, l->dims));
    for (int i = 0; i < v->ndim; i++) sizes[i] = l->dims & WB_DIM(i) ? 1 : v->sizes[i];
    return wb_layer_fill(layer, &l->g, NULL, (wb_dtype)v->dtype, v->ndim, sizes);
}

const wb_layer_class wb_weight_norm_class = {.name = "WeightNorm",
                                             WB_LAYER_ROWS(wb_weight_norm_layer, fields),
                                             .forward_many = forward,
                                             .complete = complete};

wb_layer *wb_weight_norm_make(wb_weight_norm_desc desc) {
    const wb_contents contents = {.count = 1, .layers = &desc.layer};
    const char *which = desc.which ? desc.which : "";
    wb_layer *layer = wb_wrapper_new("wb_weight_norm", &wb_weight_norm_class, &contents);
    if (!layer) return NULL;
    if (!wb_may_use_given("WeightNorm", desc.given_g, "g")) {
        (void)wb_layer_own_children(layer);
        wb_free(layer);
        return NULL;
    }
    wb_weight_norm_layer *l = norm_of(layer);
    l->dims = desc.dims, l->g = wb_hold(desc.given_g);
    (void)snprintf(l->which, sizeof l->which, "%s", which);
    if (strlen(which) < sizeof l->which) return wb_layer_complete(layer);
    (void)wb_layer_own_children(layer);
    wb_free(layer);
    return wb_fail_null(WB_ERROR_ARGUMENT, "WeightNorm: which must be below %d bytes, got %.60s",
                        WB_NAME_BYTES, which);
}

/* ---- without it ---- */

/* Its layer, with the array that it computed with. */
static wb_layer *without_norm(void *user, wb_layer *layer) {
    const wb_weight_norm_layer *l = norm_of(layer);
    (void)user;
    if (layer->class_ != &wb_weight_norm_class) return layer;
    wb_array **slot = wb_slot_at("wb_remove_weight_norms", l->inner, l->which);
    wb_array *w = slot && *slot ? weight_of(l, *slot) : NULL;
    return w && wb_set(l->inner, l->which, w) == WB_OK ? wb_keep_layer(l->inner) : NULL;
}

wb_layer *wb_remove_weight_norms(wb_layer *model) {
    if (!wb_check_model("wb_remove_weight_norms", model)) return NULL;
    if (!wb_scope_begin()) {
        wb_free(model);
        return NULL;
    }
    const bool good = wb_replace_layers(&model, without_norm, NULL);
    return wb_layer_finish(model, !good);
}
