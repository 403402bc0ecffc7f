/* The bytes of a dataset.
 *
 *     dataspace   version | dimensions | flags | kind | sizes u64 ...
 *     layout      3 or 4 | 0 compact | size u16 | bytes
 *                 3 or 4 | 1 contiguous | address | size u64
 *                 4 | 2 chunked | flags | dimensions + 1 | length of a size | sizes | index |
 *                 bytes u64 | skipped filters u32 | address
 *     filters     2 | count | id u16 | [name's length u16 if id > 255] | flags u16 | values' count
 *                 u16 | [name] | values u32
 *
 * JLD2 writes a chunked array as one chunk, index 1. */
#include <string.h>

#include "base/inflate.h"
#include "formats/jld2.h"

/* ---- sizes ---- */

static void read_sizes(wb_jld2 *r, wb_jld2_span *s, int ndim, wb_jld2_shape *shape) {
    bool is_empty = false, is_sound = true;
    const int64_t at = s->at;
    *shape = (wb_jld2_shape){
        .kind = shape->kind, .ndim = ndim, .count = 1, .is_too_big = ndim > WB_MAX_DIMS};
    for (int d = ndim - 1; d >= 0; d--) {
        const int64_t size = (int64_t)wb_jld2_take(r, s, 8);
        is_empty |= size == 0;
        is_sound = is_sound && size >= 0 &&
                   !__builtin_mul_overflow(shape->count, size ? size : 1, &shape->count);
        if (!shape->is_too_big) shape->sizes[d] = size;
    }
    if (is_empty) shape->count = 0;
    if (r->status == WB_OK && !is_sound)
        wb_jld2_fault(r, at, "the product of the sizes of an array is too large");
}

static void read_space(wb_jld2 *r, wb_jld2_span s, wb_jld2_shape *shape) {
    const int64_t at = s.at;
    const int version = (int)wb_jld2_take(r, &s, 1), ndim = (int)wb_jld2_take(r, &s, 1);
    (void)wb_jld2_take(r, &s, 1);
    shape->kind = (int)wb_jld2_take(r, &s, 1);
    if (r->status == WB_OK && (version != 2 || shape->kind > 2))
        wb_jld2_fault(r, at, "a dataspace of version 2 and kind 0 to 2 is expected, not %d and %d",
                      version, shape->kind);
    read_sizes(r, &s, ndim, shape);
    shape->is_null = shape->kind == 2;
}

/* The attribute `dimensions`: sizes of arrays without dimensions, and of those without data. */
static void read_dimensions(wb_jld2 *r, wb_jld2_attribute a, wb_jld2_shape *shape) {
    wb_jld2_shape list = {.kind = 0};
    read_space(r, a.space, &list);
    if (r->status != WB_OK) return;
    if (list.kind != 1 || list.ndim != 1 || list.count > 255)
        wb_jld2_fault(r, a.space.at, "an array's dimensions must be a list");
    else
        read_sizes(r, &a.data, (int)list.count, shape);
}

bool wb_jld2_shape_of(wb_jld2 *r, const wb_jld2_object *o, wb_jld2_shape *shape) {
    wb_jld2_attribute dimensions;
    *shape = (wb_jld2_shape){.kind = 0};
    if (!o->space.at) {
        wb_jld2_fault(r, o->offset, "the dataset has no dataspace");
        return false;
    }
    read_space(r, o->space, shape);
    const int64_t count = shape->count;
    if (!wb_jld2_attribute_of(r, o, WB_JLD2_DIMENSIONS, &dimensions)) return r->status == WB_OK;
    const bool is_null = shape->is_null;
    read_dimensions(r, dimensions, shape);
    if (r->status == WB_OK && !is_null && count != shape->count)
        wb_jld2_fault(r, dimensions.data.at, "the array has %lld elements, but its dimensions %lld",
                      (long long)count, (long long)shape->count);
    shape->kind = 1, shape->is_null = is_null;
    return r->status == WB_OK;
}

/* ---- filters ---- */

enum { DEFLATE = 1, SHUFFLE = 2, MOST_FILTERS = 8 };

static const struct {
    int id;
    const char *why_not;
} known[] = {
    {3, "array with checksums (filter 3), which are not read"},
    {4, "array compressed by szip (filter 4), which is not read"},
    {307, "array compressed by bzip2 (filter 307), which is not read"},
    {32001, "array compressed by Blosc (filter 32001), which is not read"},
    {32004, "array compressed by LZ4 (filter 32004), which is not read"},
    {32015, "array compressed by zstd (filter 32015), which is not read"},
};

