/* Records from Julia's BSON. The tree is walked with a stack of its own; what back-references mean
 * is read once, where they are first met, so that what is shared in Julia is one record here. */
#include <string.h>

#include "base/memory.h"
#include "formats/bson.h"

/* A record whose children are being read. */
typedef struct frame {
    wb_record *record;
    wb_bson_cursor children;
    wb_bson_entry *entry; /* of _backrefs, that it is; or NULL */
    int64_t next, expanded;
    bool named_by_keys; /* a document: its keys are the names */
} frame;

typedef struct reader {
    wb_bson bson;
    int depth;
    frame frames[WB_RECORD_DEPTH];
} reader;

/* A list of lists of lists, each two references to the next, is short in a file and endless for who
 * walks it. */
enum { MOST_EXPANDED = 1 << 22 };

/* ---- parts of records ---- */

static wb_record *make(reader *r, wb_record_kind kind, int64_t offset) {
    wb_bson *b = &r->bson;
    if (!wb_bson_may_take(b, sizeof(wb_record), offset)) return NULL;
    wb_record *record = wb_record_new(&b->file->arena, kind);
    if (record)
        record->offset = b->map_offset + offset;
    else
        b->status = WB_ERROR_MEMORY;
    return record;
}

static bool make_room(reader *r, wb_record *record, int64_t count, bool has_names) {
    wb_bson *b = &r->bson;
    const int64_t pointer = sizeof(void *);
    if (!wb_bson_may_take(b, (count * pointer + 16) * (1 + has_names),
                          record->offset - b->map_offset))
        return false;
    if (wb_record_room(&b->file->arena, record, count, has_names)) return true;
    b->status = WB_ERROR_MEMORY;
    return false;
}

static const char *copy(reader *r, const char *text, int64_t size_bytes, int64_t offset) {
    wb_bson *b = &r->bson;
    if (!wb_bson_may_take(b, size_bytes + 1, offset)) return NULL;
    const char *copied = wb_arena_text(&b->file->arena, text, (size_t)size_bytes);
    if (!copied) b->status = WB_ERROR_MEMORY;
    return copied;
}

static const char *copy_text(reader *r, const wb_bson_element *e) {
    return copy(r, (const char *)wb_bson_bytes(&r->bson, e), e->size_bytes, e->offset);
}

static wb_record *make_opaque(reader *r, const char *type, int64_t offset) {
    wb_record *record = make(r, WB_RECORD_OPAQUE, offset);
    if (record) record->type = copy(r, type, (int64_t)strlen(type), offset);
    return record;
}

static void set_data(reader *r, wb_record *record, const wb_bson_element *data) {
    record->data = wb_bson_bytes(&r->bson, data);
    record->data_bytes = data->size_bytes;
}

/* Bytes that are not understood. */
static wb_record *make_opaque_data(reader *r, const char *type, const wb_bson_element *data) {
    wb_record *record = make_opaque(r, type, data->offset);
    if (record) set_data(r, record, data);
    return record;
}

/* A record whose children are the elements of a document or array, to be read next. */
static wb_record *begin(reader *r, wb_record_kind kind, const wb_bson_element *children,
                        bool has_names) {
    wb_bson *b = &r->bson;
    wb_record *record = make(r, kind, children->offset);
    if (!record || !make_room(r, record, wb_bson_count(b, children), has_names)) return NULL;
    if (b->status != WB_OK) return NULL;
    if (r->depth == WB_RECORD_DEPTH) {
        wb_bson_fault(b, children->offset, "values may be nested at most %d deep", WB_RECORD_DEPTH);
        return NULL;
    }
    r->frames[r->depth++] = (frame){.record = record, .children = wb_bson_enter(children)};
    return record;
}

static wb_record *begin_typed(reader *r, wb_record_kind kind, const wb_bson_element *children,
                              const char *type) {
    wb_record *record = begin(r, kind, children, false);
    if (record) record->type = copy(r, type, (int64_t)strlen(type), children->offset);
    return record;
}

