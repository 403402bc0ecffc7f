/* Values of a JLD2 file as records: numbers, texts, arrays, references. An object that is reached
 * twice is one record. */
#include <string.h>

#include "formats/jld2.h"

/* Reading is recursive: at most this many objects are read one within the other. */
enum { MOST_CALLS = WB_RECORD_DEPTH + 64 };
/* Elements of a longer array of structs, without references, stay bytes, as in BSON. */
enum { MOST_ELEMENTS = 1024 };

/* ---- numbers ---- */

static const struct {
    int class_, size;
    bool is_signed;
    const char *name;
} plain[] = {
    {WB_JLD2_INTEGER, 1, true, "Core.Int8"},      {WB_JLD2_INTEGER, 2, true, "Core.Int16"},
    {WB_JLD2_INTEGER, 4, true, "Core.Int32"},     {WB_JLD2_INTEGER, 8, true, "Core.Int64"},
    {WB_JLD2_INTEGER, 16, true, "Core.Int128"},   {WB_JLD2_INTEGER, 1, false, "Core.UInt8"},
    {WB_JLD2_INTEGER, 2, false, "Core.UInt16"},   {WB_JLD2_INTEGER, 4, false, "Core.UInt32"},
    {WB_JLD2_INTEGER, 8, false, "Core.UInt64"},   {WB_JLD2_REAL, 2, false, "Core.Float16"},
    {WB_JLD2_INTEGER, 16, false, "Core.UInt128"}, {WB_JLD2_REAL, 4, false, "Core.Float32"},
    {WB_JLD2_REAL, 8, false, "Core.Float64"},     {WB_JLD2_BITS, 1, false, "Core.Bool"},
};

const char *wb_jld2_name_of(const wb_jld2_type *t) {
    if (t->julia) return t->julia->name;
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (plain[i].class_ == t->class_ && plain[i].size == t->size &&
            plain[i].is_signed == t->is_signed)
            return plain[i].name;
    return "a datatype of HDF5 that is not read";
}

static const wb_julia_number *number_of(const wb_jld2_type *t) {
    const bool can_be = t->class_ == WB_JLD2_INTEGER || t->class_ == WB_JLD2_REAL ||
                        t->class_ == WB_JLD2_BITS || t->class_ == WB_JLD2_OPAQUE;
    const wb_julia_number *n = can_be ? wb_julia_number_of(wb_jld2_name_of(t)) : NULL;
    return n && n->size_bytes == t->size ? n : NULL;
}

static bool is_bf16(const wb_jld2_type *t) {
    return t->class_ == WB_JLD2_OPAQUE && t->size == 2 && t->julia &&
           wb_julia_last_is(t->julia->name, "BFloat16");
}

/* Bytes that are not understood. */
static wb_record *read_bytes(wb_jld2 *r, const char *type, const unsigned char *bytes,
                             int64_t size_bytes, int64_t offset) {
    wb_record *record = wb_jld2_make_opaque(r, "", type, offset);
    if (record) record->data = bytes, record->data_bytes = size_bytes;
    return record;
}

static wb_record *read_number(wb_jld2 *r, const wb_jld2_type *t, const unsigned char *bytes,
                              int64_t offset) {
    const wb_julia_number *n = number_of(t);
    wb_record *record = n || is_bf16(t) ? wb_jld2_make(r, WB_RECORD_OPAQUE, offset) : NULL;
    if (record && n && wb_julia_set_number(record, n, bytes)) return record;
    if (!record || n) return read_bytes(r, wb_jld2_name_of(t), bytes, t->size, offset);
    const uint32_t bits = (uint32_t)wb_julia_bits(bytes, 2) << 16;
    float real;
    memcpy(&real, &bits, sizeof real);
    record->kind = WB_RECORD_REAL, record->real = (double)real;
    return record;
}

/* ---- texts ---- */

static wb_record *read_text(wb_jld2 *r, const unsigned char *bytes, int64_t size_bytes,
                            int64_t offset) {
    if (!wb_jld2_spend(r, size_bytes, offset)) return NULL;
    if (size_bytes && memchr(bytes, 0, (size_t)size_bytes))
        return read_bytes(r, "Core.String", bytes, size_bytes, offset);
    wb_record *record = wb_jld2_make(r, WB_RECORD_TEXT, offset);
    if (record) record->text = wb_jld2_copy(r, bytes, size_bytes, offset);
    return record;
}

/* ---- arrays ---- */

