/* What torchvision's transforms for models of ImageNet do to a picture, in one call: the window of
 * the resized picture that is wanted, its numbers, and what is random for training. */
#include "images/prepare.h"

#include <math.h>
#include <string.h>

#include <weber/ops.h>

#include "array/use.h"
#include "base/memory.h"
#include "images/resize.h"
#include "ops/ops.h"

bool wb_check_prepare(const char *function, const wb_image_prepare_desc *d, int64_t channels) {
    wb_status status = WB_OK;
    if (!wb_check_start(function, d->start_) || !wb_check_filter(function, d->filter)) return false;
    if (d->resize < 0 || d->resize > WB_MOST_SIDE || d->crop < 0 || d->crop > WB_MOST_SIDE)
        status = wb_fail(WB_ERROR_ARGUMENT,
                         "%s: resize and crop must be from 0 to %d, got %lld and %lld", function,
                         WB_MOST_SIDE, (long long)d->resize, (long long)d->crop);
    else if (d->random_crop && d->crop == 0)
        status = wb_fail(WB_ERROR_ARGUMENT, "%s: random_crop needs .crop", function);
    else if (!(d->flip >= 0 && d->flip <= 1))
        status =
            wb_fail(WB_ERROR_ARGUMENT, "%s: flip must be from 0 to 1, got %g", function, d->flip);
    for (int64_t c = 0; status == WB_OK && c < channels; c++)
        if (!(d->std[c] > 0))
            status = wb_fail(WB_ERROR_ARGUMENT, "%s: std of channel %lld must be above 0, got %g",
                             function, (long long)c, d->std[c]);
    return status == WB_OK;
}

/* ---- which part ---- */

/* A resized picture, and which part of it is wanted: the part may be larger. */
typedef struct plan {
    wb_window source; /* of the picture, before it is resized */
    int64_t width, height;
    wb_window part;
} plan;

/* Where the middle begins: torchvision rounds halves to even, and pads less in front. */
static int64_t middle_of(int64_t size, int64_t wanted) {
    if (wanted > size) return -((wanted - size) / 2);
    return (int64_t)nearbyint((double)(size - wanted) / 2);
}

static plan plan_middle(const wb_pixels *x, const wb_image_prepare_desc *d) {
    plan p = {{0, 0, x->width, x->height}, x->width, x->height, {0, 0, 0, 0}};
    const int64_t shorter = x->width < x->height ? x->width : x->height;
    if (d->resize && d->resize != shorter) {
        p.width = (int64_t)((double)(d->resize * x->width) / (double)shorter);
        p.height = (int64_t)((double)(d->resize * x->height) / (double)shorter);
    }
    p.part = (wb_window){0, 0, p.width, p.height};
    if (d->crop)
        p.part = (wb_window){middle_of(p.width, d->crop), middle_of(p.height, d->crop), d->crop,
                             d->crop};
    return p;
}

/* A line of pixels may become too long for memory when its height becomes that of a picture. */
static bool has_sides(const wb_pixels *x, const plan *p) {
    if (p->width <= WB_MOST_SIDE && p->height <= WB_MOST_SIDE) return true;
    (void)wb_fail(
        WB_ERROR_SHAPE,
        "image_prepare: a picture of (%lld, %lld) would become (%lld, %lld), and may have "
        "sides of %d",
        (long long)x->width, (long long)x->height, (long long)p->width, (long long)p->height,
        WB_MOST_SIDE);
    return false;
}

enum { TRIES = 10, DRAWS = 4 * TRIES + 1 }; /* the last: whether it is flipped */

static const double least_aspect = 3.0 / 4, most_aspect = 4.0 / 3;

