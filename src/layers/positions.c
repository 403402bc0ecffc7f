/* SinusoidalPositions and RotaryPositions: positions that are not learnt. */
#include "layers/layer.h"

/* 0, 1, ... for the second dimension of x, with a cache from where it is; NULL on failure. */
static wb_array *positions_for(wb_layer *layer, wb_array *x) {
    int64_t first;
    if (x->ndim < 2)
        return wb_fail_null(WB_ERROR_SHAPE, "input must be (features, length, ...), got %s",
                            wb_text_of(x));
    if (!wb_pass_positions(layer, x, &first)) return NULL;
    wb_array *place = wb_iota(WB_I32, 0, x->sizes[1]);
    return first ? wb_add(place, wb_late_position(first)) : place;
}

/* ---- sinusoidal ---- */

typedef struct wb_sinusoidal_positions_layer {
    wb_layer layer;
    wb_positions positions;
} wb_sinusoidal_positions_layer;

static wb_array *forward_sinusoidal(wb_layer *layer, wb_array *x) {
    if (!wb_dtype_is_float((wb_dtype)x->dtype))
        return wb_fail_null(WB_ERROR_DTYPE, "input must be floating, got %s", wb_text_of(x));
    if (x->ndim >= 2 && (x->sizes[0] < 4 || x->sizes[0] % 2 != 0))
        return wb_fail_null(WB_ERROR_SHAPE, "features must be even and at least 4, got input %s",
                            wb_text_of(x));
    wb_array *positions = positions_for(layer, x);
    wb_array *y = positions ? wb_sinusoidal_at((wb_dtype)x->dtype, x->sizes[0], positions) : NULL;
    return y ? wb_add(x, y) : NULL;
}

static const wb_field no_fields[1] = {{.kind = WB_FIELD_VALUE}};
const wb_layer_class wb_sinusoidal_positions_class = {
    .name = "SinusoidalPositions",
    .size_bytes = sizeof(wb_sinusoidal_positions_layer),
    .fields = no_fields,
    .forward = forward_sinusoidal,
    .positions = offsetof(wb_sinusoidal_positions_layer, positions)};

wb_layer *wb_sinusoidal_positions(void) { return wb_layer_new(&wb_sinusoidal_positions_class); }

/* ---- rotary ---- */

typedef struct wb_rotary_positions_layer {
    wb_layer layer;
    wb_rotary_positions_desc desc;
    wb_positions positions;
} wb_rotary_positions_layer;

static wb_array *forward_rotary(wb_layer *layer, wb_array *x) {
    const wb_rotary_positions_layer *l = (const wb_rotary_positions_layer *)(void *)layer;
    wb_array *positions = positions_for(layer, x);
    return positions
               ? wb_rotary(x, .heads = l->desc.heads, .base = l->desc.base, .positions = positions)
               : NULL;
}

static const wb_field fields[] = {
    WB_ROW(wb_rotary_positions_layer, heads, WB_FIELD_INTEGER, .usual = 1, .low = 1,
           .zero_counts = true),
    WB_ROW(wb_rotary_positions_layer, base, WB_FIELD_REAL, .usual = 1e4, .is_above = true,
           .zero_counts = true),
};

const wb_layer_class wb_rotary_positions_class = {
    .name = "RotaryPositions",
    WB_LAYER_ROWS(wb_rotary_positions_layer, fields),
    .forward = forward_rotary,
    .positions = offsetof(wb_rotary_positions_layer, positions)};

wb_layer *wb_rotary_positions_make(wb_rotary_positions_desc desc) {
    return wb_layer_of_desc(&wb_rotary_positions_class, &desc, sizeof desc);
}
