/* Pictures of other sizes: PIL's resampling (Pillow, src/libImaging/Resample.c), on bytes in whole
 * numbers with its roundings, on other numbers as two products with a matrix of weights. */
#include <math.h>
#include <string.h>

#include <weber/ops.h>

#include "array/use.h"
#include "base/memory.h"
#include "images/images.h"
#include "images/resize.h"
#include "ops/ops.h"

enum { BITS = 22, HALF = 1 << (BITS - 1) };

/* ---- weights ---- */

static double bilinear(double x) {
    x = fabs(x);
    return x < 1 ? 1 - x : 0;
}

static double bicubic(double x) { /* a = -0.5 */
    const double a = -0.5;
    x = fabs(x);
    if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

typedef double filter_fn(double x);

/* For each place of the result: from which place on, and with which weights. */
typedef struct taps {
    int64_t most; /* weights of a place, at most */
    int64_t *first, *count;
    double *weights; /* [place * most + i] */
    int *whole;      /* the same, times 2^BITS */
} taps;

static void release_taps(taps *t) {
    wb_release(t->first);
    wb_release(t->count);
    wb_release(t->weights);
    wb_release(t->whole);
}

static void weigh(taps *t, int64_t place, filter_fn *filter, double shrinks, double center) {
    double sum = 0, *weights = t->weights + place * t->most;
    int *whole = t->whole + place * t->most;
    for (int64_t i = 0; i < t->count[place]; i++)
        sum += weights[i] = filter(((double)(i + t->first[place]) - center + 0.5) * (1 / shrinks));
    for (int64_t i = 0; i < t->count[place]; i++) {
        if (sum != 0) weights[i] /= sum;
        whole[i] = (int)(weights[i] * (1 << BITS) + (weights[i] < 0 ? -0.5 : 0.5));
    }
}

static bool make_taps(taps *t, int64_t from, int64_t to, int filter) {
    const double scale = (double)from / (double)to, shrinks = scale < 1 ? 1 : scale;
    const double reach = (filter == WB_IMAGE_BICUBIC ? 2 : 1) * shrinks;
    *t = (taps){.most = (int64_t)ceil(reach) * 2 + 1};
    t->first = wb_alloc_list(to, sizeof *t->first), t->count = wb_alloc_list(to, sizeof *t->count);
    t->weights = wb_alloc_list(to * t->most, sizeof *t->weights);
    t->whole = wb_alloc_list(to * t->most, sizeof *t->whole);
    if (!t->first || !t->count || !t->weights || !t->whole) return false;
    for (int64_t i = 0; i < to; i++) {
        const double center = ((double)i + 0.5) * scale;
        const int64_t first = (int64_t)(center - reach + 0.5),
                      end = (int64_t)(center + reach + 0.5);
        t->first[i] = first < 0 ? 0 : first;
        t->count[i] = (end > from ? from : end) - t->first[i];
        weigh(t, i, filter == WB_IMAGE_BICUBIC ? bicubic : bilinear, shrinks, center);
    }
    return true;
}

/* ---- bytes ---- */

static unsigned char byte_of(int sum) {
    const int value = sum >> BITS;
    return (unsigned char)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* A row of the places begin to begin + count - 1. */
static void resize_row(const taps *t, const unsigned char *row, int64_t begin, int64_t count,
                       unsigned char *to) {
    for (int64_t x = 0; x < count; x++) {
        const int *weights = t->whole + (begin + x) * t->most;
        const unsigned char *at = row + t->first[begin + x];
        const int64_t n = t->count[begin + x];
        int sum = HALF;
        for (int64_t i = 0; i < n; i++) sum += at[i] * weights[i];
        to[x] = byte_of(sum);
    }
}

/* Row number y; rows has those from `first` on. */
static void resize_column(const taps *t, const unsigned char *rows, int64_t first, int64_t width,
                          int64_t y, int *sums, unsigned char *to) {
    const int *weights = t->whole + y * t->most;
    for (int64_t x = 0; x < width; x++) sums[x] = HALF;
    for (int64_t i = 0; i < t->count[y]; i++) {
        const unsigned char *row = rows + (t->first[y] + i - first) * width;
        const int weight = weights[i];
        for (int64_t x = 0; x < width; x++) sums[x] += row[x] * weight;
    }
    for (int64_t x = 0; x < width; x++) to[x] = byte_of(sums[x]);
}

/* One plane; across or down is NULL where that size stays. */
static void resize_plane(const unsigned char *plane, int64_t width, const taps *across,
                         const taps *down, wb_window w, int64_t first, int64_t rows,
                         unsigned char *between, int *sums, unsigned char *to) {
    for (int64_t y = 0; y < rows; y++) {
        const unsigned char *row = plane + (first + y) * width;
        if (across)
            resize_row(across, row, w.x, w.width, between + y * w.width);
        else
            memcpy(between + y * w.width, row + w.x, (size_t)w.width);
    }
    for (int64_t y = 0; y < w.height; y++)
        if (down)
            resize_column(down, between, first, w.width, w.y + y, sums, to + y * w.width);
        else
            memcpy(to + y * w.width, between + y * w.width, (size_t)w.width);
}

static bool resize_with(const wb_pixels *x, const taps *across, const taps *down, wb_window w,
                        wb_pixels *to) {
    const int64_t last = w.y + w.height - 1;
    const int64_t first = down ? down->first[w.y] : w.y;
    const int64_t rows = down ? down->first[last] + down->count[last] - first : w.height;
    unsigned char *between = wb_alloc_list(rows * w.width, 1);
    int *sums = wb_alloc_list(w.width, sizeof *sums);
    *to = (wb_pixels){w.width, w.height, x->channels, NULL};
    if (between && sums) to->bytes = wb_alloc_list(w.width * w.height * x->channels, 1);
    for (int64_t c = 0; to->bytes && c < x->channels; c++)
        resize_plane(x->bytes + c * x->width * x->height, x->width, across, down, w, first, rows,
                     between, sums, to->bytes + c * w.width * w.height);
    wb_release(between);
    wb_release(sums);
    return to->bytes != NULL;
}

bool wb_pixels_resize(const wb_pixels *x, int64_t width, int64_t height, int filter, wb_window w,
                      wb_pixels *to) {
    taps across = {.most = 0}, down = {.most = 0};
    const bool is_wide = width != x->width, is_high = height != x->height;
    const bool good = (!is_wide || make_taps(&across, x->width, width, filter)) &&
                      (!is_high || make_taps(&down, x->height, height, filter)) &&
                      resize_with(x, is_wide ? &across : NULL, is_high ? &down : NULL, w, to);
    release_taps(&across);
    release_taps(&down);
    return good;
}

/* ---- arrays ---- */

bool wb_check_filter(const char *function, int filter) {
    if (filter == WB_IMAGE_BILINEAR || filter == WB_IMAGE_BICUBIC) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT, "%s: filter must be a wb_image_filter, got %d", function,
                  filter);
    return false;
}

bool wb_pixels_of(wb_array *x, wb_pixels *pixels) {
    const int64_t count = wb_count(x);
    *pixels = (wb_pixels){x->sizes[0], x->sizes[1], 0, wb_alloc_list(count, 1)};
    pixels->channels = count / pixels->width / pixels->height;
    if (pixels->bytes && wb_read(x, pixels->bytes, (size_t)count) == WB_OK) return true;
    wb_release(pixels->bytes);
    return false;
}

static wb_array *resize_bytes(wb_array *x, const wb_image_resize_desc *d) {
    int64_t sizes[WB_MAX_DIMS];
    memcpy(sizes, x->sizes, sizeof sizes);
    sizes[0] = d->width, sizes[1] = d->height;
    wb_pixels pixels, resized = {.bytes = NULL};
    if (!wb_pixels_of(x, &pixels)) return NULL;
    const bool good = wb_pixels_resize(&pixels, d->width, d->height, d->filter,
                                       (wb_window){0, 0, d->width, d->height}, &resized);
    wb_array *y = good ? wb_from_make(WB_U8, resized.bytes, x->ndim, sizes) : NULL;
    wb_release(pixels.bytes);
    wb_release(resized.bytes);
    return y ? wb_move_array(wb_node_device(x), y, WB_ELTYPE_DEFAULT) : NULL;
}

/* (to, from), of x's type. */
static wb_array *matrix_of(const wb_array *x, int64_t from, int64_t to, int filter) {
    taps t;
    const int64_t sizes[] = {to, from};
    double *matrix = wb_alloc_list(to * from, sizeof *matrix);
    const bool good = matrix && make_taps(&t, from, to, filter);
    for (int64_t i = 0; good && i < to; i++)
        for (int64_t k = 0; k < t.count[i]; k++)
            matrix[(t.first[i] + k) * to + i] = t.weights[i * t.most + k];
    if (matrix) release_taps(&t);
    wb_array *a = good ? wb_from_make(WB_F64, matrix, 2, sizes) : NULL;
    wb_release(matrix);
    return a ? wb_move_array(wb_node_device(x), wb_cast(a, (wb_dtype)x->dtype), WB_ELTYPE_DEFAULT)
             : NULL;
}

static wb_array *resize_numbers(wb_array *x, const wb_image_resize_desc *d) {
    const int64_t flat[] = {x->sizes[0], x->sizes[1], -1};
    int64_t sizes[WB_MAX_DIMS];
    memcpy(sizes, x->sizes, sizeof sizes);
    sizes[0] = d->width, sizes[1] = d->height;
    wb_array *y = wb_reshape_make(x, 3, flat);
    if (d->width != x->sizes[0]) y = wb_matmul(matrix_of(x, x->sizes[0], d->width, d->filter), y);
    if (d->height != x->sizes[1])
        y = wb_matmul_transposed(y, matrix_of(x, x->sizes[1], d->height, d->filter), false, true);
    return wb_reshape_make(y, x->ndim, sizes);
}

wb_array *wb_image_resize_make(wb_array *x, wb_image_resize_desc desc) {
    if (!wb_may_use_array("image_resize", x, "x")) return NULL;
    if (!wb_check_start("image_resize", desc.start_) ||
        !wb_check_filter("image_resize", desc.filter))
        return NULL;
    if (x->ndim < 2 || wb_count(x) == 0)
        return wb_fail_null(WB_ERROR_SHAPE,
                            "image_resize: x must be (width, height, ...), with pixels, got %s",
                            wb_text_of(x));
    if (desc.width < 1 || desc.height < 1 || desc.width > WB_MOST_SIDE ||
        desc.height > WB_MOST_SIDE)
        return wb_fail_null(WB_ERROR_ARGUMENT,
                            "image_resize: width and height must be from 1 to %d, got (%lld, %lld)",
                            WB_MOST_SIDE, (long long)desc.width, (long long)desc.height);
    if (x->dtype == WB_U8) return resize_bytes(x, &desc);
    if (wb_dtype_is_float((wb_dtype)x->dtype)) return resize_numbers(x, &desc);
    return wb_fail_null(WB_ERROR_DTYPE, "image_resize: x must be u8 or floating, got %s",
                        wb_dtype_name((wb_dtype)x->dtype));
}