typedef struct filters {
    int count, ids[MOST_FILTERS];
    int64_t values[MOST_FILTERS]; /* the first of each */
    const char *why_not;
} filters;

static const char *why_not(int id) {
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].id == id) return known[i].why_not;
    return "array compressed by a filter that is not known";
}

static void read_filter(wb_jld2 *r, wb_jld2_span *s, uint64_t skipped, int i, filters *f) {
    const int id = (int)wb_jld2_take(r, s, 2);
    const int64_t name_bytes = id > 255 ? (int64_t)wb_jld2_take(r, s, 2) : 0;
    (void)wb_jld2_take(r, s, 2);
    const int64_t values = (int64_t)wb_jld2_take(r, s, 2);
    (void)wb_jld2_skip(r, s, name_bytes);
    const int64_t at = s->at;
    (void)wb_jld2_skip(r, s, 4 * values);
    if (r->status != WB_OK || (skipped >> i & 1)) return;
    f->ids[f->count] = id;
    f->values[f->count++] = values ? (int64_t)wb_julia_bits(r->file->map.bytes + at, 4) : 0;
    if (id != DEFLATE && id != SHUFFLE && !f->why_not) f->why_not = why_not(id);
}

static bool read_filters(wb_jld2 *r, wb_jld2_span s, uint64_t skipped, filters *f) {
    const int64_t at = s.at;
    *f = (filters){.count = 0};
    if (!at) return r->status == WB_OK;
    const int version = (int)wb_jld2_take(r, &s, 1), count = (int)wb_jld2_take(r, &s, 1);
    if (r->status == WB_OK && (version != 2 || count > MOST_FILTERS))
        wb_jld2_fault(r, at, "filters of version 2, at most %d, are expected, not %d of version %d",
                      MOST_FILTERS, count, version);
    for (int i = 0; i < count && r->status == WB_OK; i++) read_filter(r, &s, skipped, i, f);
    return r->status == WB_OK;
}

/* Byte k of element i stands at k * count + i. */
static void unshuffle(const unsigned char *in, int64_t size_bytes, int64_t element_bytes,
                      unsigned char *out) {
    const int64_t count = size_bytes / element_bytes;
    for (int64_t k = 0; count && k < element_bytes; k++)
        for (int64_t i = 0; i < count; i++) out[i * element_bytes + k] = in[k * count + i];
    memcpy(out + count * element_bytes, in + count * element_bytes,
           (size_t)(size_bytes - count * element_bytes));
}

/* Memory in the arena, whose own limit is one for records. */
static unsigned char *room_for(wb_jld2 *r, int64_t bytes, int64_t offset) {
    const int64_t most = wb_most_inflated(r->file->map.size_bytes);
    if (bytes > most - r->inflated_bytes) {
        wb_jld2_fault(r, offset,
                      "with this array the file inflates to %lld bytes more than the %lld that are "
                      "allowed (" WB_INFLATE_ADVICE ")",
                      (long long)(bytes - (most - r->inflated_bytes)), (long long)most);
        return NULL;
    }
    r->inflated_bytes += bytes;
    wb_arena *arena = &r->file->arena;
    arena->limit_bytes += arena->limit_bytes ? bytes + WB_ARENA_ALIGN : 0;
    return wb_jld2_list(r, bytes, 1, offset);
}

/* Undoes one filter: data in the file, or what the filter before made, becomes size_bytes. */
static void undo(wb_jld2 *r, int id, int64_t value, int64_t size_bytes, wb_jld2_data *data) {
    const bool can_be = id == DEFLATE ? size_bytes / WB_MOST_DEFLATED <= data->size_bytes
                                      : data->size_bytes == size_bytes && value > 0;
    unsigned char *out = can_be ? room_for(r, size_bytes, data->offset) : NULL;
    if (can_be && !out) return;
    const bool is_good = can_be && (id != DEFLATE || wb_inflate(false, data->bytes,
                                                                data->size_bytes, out, size_bytes));
    if (!is_good)
        wb_jld2_fault(r, data->offset, "%lld bytes cannot be %s to %lld: they are damaged",
                      (long long)data->size_bytes, id == DEFLATE ? "inflated" : "shuffled back",
                      (long long)size_bytes);
    else if (id == SHUFFLE)
        unshuffle(data->bytes, size_bytes, value, out);
    data->bytes = out, data->size_bytes = size_bytes, data->is_inflated = true;
}