/* A random part of 8% to 100% of the area; false if it does not lie within x. */
static bool try_part(const wb_pixels *x, const float *u, wb_window *part) {
    const double area = (double)x->width * (double)x->height * (0.08 + 0.92 * (double)u[0]);
    const double low = log(least_aspect), high = log(most_aspect);
    const double aspect = exp(low + (high - low) * (double)u[1]);
    part->width = (int64_t)nearbyint(sqrt(area * aspect));
    part->height = (int64_t)nearbyint(sqrt(area / aspect));
    if (part->width < 1 || part->height < 1 || part->width > x->width || part->height > x->height)
        return false;
    part->x = (int64_t)((double)u[2] * (double)(x->width - part->width + 1));
    part->y = (int64_t)((double)u[3] * (double)(x->height - part->height + 1));
    return true;
}

/* The largest part in the middle whose aspect is allowed. */
static wb_window widest_part(const wb_pixels *x) {
    const double aspect = (double)x->width / (double)x->height;
    wb_window part = {0, 0, x->width, x->height};
    if (aspect < least_aspect) part.height = (int64_t)nearbyint((double)x->width / least_aspect);
    if (aspect > most_aspect) part.width = (int64_t)nearbyint((double)x->height * most_aspect);
    part.x = (x->width - part.width) / 2, part.y = (x->height - part.height) / 2;
    return part;
}

static plan plan_random(const wb_pixels *x, int64_t crop, const float *u) {
    plan p = {{0, 0, 0, 0}, crop, crop, {0, 0, crop, crop}};
    for (int i = 0; i < TRIES; i++)
        if (try_part(x, u + 4 * (ptrdiff_t)i, &p.source)) return p;
    p.source = widest_part(x);
    return p;
}

/* ---- its numbers ---- */

/* A copy of a part, which lies within x. */
static bool cut(const wb_pixels *x, wb_window w, wb_pixels *to) {
    *to = (wb_pixels){w.width, w.height, x->channels,
                      wb_alloc_list(w.width * w.height * x->channels, 1)};
    if (!to->bytes) return false;
    for (int64_t row = 0; row < w.height * x->channels; row++) {
        const int64_t c = row / w.height, y = row % w.height + w.y;
        memcpy(to->bytes + row * w.width, x->bytes + (c * x->height + y) * x->width + w.x,
               (size_t)w.width);
    }
    return true;
}

/* Without what lies outside of (width, height). */
static wb_window within(wb_window w, int64_t width, int64_t height) {
    const int64_t right = w.x + w.width, below = w.y + w.height;
    w.x = w.x < 0 ? 0 : w.x, w.y = w.y < 0 ? 0 : w.y;
    w.width = (right > width ? width : right) - w.x;
    w.height = (below > height ? height : below) - w.y;
    return w;
}

/* Row y of the part, which has zeros around the pixels that there are. */
static void write_row(const wb_pixels *pixels, wb_window there, wb_window part, int64_t c,
                      int64_t y, bool is_flipped, const float *values, float *out) {
    const int64_t row = part.y + y - there.y, left = there.x - part.x;
    const bool is_inside = row >= 0 && row < there.height;
    const unsigned char *from =
        is_inside ? pixels->bytes + (c * there.height + row) * there.width : NULL;
    for (int64_t x = 0; x < part.width; x++) {
        const int64_t at = (is_flipped ? part.width - 1 - x : x) - left;
        out[x] = values[from && at >= 0 && at < there.width ? from[at] : 0];
    }
}

static void write_numbers(const wb_pixels *pixels, wb_window there, wb_window part,
                          const wb_image_prepare_desc *d, bool is_flipped, float *out) {
    float values[256];
    for (int64_t c = 0; c < pixels->channels; c++) {
        const float mean = (float)d->mean[c], std = (float)d->std[c];
        for (int i = 0; i < 256; i++) values[i] = ((float)i / 255 - mean) / std;
        for (int64_t y = 0; y < part.height; y++)
            write_row(pixels, there, part, c, y, is_flipped, values,
                      out + (c * part.height + y) * part.width);
    }
}