static bool are_bools(wb_jld2 *r, const wb_jld2_data *data) {
    unsigned char all = 0;
    if (!data->is_inflated && !wb_jld2_spend(r, data->size_bytes, data->offset)) return false;
    for (int64_t i = 0; i < data->size_bytes; i++) all |= data->bytes[i];
    if (all > 1) wb_jld2_fault(r, data->offset, "an array of Bool must hold only 0 and 1");
    return all <= 1;
}

static wb_record *read_numbers(wb_jld2 *r, const wb_jld2_type *t, const wb_jld2_shape *shape,
                               const wb_jld2_data *data) {
    const wb_julia_number *n = number_of(t);
    const int dtype = is_bf16(t) ? (int)WB_BF16 : n ? n->dtype : -1;
    const bool is_array = dtype >= 0 && !shape->is_too_big && !data->why_not;
    if (is_array && dtype == (int)WB_BOOL && !are_bools(r, data)) return NULL;
    wb_record *record =
        is_array ? wb_jld2_make(r, WB_RECORD_ARRAY, data->offset)
                 : wb_jld2_make_opaque(r, "", data->why_not ? data->why_not : wb_jld2_name_of(t),
                                       data->offset);
    if (!record) return NULL;
    if (is_array) record->dtype = (uint8_t)dtype;
    if (!shape->is_too_big) record->ndim = (uint8_t)shape->ndim;
    memcpy(record->sizes, shape->sizes, sizeof record->sizes);
    if (!data->why_not) record->data = data->bytes, record->data_bytes = data->size_bytes;
    return record;
}

static wb_record *read_list(wb_jld2 *r, const wb_jld2_type *t, int64_t count,
                            const wb_jld2_data *data) {
    wb_record *list = wb_jld2_begin(r, WB_RECORD_LIST, count, false, data->offset);
    for (int64_t i = 0; list && i < count; i++)
        if (!wb_jld2_put(
                r, list, i,
                wb_jld2_value(r, t, data->bytes + i * t->size, data->offset + i * t->size)))
            return NULL;
    return wb_jld2_end(r, list);
}

/* Numbers become an array, what leads elsewhere a list; other structs stay bytes if they are many,
 * complex numbers always. */
static wb_record *read_array(wb_jld2 *r, const wb_jld2_type *t, const wb_jld2_shape *shape,
                             const wb_jld2_data *data) {
    const bool is_complex = t->julia && wb_julia_last_is(t->julia->name, "Complex");
    const bool is_struct = t->class_ == WB_JLD2_COMPOUND && !is_complex;
    const bool is_list = t->has_references || t->class_ == WB_JLD2_TEXT ||
                         (is_struct && shape->count <= MOST_ELEMENTS);
    if (is_list && !data->why_not) return read_list(r, t, shape->count, data);
    return read_numbers(r, t, shape, data);
}

/* The value of a type without data. */
static wb_record *read_nothing(wb_jld2 *r, const wb_jld2_type *t, int64_t offset) {
    if (t->written) return wb_jld2_make_opaque(r, "", t->julia ? t->julia->name : "", offset);
    return t->julia ? wb_jld2_without_data(r, t->julia, offset)
                    : wb_jld2_make(r, WB_RECORD_NULL, offset);
}

/* Elements of a type without data: one record stands for all of them. */
static wb_record *read_nothings(wb_jld2 *r, const wb_jld2_type *t, const wb_jld2_shape *shape,
                                int64_t offset) {
    if (shape->is_too_big || shape->count > r->file->map.size_bytes) {
        wb_record *record = wb_jld2_make_opaque(r, "", wb_jld2_name_of(t), offset);
        if (!record) return NULL;
        record->ndim = (uint8_t)(shape->is_too_big ? 0 : shape->ndim);
        memcpy(record->sizes, shape->sizes, sizeof record->sizes);
        return record;
    }
    wb_record *list = wb_jld2_begin(r, WB_RECORD_LIST, shape->count, false, offset);
    wb_record *one = list ? read_nothing(r, t, offset) : NULL;
    for (int64_t i = 0; one && i < shape->count; i++)
        if (!wb_jld2_put(r, list, i, one)) return NULL;
    return wb_jld2_end(r, list);
}

/* ---- values ---- */