/* ---- layouts ---- */

enum { COMPACT = 0, CONTIGUOUS = 1, CHUNKED = 2, HAS_FILTERS = 2, ONE_CHUNK = 1 };

static void set_data(wb_jld2 *r, uint64_t address, uint64_t size, int64_t from,
                     wb_jld2_data *data) {
    const int64_t bytes = size <= INT64_MAX ? (int64_t)size : -1;
    data->offset = wb_jld2_place(r, address, bytes, from);
    if (data->offset < 0) return;
    data->bytes = r->file->map.bytes + data->offset, data->size_bytes = bytes;
}

static void read_chunked(wb_jld2 *r, const wb_jld2_object *o, wb_jld2_span s, int64_t wanted,
                         wb_jld2_data *data) {
    const int64_t from = s.at;
    const int flags = (int)wb_jld2_take(r, &s, 1), ndim = (int)wb_jld2_take(r, &s, 1);
    const int64_t length = (int64_t)wb_jld2_take(r, &s, 1);
    (void)wb_jld2_skip(r, &s, ndim * length);
    const int index = (int)wb_jld2_take(r, &s, 1);
    if (r->status == WB_OK && index != ONE_CHUNK) {
        data->why_not = "array in many chunks, which HDF5's own library wrote and are not read";
        return;
    }
    const bool has_filters = flags & HAS_FILTERS;
    const uint64_t size = has_filters ? wb_jld2_take(r, &s, 8) : (uint64_t)wanted;
    const uint64_t skipped = has_filters ? wb_jld2_take(r, &s, 4) : 0;
    set_data(r, wb_jld2_take(r, &s, 8), size, from, data);
    filters f;
    if (!read_filters(r, o->filters, skipped, &f)) return;
    data->why_not = f.why_not;
    for (int i = f.count - 1; i >= 0 && !f.why_not && r->status == WB_OK; i--)
        undo(r, f.ids[i], f.values[i], wanted, data);
}

static void read_layout(wb_jld2 *r, const wb_jld2_object *o, int64_t wanted, wb_jld2_data *data) {
    wb_jld2_span s = o->layout;
    const int version = (int)wb_jld2_take(r, &s, 1), kind = (int)wb_jld2_take(r, &s, 1);
    if (r->status != WB_OK) return;
    if (version != 3 && version != 4)
        wb_jld2_fault(r, o->layout.at, "a data layout of version 3 or 4 is expected, not %d",
                      version);
    else if (kind == COMPACT) {
        data->size_bytes = (int64_t)wb_jld2_take(r, &s, 2), data->offset = s.at;
        data->bytes = wb_jld2_skip(r, &s, data->size_bytes);
    } else if (kind == CONTIGUOUS) {
        const int64_t from = s.at;
        const uint64_t address = wb_jld2_take(r, &s, 8), size = wb_jld2_take(r, &s, 8);
        if ((int64_t)address != WB_JLD2_UNDEFINED || size) set_data(r, address, size, from, data);
    } else if (kind == CHUNKED && version == 4)
        read_chunked(r, o, s, wanted, data);
    else
        data->why_not = "array in a layout of HDF5's own library, which is not read";
}

bool wb_jld2_data_of(wb_jld2 *r, const wb_jld2_object *o, const wb_jld2_shape *shape,
                     int64_t element_bytes, wb_jld2_data *data) {
    static const unsigned char nothing[1];
    int64_t wanted;
    *data = (wb_jld2_data){.bytes = nothing, .offset = o->offset};
    const bool is_sound = !__builtin_mul_overflow(shape->count, element_bytes, &wanted);
    if (!o->layout.at)
        wb_jld2_fault(r, o->offset, "the dataset has no data layout");
    else if (!is_sound)
        wb_jld2_fault(r, o->offset, "%lld elements of %lld bytes are too many",
                      (long long)shape->count, (long long)element_bytes);
    else
        read_layout(r, o, wanted, data);
    if (r->status == WB_OK && !data->why_not && data->size_bytes != wanted)
        wb_jld2_fault(r, o->layout.at,
                      "%lld elements of %lld bytes are expected, but the data has "
                      "%lld bytes",
                      (long long)shape->count, (long long)element_bytes,
                      (long long)data->size_bytes);
    return r->status == WB_OK;
}