static bool follow(const wb_pixels *x, const plan *p, const wb_image_prepare_desc *d,
                   bool is_flipped, float *out) {
    wb_pixels source = *x, pixels = {.bytes = NULL};
    const wb_window there = within(p->part, p->width, p->height);
    const bool is_cut = p->source.width != x->width || p->source.height != x->height;
    const bool good = (!is_cut || cut(x, p->source, &source)) &&
                      wb_pixels_resize(&source, p->width, p->height, d->filter, there, &pixels);
    if (good) write_numbers(&pixels, there, p->part, d, is_flipped, out);
    if (is_cut) wb_release(source.bytes);
    wb_release(pixels.bytes);
    return good;
}

static bool draw(float *u) {
    const int64_t count = DRAWS;
    wb_array *numbers = wb_uniform_make(WB_F32, 1, &count);
    return numbers && wb_read_f32(numbers, u, DRAWS) == WB_OK;
}

bool wb_pixels_prepare(const wb_pixels *x, const wb_image_prepare_desc *d, float *out) {
    float u[DRAWS] = {0};
    if ((d->random_crop || d->flip > 0) && !draw(u)) return false;
    const plan p = d->random_crop ? plan_random(x, d->crop, u) : plan_middle(x, d);
    if (!has_sides(x, &p)) return false;
    return follow(x, &p, d, (double)u[DRAWS - 1] < d->flip, out);
}

/* ---- arrays ---- */

static bool check_picture(wb_array *x) {
    if (!wb_may_use_array("image_prepare", x, "x")) return false;
    const bool fits = x->ndim == 3 && x->sizes[2] >= 1 && x->sizes[2] <= 4 && wb_count(x) > 0;
    if (fits && x->dtype == WB_U8) return true;
    (void)wb_fail(fits ? WB_ERROR_DTYPE : WB_ERROR_SHAPE,
                  "image_prepare: x must be u8 (width, height, channels) with at most 4 channels, "
                  "as wb_image_read gives it, got %s %s",
                  wb_dtype_name((wb_dtype)x->dtype), wb_text_of(x));
    return false;
}

wb_array *wb_image_prepare_make(wb_array *x, wb_image_prepare_desc desc) {
    wb_pixels pixels;
    if (!check_picture(x) || !wb_check_prepare("image_prepare", &desc, x->sizes[2])) return NULL;
    if (!wb_pixels_of(x, &pixels)) return NULL;
    if (desc.random_crop) desc.resize = 0; /* which is not done then */
    const plan p = plan_middle(&pixels, &desc);
    const int64_t sizes[] = {p.part.width, p.part.height, pixels.channels};
    const int64_t count = wb_count_sizes(3, sizes);
    float *numbers = has_sides(&pixels, &p) ? wb_alloc_list(count, sizeof *numbers) : NULL;
    const bool good = numbers && wb_pixels_prepare(&pixels, &desc, numbers);
    wb_array *y = good ? wb_from_make(WB_F32, numbers, 3, sizes) : NULL;
    wb_release(numbers);
    wb_release(pixels.bytes);
    return y ? wb_move_array(wb_node_device(x), y, WB_ELTYPE_DEFAULT) : NULL;
}

/* One dimension of the middle. */
static wb_array *crop_along(wb_array *x, int dim, int64_t wanted) {
    const int64_t size = x->sizes[dim], begin = middle_of(size, wanted);
    if (wanted > size) return wb_pad(x, dim, -begin, wanted - size + begin, 0);
    return wb_slice(x, dim, begin, begin + wanted, 1);
}

wb_array *wb_image_crop(wb_array *x, int64_t width, int64_t height) {
    if (!wb_may_use_array("image_crop", x, "x")) return NULL;
    if (x->ndim < 2)
        return wb_fail_null(WB_ERROR_SHAPE, "image_crop: x must be (width, height, ...), got %s",
                            wb_text_of(x));
    if (width < 1 || height < 1 || width > WB_MOST_SIDE || height > WB_MOST_SIDE)
        return wb_fail_null(WB_ERROR_ARGUMENT,
                            "image_crop: width and height must be from 1 to %d, got (%lld, %lld)",
                            WB_MOST_SIDE, (long long)width, (long long)height);
    wb_array *y = crop_along(x, 0, width);
    return y ? crop_along(y, 1, height) : NULL;
}