static wb_record *read_heap(wb_jld2 *r, const wb_jld2_type *t, const unsigned char *bytes,
                            int64_t offset) {
    int64_t count;
    const unsigned char *found = wb_jld2_heap(r, bytes, t->element->size, offset, &count);
    if (r->status != WB_OK) return NULL;
    if (!found) return wb_jld2_make(r, WB_RECORD_NULL, offset);
    if (t->is_text) return read_text(r, found, count * t->element->size, offset);
    const wb_jld2_shape shape = {.kind = 1, .ndim = 1, .sizes = {count}, .count = count};
    const wb_jld2_data data = {.bytes = found,
                               .size_bytes = count * t->element->size,
                               .offset = found - r->file->map.bytes};
    return read_array(r, t->element, &shape, &data);
}

static wb_record *read_reference(wb_jld2 *r, const unsigned char *bytes, int64_t offset) {
    const uint64_t address = wb_julia_bits(bytes, 8);
    return address ? wb_jld2_read(r, address, offset) : wb_jld2_make(r, WB_RECORD_NULL, offset);
}

wb_record *wb_jld2_value(wb_jld2 *r, const wb_jld2_type *t, const unsigned char *bytes,
                         int64_t offset) {
    if (r->status != WB_OK) return NULL;
    if (t->written) return wb_jld2_converted(r, t, bytes, offset);
    switch ((wb_jld2_class)t->class_) {
    case WB_JLD2_TEXT:
        return read_text(r, bytes, t->size, offset);
    case WB_JLD2_COMPOUND:
        return wb_jld2_compound(r, t, bytes, offset);
    case WB_JLD2_REFERENCE:
        return read_reference(r, bytes, offset);
    case WB_JLD2_LENGTH:
        return read_heap(r, t, bytes, offset);
    default:
        return t->is_empty ? read_nothing(r, t, offset) : read_number(r, t, bytes, offset);
    }
}

/* ---- objects ---- */

typedef struct dataset {
    const wb_jld2_type *type;
    wb_jld2_shape shape;
    wb_jld2_data data;
    int64_t offset;
    bool is_group, is_type;
} dataset;

static bool describe(wb_jld2 *r, uint64_t address, int64_t from, dataset *d) {
    wb_jld2_object o;
    *d = (dataset){.type = NULL};
    if (!wb_jld2_object_at(r, address, from, &o)) return false;
    d->offset = o.offset;
    d->is_group = o.is_group, d->is_type = !o.is_group && !o.layout.at && !o.space.at;
    if (d->is_group) return true;
    if (!o.type.at) wb_jld2_fault(r, o.offset, "the dataset has no datatype");
    if (r->status != WB_OK) return false;
    d->type =
        d->is_type ? wb_jld2_type_at(r, address, from) : wb_jld2_type_of(r, o.type, o.is_shared);
    if (!d->type || d->is_type) return d->type != NULL;
    return wb_jld2_shape_of(r, &o, &d->shape) &&
           (d->shape.is_null || wb_jld2_data_of(r, &o, &d->shape, d->type->size, &d->data));
}

static wb_record *read_object(wb_jld2 *r, uint64_t address, int64_t from) {
    dataset d;
    if (!describe(r, address, from, &d)) return NULL;
    if (d.is_group) return wb_jld2_group(r, address, from);
    if (d.is_type) return wb_jld2_make_opaque(r, "datatype ", wb_jld2_name_of(d.type), d.offset);
    if (d.shape.is_null && d.shape.kind == 1) return read_nothings(r, d.type, &d.shape, d.offset);
    if (d.shape.is_null) return read_nothing(r, d.type, d.offset);
    if (d.shape.kind == 1) return read_array(r, d.type, &d.shape, &d.data);
    if (d.data.why_not) return wb_jld2_make_opaque(r, "", d.data.why_not, d.offset);
    return wb_jld2_value(r, d.type, d.data.bytes, d.data.offset);
}

wb_record *wb_jld2_read(wb_jld2 *r, uint64_t address, int64_t from) {
    wb_jld2_entry *entry = wb_jld2_entry_of(r, address);
    if (!entry) return NULL;
    if (entry->is_open) return wb_jld2_make_opaque(r, "", "cycle", from);
    if (entry->record) return entry->record;
    if (r->calls == MOST_CALLS) {
        wb_jld2_fault(r, from, "references lead to references more than %d times", MOST_CALLS);
        return NULL;
    }
    entry->is_open = true;
    r->calls++;
    wb_record *record = read_object(r, address, from);
    r->calls--;
    entry = wb_jld2_entry_of(r, address);
    if (entry) entry->record = record, entry->is_open = false;
    return record;
}