static wb_record *begin_document(reader *r, const wb_bson_element *document) {
    wb_record *record = begin(r, WB_RECORD_MAP, document, true);
    if (record) r->frames[r->depth - 1].named_by_keys = true;
    return record;
}

/* ---- names of maps ---- */

/* Whether a list is of texts and symbols alone, so that they can be names. */
static bool are_names(reader *r, const wb_bson_element *list) {
    wb_bson_element name, text;
    for (wb_bson_cursor c = wb_bson_enter(list); wb_bson_next(&r->bson, &c, &name);)
        if (!wb_bson_symbol(&r->bson, &name, &text)) return false;
    return r->bson.status == WB_OK;
}

static void name_children(reader *r, wb_record *map, const wb_bson_element *list) {
    wb_bson *b = &r->bson;
    wb_bson_element name, text;
    int64_t i = 0;
    for (wb_bson_cursor c = wb_bson_enter(list); wb_bson_next(b, &c, &name) && i < map->count; i++)
        if (wb_bson_symbol(b, &name, &text)) map->names[i] = copy_text(r, &text);
    if (b->status == WB_OK && (i < map->count || wb_bson_count(b, list) != i))
        wb_bson_fault(b, list->offset, "there are %lld values, but %lld names",
                      (long long)map->count, (long long)wb_bson_count(b, list));
}

static wb_record *begin_map(reader *r, const wb_bson_element *names,
                            const wb_bson_element *values) {
    wb_record *map = begin(r, WB_RECORD_MAP, values, true);
    if (map) name_children(r, map, names);
    return map;
}

/* The first parameter of a type. False: it has none. */
static bool first_parameter(reader *r, const wb_bson_typename *type, wb_bson_value *first) {
    wb_bson *b = &r->bson;
    wb_bson_value params;
    if (!type->params.type || !wb_bson_resolve(b, &type->params, &params)) return false;
    if (params.element.type != WB_BSON_ARRAY) return false;
    wb_bson_cursor c = wb_bson_enter(&params.element);
    wb_bson_element e;
    return wb_bson_next(b, &c, &e) && wb_bson_resolve(b, &e, first);
}

/* Upsample{:nearest, ...}, LSTM{true, ...}: what a symbol or bool says is noted in the struct. */
static bool note_parameter(reader *r, const wb_bson_typename *type, wb_record *record) {
    wb_bson_value first;
    wb_bson_element name;
    if (!first_parameter(r, type, &first)) return r->bson.status == WB_OK;
    if (first.element.type == WB_BSON_BOOL)
        record->boolean = *wb_bson_bytes(&r->bson, &first.element) == 1;
    if (!wb_bson_has_tag(&r->bson, &first, "symbol")) return true;
    if (!wb_bson_field(&r->bson, &first, &first.fields.name, WB_BSON_STRING, &name)) return false;
    if (wb_bson_is_plain(&r->bson, &name)) record->text = copy_text(r, &name);
    return r->bson.status == WB_OK;
}

/* The names of a NamedTuple{names, types}: {tag: tuple, data: symbols} is its first parameter.
 * False: it has none. */
static bool names_of_tuple(reader *r, const wb_bson_typename *type, wb_bson_element *names) {
    wb_bson *b = &r->bson;
    wb_bson_value first;
    if (!first_parameter(r, type, &first)) return false;
    return wb_bson_has_tag(b, &first, "tuple") &&
           wb_bson_field(b, &first, &first.fields.data, WB_BSON_ARRAY, names) &&
           are_names(r, names);
}

/* ---- arrays ---- */

typedef struct shape {
    int ndim;
    int64_t sizes[WB_MAX_DIMS];
    int64_t count;   /* their product */
    bool is_too_big; /* more dimensions than Weber has; no count then */
} shape;

