/* Products with a Jacobian or Hessian, and what Jacobians, Hessians and forward mode share. */
#include "gradient/further.h"

#include <stdio.h>

#include "base/memory.h"
#include "gradient/walk.h"
#include "ops/build.h"

/* ---- shared ---- */

bool wb_check_differentiable(const char *function, const char *what, wb_array *x) {
    if (!wb_is_usable(x)) return wb_refuse(function, x, what) != NULL;
    if (wb_dtype_is_float((wb_dtype)x->dtype)) return true;
    (void)wb_fail(WB_ERROR_DTYPE, "%s: %s must have a floating type, got %s", function, what,
                  wb_dtype_name((wb_dtype)x->dtype));
    return false;
}

/* True if there are at least one array and as many others of the same sizes, what they are called
 * by. */
static bool check_directions(const char *function, int count, wb_array *const *arrays,
                             wb_array *const *directions, const char *what) {
    if (!wb_check_list(function, count, arrays) || !wb_check_list(function, count, directions))
        return false;
    if (count < 1) {
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: at least one array is needed, got %d", function,
                      count);
        return false;
    }
    for (int i = 0; i < count; i++) {
        char name[48];
        (void)snprintf(name, sizeof name, "%s %d", what, i);
        if (!wb_check_differentiable(function, "an array", arrays[i])) return false;
        if (!wb_is_usable(directions[i])) return wb_refuse(function, directions[i], name) != NULL;
        if (wb_same_sizes(arrays[i], directions[i])) continue;
        (void)wb_fail(WB_ERROR_SHAPE, "%s: %s must have the sizes of array %d, %s, got %s",
                      function, name, i, wb_text_of(arrays[i]), wb_text_of(directions[i]));
        return false;
    }
    return true;
}

/* sum over i of <gradients[i], directions[i]>, a number; NULL without an error: all gradients are
 * NULL. */
static wb_array *inner_products(int count, wb_array *const *gradients,
                                wb_array *const *directions) {
    wb_array *sum = NULL;
    for (int i = 0; i < count; i++) {
        if (!gradients[i]) continue;
        wb_array *part = wb_sum(MUL(gradients[i], directions[i]));
        sum = sum ? ADD(sum, part) : part;
        if (!sum) return NULL;
    }
    return sum;
}

wb_array *wb_zeros_like(const wb_array *x) {
    return wb_beside(x, wb_full_make((wb_dtype)x->dtype, 0, x->ndim, x->sizes));
}

wb_array *wb_element_places(int64_t count) { return wb_iota_make(WB_I64, 0, 1, &count); }

wb_array *wb_unit_vector(const wb_array *x, wb_array *place) {
    wb_array *unit = wb_cast(EQ(wb_element_places(wb_count(x)), place), (wb_dtype)x->dtype);
    return unit ? wb_reshape_make(unit, x->ndim, x->sizes) : NULL;
}

/* ---- J v ---- */

/* Stands for an unknown cotangent of y: derivatives by it do not read its value. It must not be a
 * constant, because the walk would join that with equal ones. */
static wb_array *any_cotangent(const wb_array *y) {
    const int64_t count = wb_count(y);
    wb_array *x = wb_iota_make((wb_dtype)y->dtype, 0, 1, &count);
    return x ? wb_reshape_make(x, y->ndim, y->sizes) : NULL;
}

static wb_array *jvp(wb_array *y, int count, wb_array *const *arrays, wb_array *const *tangents,
                     wb_array **cotangents) {
    wb_array *u = any_cotangent(y), *tangent = NULL;
    if (!u || wb_pullback(y, u, count, arrays, cotangents) != WB_OK) return NULL;
    wb_array *product = inner_products(count, cotangents, tangents);
    if (wb_failed()) return NULL;
    if (product && wb_gradient_of_newer(product, 1, &u, &tangent) != WB_OK) return NULL;
    return tangent ? tangent : wb_zeros_like(y);
}

wb_array *wb_jvp(wb_array *y, int count, wb_array *const *arrays, wb_array *const *tangents) {
    if (!wb_check_differentiable("jvp", "y", y) ||
        !check_directions("jvp", count, arrays, tangents, "tangent"))
        return NULL;
    wb_error_aside older;
    wb_error_put_aside(&older);
    wb_array **cotangents = wb_alloc((size_t)count * sizeof *cotangents);
    wb_array *tangent = cotangents ? jvp(y, count, arrays, tangents, cotangents) : NULL;
    wb_release(cotangents);
    wb_error_bring_back(&older);
    return tangent;
}

/* ---- H v ---- */

static wb_status hvp(wb_array *loss, int count, wb_array *const *arrays, wb_array *const *vectors,
                     wb_array **products) {
    wb_status status = wb_gradient_of(loss, count, arrays, products);
    if (status != WB_OK) return status;
    wb_array *product = inner_products(count, products, vectors);
    for (int i = 0; i < count; i++) products[i] = NULL;
    if (wb_failed()) return wb_error_status();
    if (product) status = wb_gradient_of_newer(product, count, arrays, products);
    for (int i = 0; status == WB_OK && i < count; i++)
        if (!products[i] && !(products[i] = wb_zeros_like(arrays[i]))) status = wb_error_status();
    return status;
}

wb_status wb_hvp(wb_array *loss, int count, wb_array *const *arrays, wb_array *const *vectors,
                 wb_array **products) {
    if (!wb_check_list("hvp", count, products)) return wb_error_status();
    for (int i = 0; i < count; i++) products[i] = NULL;
    if (!wb_check_differentiable("hvp", "the loss", loss) ||
        !check_directions("hvp", count, arrays, vectors, "vector"))
        return wb_error_status();
    wb_error_aside older;
    wb_error_put_aside(&older);
    const wb_status status = hvp(loss, count, arrays, vectors, products);
    for (int i = 0; status != WB_OK && i < count; i++) products[i] = NULL;
    wb_error_bring_back(&older);
    return status;
}