static bool read_shape(reader *r, const wb_bson_element *list, shape *s) {
    wb_bson *b = &r->bson;
    wb_bson_element e;
    bool is_empty = false;
    *s = (shape){.count = 1};
    for (wb_bson_cursor c = wb_bson_enter(list); !s->is_too_big && wb_bson_next(b, &c, &e);) {
        const int64_t size = wb_bson_is_integer(&e) ? wb_bson_integer(b, &e) : -1;
        if (size < 0 || __builtin_mul_overflow(s->count, size ? size : 1, &s->count)) {
            wb_bson_fault(b, e.offset, "an array's size is %lld", (long long)size);
            return false;
        }
        is_empty |= size == 0;
        s->is_too_big = s->ndim == WB_MAX_DIMS;
        if (!s->is_too_big) s->sizes[s->ndim++] = size;
    }
    if (is_empty) s->count = 0;
    return b->status == WB_OK;
}

static bool are_bools(reader *r, const wb_bson_element *data) {
    const unsigned char *bytes = wb_bson_bytes(&r->bson, data);
    unsigned char all = 0;
    for (int64_t i = 0; i < data->size_bytes; i++) all |= bytes[i];
    if (all > 1) wb_bson_fault(&r->bson, data->offset, "an array of Bool must hold only 0 and 1");
    return all <= 1;
}

/* Whether count elements of the type can have so many bytes. */
static bool has_bytes(reader *r, const char *type, int64_t count, const wb_bson_element *data) {
    const wb_bson_number *number = wb_bson_number_of(type);
    int64_t wanted;
    if (!number && (count ? data->size_bytes % count == 0 : data->size_bytes == 0)) return true;
    if (number && !__builtin_mul_overflow(count, number->size_bytes, &wanted) &&
        wanted == data->size_bytes)
        return true;
    wb_bson_fault(&r->bson, data->offset,
                  "the array has %lld bytes, which do not fit %lld "
                  "elements of type %s",
                  (long long)data->size_bytes, (long long)count, type);
    return false;
}

/* Elements of a type without bits, as the values of an IdSet are: nothing is nothing, others are
 * structs without fields. One record stands in all places. */
static wb_record *read_empty_elements(reader *r, const char *type, const shape *s,
                                      const wb_bson_element *data) {
    const bool is_nothing = strcmp(type, "Core.Nothing") == 0 || strcmp(type, "Nothing") == 0;
    wb_record *list = make(r, WB_RECORD_LIST, data->offset);
    wb_record *one = make(r, is_nothing ? WB_RECORD_NULL : WB_RECORD_STRUCT, data->offset);
    if (!list || !one || !make_room(r, list, s->count, false)) return NULL;
    if (!is_nothing && !(one->type = copy(r, type, (int64_t)strlen(type), data->offset)))
        return NULL;
    for (int64_t i = 0; i < s->count; i++) list->children[i] = one;
    list->depth = 1;
    return list;
}

/* Numbers that Weber has become an array; others stay bytes. */
static wb_record *read_elements(reader *r, const char *type, const shape *s,
                                const wb_bson_element *data) {
    const wb_bson_number *number = wb_bson_number_of(type);
    const bool is_known = number && number->dtype >= 0;
    if (!has_bytes(r, type, s->count, data)) return NULL;
    const bool is_empty = !number && s->count && !data->size_bytes;
    if (is_empty && s->count <= r->bson.map.size_bytes)
        return read_empty_elements(r, type, s, data);
    if (is_known && number->dtype == WB_BOOL && !are_bools(r, data)) return NULL;
    wb_record *record =
        is_known ? make(r, WB_RECORD_ARRAY, data->offset) : make_opaque(r, type, data->offset);
    if (!record) return NULL;
    if (is_known) record->dtype = (uint8_t)number->dtype;
    record->ndim = (uint8_t)s->ndim;
    memcpy(record->sizes, s->sizes, sizeof s->sizes);
    set_data(r, record, data);
    return record;
}

static wb_record *read_list(reader *r, const wb_bson_element *data, int64_t count) {
    wb_record *list = begin(r, WB_RECORD_LIST, data, false);
    if (!list || list->count == count) return list;
    wb_bson_fault(&r->bson, data->offset, "the array should have %lld elements, but has %lld",
                  (long long)count, (long long)list->count);
    return NULL;
}

static wb_record *read_array(reader *r, const wb_bson_value *v) {
    wb_bson *b = &r->bson;
    wb_bson_typename type;
    wb_bson_element size, binary;
    wb_bson_value data;
    shape s;
    if (!wb_bson_type_of(b, v, &type) ||
        !wb_bson_field(b, v, &v->fields.size, WB_BSON_ARRAY, &size) ||
        !wb_bson_resolve(b, &v->fields.data, &data) || !read_shape(r, &size, &s))
        return NULL;
    if (s.is_too_big) return make_opaque(r, "Core.Array", size.offset);
    if (data.element.type == WB_BSON_ARRAY) return read_list(r, &data.element, s.count);
    return wb_bson_field(b, v, &v->fields.data, WB_BSON_BINARY, &binary)
               ? read_elements(r, type.text, &s, &binary)
               : NULL;
}

static wb_record *read_bytes(reader *r, const wb_bson_element *e) {
    wb_record *record = make(r, WB_RECORD_ARRAY, e->offset);
    if (!record) return NULL;
    set_data(r, record, e);
    record->dtype = WB_U8;
    record->ndim = 1;
    record->sizes[0] = e->size_bytes;
    return record;
}

/* ---- structs ---- */

/* A number alone. */
static wb_record *read_number(reader *r, const char *type, const wb_bson_element *data) {
    const wb_bson_number *number = wb_bson_number_of(type);
    if (number && number->size_bytes != data->size_bytes) {
        wb_bson_fault(&r->bson, data->offset, "a %s of %lld bytes", type,
                      (long long)data->size_bytes);
        return NULL;
    }
    wb_record *record = number ? make(r, WB_RECORD_OPAQUE, data->offset) : NULL;
    if (record && wb_bson_set_number(record, number, wb_bson_bytes(&r->bson, data))) return record;
    return make_opaque_data(r, type, data);
}

/* A dictionary's values that are an array of numbers: each becomes a record. */
static wb_record *read_numbers(reader *r, const wb_bson_element *keys, const wb_bson_element *data,
                               const wb_bson_number *number) {
    wb_record *map = make(r, WB_RECORD_MAP, data->offset);
    if (!map || !make_room(r, map, data->size_bytes / number->size_bytes, true)) return NULL;
    name_children(r, map, keys);
    map->depth = map->count > 0;
    for (int64_t i = 0; i < map->count && r->bson.status == WB_OK; i++) {
        wb_bson_element one = *data;
        one.at += i * number->size_bytes;
        one.size_bytes = number->size_bytes;
        map->children[i] = read_number(r, number->name, &one);
        if (map->children[i]) map->children[i]->name = map->names[i];
    }
    return map;
}

/* Dict with its values in a typed array. NULL: not of numbers. */
static wb_record *read_typed_values(reader *r, const wb_bson_element *keys,
                                    const wb_bson_value *values) {
    wb_bson *b = &r->bson;
    wb_bson_typename type;
    wb_bson_element data;
    if (values->element.type == WB_BSON_BINARY)
        return read_numbers(r, keys, &values->element, wb_bson_number_of("UInt8"));
    if (!wb_bson_has_tag(b, values, "array") || !wb_bson_type_of(b, values, &type)) return NULL;
    const wb_bson_number *number = wb_bson_number_of(type.text);
    if (!number || !wb_bson_field(b, values, &values->fields.data, WB_BSON_BINARY, &data))
        return NULL;
    if (data.size_bytes % number->size_bytes == 0) return read_numbers(r, keys, &data, number);
    wb_bson_fault(b, data.offset, "%lld bytes do not fit numbers of type %s",
                  (long long)data.size_bytes, type.text);
    return NULL;
}

/* A Dict: data is [keys, values]. NULL without a fault: its keys are no names. */
static wb_record *read_dictionary(reader *r, const wb_bson_element *data) {
    wb_bson *b = &r->bson;
    wb_bson_element first, second;
    wb_bson_value keys, values;
    wb_bson_cursor c = wb_bson_enter(data);
    if (!wb_bson_next(b, &c, &first) || !wb_bson_next(b, &c, &second) || c.at != c.end) return NULL;
    if (!wb_bson_resolve(b, &first, &keys) || !wb_bson_resolve(b, &second, &values)) return NULL;
    if (keys.element.type != WB_BSON_ARRAY || !are_names(r, &keys.element)) return NULL;
    if (values.element.type == WB_BSON_ARRAY) return begin_map(r, &keys.element, &values.element);
    return read_typed_values(r, &keys.element, &values);
}

/* Structs that hold what only their own process can read: memory of a device, of another
 * library. */
static bool is_beyond(const char *type) {
    return wb_bson_is_device_array(type) || wb_bson_last_is(type, "BigInt") ||
           wb_bson_last_is(type, "BigFloat");
}

static wb_record *read_struct(reader *r, const wb_bson_value *v) {
    wb_bson *b = &r->bson;
    wb_bson_typename type;
    wb_bson_element data, names;
    wb_bson_value held;
    if (!wb_bson_type_of(b, v, &type) || !wb_bson_resolve(b, &v->fields.data, &held)) return NULL;
    if (held.element.type == WB_BSON_BINARY) return read_number(r, type.text, &held.element);
    if (!wb_bson_field(b, v, &v->fields.data, WB_BSON_ARRAY, &data)) return NULL;
    if (wb_bson_last_is(type.text, "NamedTuple") && names_of_tuple(r, &type, &names))
        return begin_map(r, &names, &data);
    if (wb_bson_last_is(type.text, "Dict") || wb_bson_last_is(type.text, "IdDict")) {
        wb_record *map = read_dictionary(r, &data);
        if (map || b->status != WB_OK) return map;
    }
    const bool is_plain = type.is_plain && !is_beyond(type.text);
    wb_record *record =
        begin_typed(r, is_plain ? WB_RECORD_STRUCT : WB_RECORD_OPAQUE, &data, type.text);
    return record && note_parameter(r, &type, record) ? record : NULL;
}

/* ---- other tags ---- */

static wb_record *read_text(reader *r, const wb_bson_element *e) {
    if (!wb_bson_is_plain(&r->bson, e)) return make_opaque_data(r, "Core.String", e);
    wb_record *record = make(r, WB_RECORD_TEXT, e->offset);
    if (record) record->text = copy_text(r, e);
    return record;
}

static wb_record *read_symbol(reader *r, const wb_bson_value *v) {
    wb_bson_element name;
    return wb_bson_field(&r->bson, v, &v->fields.name, WB_BSON_STRING, &name) ? read_text(r, &name)
                                                                              : NULL;
}

static wb_record *read_tuple(reader *r, const wb_bson_value *v) {
    wb_bson_element data;
    return wb_bson_field(&r->bson, v, &v->fields.data, WB_BSON_ARRAY, &data)
               ? begin(r, WB_RECORD_LIST, &data, false)
               : NULL;
}

static wb_record *read_vector_of_types(reader *r, const wb_bson_value *v) {
    wb_bson_element data;
    return wb_bson_field(&r->bson, v, &v->fields.data, WB_BSON_ARRAY, &data)
               ? begin_typed(r, WB_RECORD_OPAQUE, &data, "svec")
               : NULL;
}

/* A type or a module, as a value: "datatype Core.Float32", "ref Base". */
static wb_record *read_name(reader *r, const wb_bson_value *v, const char *tag,
                            const wb_bson_element *field) {
    wb_bson_element list;
    wb_bson_typename name;
    if (!wb_bson_field(&r->bson, v, field, WB_BSON_ARRAY, &list) ||
        !wb_bson_path(&r->bson, &list, &name))
        return NULL;
    char text[WB_BSON_NAME_BYTES + 16];
    (void)snprintf(text, sizeof text, "%s %s", tag, name.text);
    return make_opaque(r, text, v->element.offset);
}

static wb_record *read_datatype(reader *r, const wb_bson_value *v) {
    return read_name(r, v, "datatype", &v->fields.name);
}

static wb_record *read_reference(reader *r, const wb_bson_value *v) {
    return read_name(r, v, "ref", &v->fields.path);
}

/* unionall, jl_anonymous, jl_bottom_type, and what packages add. */
static wb_record *read_unknown(reader *r, const wb_bson_value *v) {
    const wb_bson_element *tag = &v->fields.tag;
    if (!wb_bson_is_plain(&r->bson, tag)) return make_opaque(r, "", v->element.offset);
    wb_record *record = make(r, WB_RECORD_OPAQUE, v->element.offset);
    if (record) record->type = copy_text(r, tag);
    return record;
}

static const struct {
    const char *tag;
    wb_record *(*read)(reader *r, const wb_bson_value *v);
} tags[] = {
    {"array", read_array},   {"struct", read_struct},     {"tuple", read_tuple},
    {"symbol", read_symbol}, {"datatype", read_datatype}, {"svec", read_vector_of_types},
    {"ref", read_reference},
};

static wb_record *read_document(reader *r, const wb_bson_value *v) {
    if (v->fields.tag.type != WB_BSON_STRING) return begin_document(r, &v->element);
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        if (wb_bson_has_tag(&r->bson, v, tags[i].tag)) return tags[i].read(r, v);
    return read_unknown(r, v);
}

/* ---- values ---- */

static wb_record *read_scalar(reader *r, const wb_bson_element *e) {
    const wb_bson *b = &r->bson;
    static const uint8_t kinds[] = {[WB_BSON_DOUBLE] = WB_RECORD_REAL,
                                    [WB_BSON_BOOL] = WB_RECORD_BOOL,
                                    [WB_BSON_NULL] = WB_RECORD_NULL,
                                    [WB_BSON_INT32] = WB_RECORD_INTEGER,
                                    [WB_BSON_INT64] = WB_RECORD_INTEGER};
    wb_record *record = make(r, (wb_record_kind)kinds[e->type], e->offset);
    if (!record) return NULL;
    if (e->type == WB_BSON_DOUBLE)
        (void)wb_bson_set_number(record, wb_bson_number_of("Float64"), wb_bson_bytes(b, e));
    if (e->type == WB_BSON_BOOL) record->boolean = *wb_bson_bytes(b, e) == 1;
    if (wb_bson_is_integer(e)) record->integer = wb_bson_integer(b, e);
    return record;
}

static wb_record *read_new(reader *r, const wb_bson_value *v) {
    const wb_bson_element *e = &v->element;
    switch (e->type) {
    case WB_BSON_DOCUMENT:
        return read_document(r, v);
    case WB_BSON_ARRAY:
        return begin(r, WB_RECORD_LIST, e, false);
    case WB_BSON_STRING:
        return read_text(r, e);
    case WB_BSON_BINARY:
        return read_bytes(r, e);
    default:
        return read_scalar(r, e);
    }
}

/* A reference to something that holds the reference; a model has none, so that it needs not more
 * than a place. */
static wb_record *read_again(reader *r, const wb_bson_entry *entry, int64_t offset) {
    if (!entry->expanded) return make_opaque(r, "cycle", offset);
    if (r->depth + entry->record->depth <= WB_RECORD_DEPTH) return entry->record;
    wb_bson_fault(&r->bson, offset, "values may be nested at most %d deep", WB_RECORD_DEPTH);
    return NULL;
}

/* The record of an element. If it has children that are still to be read, there is one frame more;
 * else *expanded is how many records it is. */
static wb_record *read_value(reader *r, const wb_bson_element *e, int64_t *expanded) {
    wb_bson_value v;
    *expanded = 1;
    if (!wb_bson_resolve(&r->bson, e, &v)) return NULL;
    if (v.entry && v.entry->record) {
        if (v.entry->expanded) *expanded = v.entry->expanded;
        return read_again(r, v.entry, e->offset);
    }
    const int depth = r->depth;
    wb_record *record = read_new(r, &v);
    if (!record) return NULL;
    record->offset = r->bson.map_offset + v.element.offset;
    if (r->depth == depth) *expanded += record->count;
    if (!v.entry) return record;
    v.entry->record = record;
    if (r->depth > depth)
        r->frames[depth].entry = v.entry;
    else
        v.entry->expanded = *expanded;
    return record;
}

static void add(reader *r, frame *f, const wb_record *child, int64_t expanded) {
    f->expanded += expanded;
    if (child->depth >= f->record->depth) f->record->depth = child->depth + 1;
    if (f->expanded > MOST_EXPANDED + r->bson.map.size_bytes)
        wb_bson_fault(&r->bson, f->record->offset - r->bson.map_offset,
                      "back-references repeat what is here more than %d times", MOST_EXPANDED);
}

static void end(reader *r) {
    frame *f = &r->frames[--r->depth];
    if (f->entry) f->entry->expanded = f->expanded + 1;
    if (r->depth > 0) add(r, f - 1, f->record, f->expanded + 1);
}

static void read_child(reader *r, frame *f) {
    wb_bson_element e;
    if (!wb_bson_next(&r->bson, &f->children, &e)) return;
    if (f->named_by_keys && r->depth == 1 && wb_bson_key_is(&e, "_backrefs")) {
        f->record->count--; /* no part of what was saved */
        return;
    }
    if (f->named_by_keys) f->record->names[f->next] = copy(r, e.key, e.key_bytes, e.offset);
    const char *name = f->record->names ? f->record->names[f->next] : NULL;
    const int depth = r->depth;
    int64_t expanded;
    wb_record *child = read_value(r, &e, &expanded);
    if (!child) return;
    if (!child->name) child->name = name;
    f->record->children[f->next++] = child;
    if (r->depth == depth) add(r, f, child, expanded);
}

static void read_children(reader *r) {
    while (r->depth > 0 && r->bson.status == WB_OK) {
        frame *f = &r->frames[r->depth - 1];
        if (f->next == f->record->count)
            end(r);
        else
            read_child(r, f);
    }
}

/* ---- the file ---- */

/* What bson_write.c makes of metadata. */
static wb_record *find_metadata(wb_record *root) {
    for (int64_t i = 0; root->kind == WB_RECORD_MAP && i < root->count; i++) {
        wb_record *map = root->children[i];
        bool is_it = strcmp(root->names[i], "metadata") == 0 && map->kind == WB_RECORD_MAP;
        for (int64_t k = 0; is_it && k < map->count; k++)
            is_it = map->children[k]->kind == WB_RECORD_TEXT;
        if (is_it) return map;
    }
    return NULL;
}

static wb_record *read_tree(reader *r) {
    wb_bson *b = &r->bson;
    wb_bson_element top;
    int64_t expanded;
    if (wb_bson_check(b, &top) != WB_OK || !wb_bson_index(b, &top)) return NULL;
    wb_record *root = read_value(r, &top, &expanded);
    read_children(r);
    return b->status == WB_OK ? root : NULL;
}

wb_record *wb_bson_read_tree(wb_file *file, const wb_mapping *map, int64_t offset) {
    reader *r = wb_alloc(sizeof *r);
    if (!r) return NULL;
    r->bson = (wb_bson){.file = file, .map = *map, .map_offset = offset};
    wb_record *root = read_tree(r);
    wb_release(r);
    return root;
}

wb_status wb_bson_read(wb_file *file) {
    wb_record *root = wb_bson_read_tree(file, &file->map, 0);
    if (!root) return wb_error_status();
    file->root = root;
    file->metadata = find_metadata(root);
    return WB_OK;
}
