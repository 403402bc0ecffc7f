/* Turns a document of Julia's into a record: arrays, structs, dictionaries, and other documents
 * with a tag. */
#include <string.h>

#include "formats/bson_reader.h"

/* ---- names of maps ---- */

/* Whether a list is of texts and symbols alone, so that they can be names. */
static bool are_names(wb_bson_reader *r, const wb_bson_element *list) {
    wb_bson_element name, text;
    for (wb_bson_cursor c = wb_bson_enter(list); wb_bson_next(&r->bson, &c, &name);)
        if (!wb_bson_symbol(&r->bson, &name, &text)) return false;
    return r->bson.status == WB_OK;
}

static void name_children(wb_bson_reader *r, wb_record *map, const wb_bson_element *list) {
    wb_bson *b = &r->bson;
    wb_bson_element name, text;
    int64_t i = 0;
    for (wb_bson_cursor c = wb_bson_enter(list); wb_bson_next(b, &c, &name) && i < map->count; i++)
        if (wb_bson_symbol(b, &name, &text)) map->names[i] = wb_bson_copy_text(r, &text);
    if (b->status == WB_OK && (i < map->count || wb_bson_count(b, list) != i))
        wb_bson_fault(b, list->offset, "there are %lld values, but %lld names",
                      (long long)map->count, (long long)wb_bson_count(b, list));
}

static wb_record *begin_map(wb_bson_reader *r, const wb_bson_element *names,
                            const wb_bson_element *values) {
    wb_record *map = wb_bson_begin(r, WB_RECORD_MAP, values, true);
    if (map) name_children(r, map, names);
    return map;
}

/* The first parameter of a type. False: it has none. */
static bool first_parameter(wb_bson_reader *r, const wb_bson_typename *type, wb_bson_value *first) {
    wb_bson *b = &r->bson;
    wb_bson_value params;
    if (!type->params.type || !wb_bson_resolve(b, &type->params, &params)) return false;
    if (params.element.type != WB_BSON_ARRAY) return false;
    wb_bson_cursor c = wb_bson_enter(&params.element);
    wb_bson_element e;
    return wb_bson_next(b, &c, &e) && wb_bson_resolve(b, &e, first);
}

/* Upsample{:nearest, ...}, LSTM{true, ...}: what a symbol or bool says is noted in the struct. */
static bool note_parameter(wb_bson_reader *r, const wb_bson_typename *type, wb_record *record) {
    wb_bson_value first;
    wb_bson_element name;
    if (!first_parameter(r, type, &first)) return r->bson.status == WB_OK;
    if (first.element.type == WB_BSON_BOOL)
        record->boolean = *wb_bson_bytes(&r->bson, &first.element) == 1;
    if (!wb_bson_has_tag(&r->bson, &first, "symbol")) return true;
    if (!wb_bson_field(&r->bson, &first, &first.fields.name, WB_BSON_STRING, &name)) return false;
    if (wb_bson_is_plain(&r->bson, &name)) record->text = wb_bson_copy_text(r, &name);
    return r->bson.status == WB_OK;
}

/* The names of a NamedTuple{names, types}: {tag: tuple, data: symbols} is its first parameter.
 * False: it has none. */
static bool names_of_tuple(wb_bson_reader *r, const wb_bson_typename *type,
                           wb_bson_element *names) {
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

static bool read_shape(wb_bson_reader *r, const wb_bson_element *list, shape *s) {
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

static bool are_bools(wb_bson_reader *r, const wb_bson_element *data) {
    const unsigned char *bytes = wb_bson_bytes(&r->bson, data);
    unsigned char all = 0;
    for (int64_t i = 0; i < data->size_bytes; i++) all |= bytes[i];
    if (all > 1) wb_bson_fault(&r->bson, data->offset, "an array of Bool must hold only 0 and 1");
    return all <= 1;
}

/* Whether count elements of the type can have this many bytes. */
static bool has_bytes(wb_bson_reader *r, const char *type, int64_t count,
                      const wb_bson_element *data) {
    const wb_julia_number *number = wb_julia_number_of(type);
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

/* Elements of a type of no bytes, such as the values of an IdSet: `nothing`, or a struct without
 * fields. One record is used for all of them. */
static wb_record *read_empty_elements(wb_bson_reader *r, const char *type, const shape *s,
                                      const wb_bson_element *data) {
    const bool is_nothing = strcmp(type, "Core.Nothing") == 0 || strcmp(type, "Nothing") == 0;
    wb_record *list = wb_bson_make(r, WB_RECORD_LIST, data->offset);
    wb_record *one = wb_bson_make(r, is_nothing ? WB_RECORD_NULL : WB_RECORD_STRUCT, data->offset);
    if (!list || !one || !wb_bson_make_room(r, list, s->count, false)) return NULL;
    if (!is_nothing && !(one->type = wb_bson_copy(r, type, (int64_t)strlen(type), data->offset)))
        return NULL;
    for (int64_t i = 0; i < s->count; i++) list->children[i] = one;
    list->depth = 1;
    return list;
}

/* Numbers that Weber has become an array; others stay bytes. */
static wb_record *read_elements(wb_bson_reader *r, const char *type, const shape *s,
                                const wb_bson_element *data) {
    const wb_julia_number *number = wb_julia_number_of(type);
    const bool is_known = number && number->dtype >= 0;
    if (!has_bytes(r, type, s->count, data)) return NULL;
    const bool is_empty = !number && s->count && !data->size_bytes;
    if (is_empty && s->count <= r->bson.map.size_bytes)
        return read_empty_elements(r, type, s, data);
    if (is_known && number->dtype == WB_BOOL && !are_bools(r, data)) return NULL;
    wb_record *record = is_known ? wb_bson_make(r, WB_RECORD_ARRAY, data->offset)
                                 : wb_bson_make_opaque(r, type, data->offset);
    if (!record) return NULL;
    if (is_known) record->dtype = (uint8_t)number->dtype;
    record->ndim = (uint8_t)s->ndim;
    memcpy(record->sizes, s->sizes, sizeof s->sizes);
    wb_bson_set_data(r, record, data);
    return record;
}

static wb_record *read_list(wb_bson_reader *r, const wb_bson_element *data, int64_t count) {
    wb_record *list = wb_bson_begin(r, WB_RECORD_LIST, data, false);
    if (!list || list->count == count) return list;
    wb_bson_fault(&r->bson, data->offset, "the array should have %lld elements, but has %lld",
                  (long long)count, (long long)list->count);
    return NULL;
}

static wb_record *read_array(wb_bson_reader *r, const wb_bson_value *v) {
    wb_bson *b = &r->bson;
    wb_bson_typename type;
    wb_bson_element size, binary;
    wb_bson_value data;
    shape s;
    if (!wb_bson_type_of(b, v, &type) ||
        !wb_bson_field(b, v, &v->fields.size, WB_BSON_ARRAY, &size) ||
        !wb_bson_resolve(b, &v->fields.data, &data) || !read_shape(r, &size, &s))
        return NULL;
    if (s.is_too_big) return wb_bson_make_opaque(r, "Core.Array", size.offset);
    if (data.element.type == WB_BSON_ARRAY) return read_list(r, &data.element, s.count);
    return wb_bson_field(b, v, &v->fields.data, WB_BSON_BINARY, &binary)
               ? read_elements(r, type.text, &s, &binary)
               : NULL;
}

wb_record *wb_bson_read_bytes(wb_bson_reader *r, const wb_bson_element *e) {
    wb_record *record = wb_bson_make(r, WB_RECORD_ARRAY, e->offset);
    if (!record) return NULL;
    wb_bson_set_data(r, record, e);
    record->dtype = WB_U8;
    record->ndim = 1;
    record->sizes[0] = e->size_bytes;
    return record;
}

/* ---- structs ---- */

/* A number alone. */
static wb_record *read_number(wb_bson_reader *r, const char *type, const wb_bson_element *data) {
    const wb_julia_number *number = wb_julia_number_of(type);
    if (number && number->size_bytes != data->size_bytes) {
        wb_bson_fault(&r->bson, data->offset, "a %s of %lld bytes", type,
                      (long long)data->size_bytes);
        return NULL;
    }
    wb_record *record = number ? wb_bson_make(r, WB_RECORD_OPAQUE, data->offset) : NULL;
    if (record && wb_julia_set_number(record, number, wb_bson_bytes(&r->bson, data))) return record;
    return wb_bson_make_opaque_data(r, type, data);
}

/* A dictionary's values that are an array of numbers: each becomes a record. */
static wb_record *read_numbers(wb_bson_reader *r, const wb_bson_element *keys,
                               const wb_bson_element *data, const wb_julia_number *number) {
    wb_record *map = wb_bson_make(r, WB_RECORD_MAP, data->offset);
    if (!map || !wb_bson_make_room(r, map, data->size_bytes / number->size_bytes, true))
        return NULL;
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
static wb_record *read_typed_values(wb_bson_reader *r, const wb_bson_element *keys,
                                    const wb_bson_value *values) {
    wb_bson *b = &r->bson;
    wb_bson_typename type;
    wb_bson_element data;
    if (values->element.type == WB_BSON_BINARY)
        return read_numbers(r, keys, &values->element, wb_julia_number_of("UInt8"));
    if (!wb_bson_has_tag(b, values, "array") || !wb_bson_type_of(b, values, &type)) return NULL;
    const wb_julia_number *number = wb_julia_number_of(type.text);
    if (!number || !wb_bson_field(b, values, &values->fields.data, WB_BSON_BINARY, &data))
        return NULL;
    if (data.size_bytes % number->size_bytes == 0) return read_numbers(r, keys, &data, number);
    wb_bson_fault(b, data.offset, "%lld bytes do not fit numbers of type %s",
                  (long long)data.size_bytes, type.text);
    return NULL;
}

/* A Dict: data is [keys, values]. NULL without a fault: its keys are not names. */
static wb_record *read_dictionary(wb_bson_reader *r, const wb_bson_element *data) {
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

static wb_record *read_struct(wb_bson_reader *r, const wb_bson_value *v) {
    wb_bson *b = &r->bson;
    wb_bson_typename type;
    wb_bson_element data, names;
    wb_bson_value held;
    if (!wb_bson_type_of(b, v, &type) || !wb_bson_resolve(b, &v->fields.data, &held)) return NULL;
    if (held.element.type == WB_BSON_BINARY) return read_number(r, type.text, &held.element);
    if (!wb_bson_field(b, v, &v->fields.data, WB_BSON_ARRAY, &data)) return NULL;
    if (wb_julia_last_is(type.text, "NamedTuple") && names_of_tuple(r, &type, &names))
        return begin_map(r, &names, &data);
    if (wb_julia_last_is(type.text, "Dict") || wb_julia_last_is(type.text, "IdDict")) {
        wb_record *map = read_dictionary(r, &data);
        if (map || b->status != WB_OK) return map;
    }
    const bool is_plain = type.is_plain && !wb_julia_is_beyond(type.text);
    wb_record *record =
        wb_bson_begin_typed(r, is_plain ? WB_RECORD_STRUCT : WB_RECORD_OPAQUE, &data, type.text);
    return record && note_parameter(r, &type, record) ? record : NULL;
}

/* ---- other tags ---- */

wb_record *wb_bson_read_text(wb_bson_reader *r, const wb_bson_element *e) {
    if (!wb_bson_is_plain(&r->bson, e)) return wb_bson_make_opaque_data(r, "Core.String", e);
    wb_record *record = wb_bson_make(r, WB_RECORD_TEXT, e->offset);
    if (record) record->text = wb_bson_copy_text(r, e);
    return record;
}

static wb_record *read_symbol(wb_bson_reader *r, const wb_bson_value *v) {
    wb_bson_element name;
    return wb_bson_field(&r->bson, v, &v->fields.name, WB_BSON_STRING, &name)
               ? wb_bson_read_text(r, &name)
               : NULL;
}

static wb_record *read_tuple(wb_bson_reader *r, const wb_bson_value *v) {
    wb_bson_element data;
    return wb_bson_field(&r->bson, v, &v->fields.data, WB_BSON_ARRAY, &data)
               ? wb_bson_begin(r, WB_RECORD_LIST, &data, false)
               : NULL;
}

static wb_record *read_vector_of_types(wb_bson_reader *r, const wb_bson_value *v) {
    wb_bson_element data;
    return wb_bson_field(&r->bson, v, &v->fields.data, WB_BSON_ARRAY, &data)
               ? wb_bson_begin_typed(r, WB_RECORD_OPAQUE, &data, "svec")
               : NULL;
}

/* A type or a module, as a value: "datatype Core.Float32", "ref Base". */
static wb_record *read_name(wb_bson_reader *r, const wb_bson_value *v, const char *tag,
                            const wb_bson_element *field) {
    wb_bson_element list;
    wb_bson_typename name;
    if (!wb_bson_field(&r->bson, v, field, WB_BSON_ARRAY, &list) ||
        !wb_bson_path(&r->bson, &list, &name))
        return NULL;
    char text[WB_BSON_NAME_BYTES + 16];
    (void)snprintf(text, sizeof text, "%s %s", tag, name.text);
    return wb_bson_make_opaque(r, text, v->element.offset);
}

static wb_record *read_datatype(wb_bson_reader *r, const wb_bson_value *v) {
    return read_name(r, v, "datatype", &v->fields.name);
}

static wb_record *read_reference(wb_bson_reader *r, const wb_bson_value *v) {
    return read_name(r, v, "ref", &v->fields.path);
}

/* unionall, jl_anonymous, jl_bottom_type, and what packages add. */
static wb_record *read_unknown(wb_bson_reader *r, const wb_bson_value *v) {
    const wb_bson_element *tag = &v->fields.tag;
    if (!wb_bson_is_plain(&r->bson, tag)) return wb_bson_make_opaque(r, "", v->element.offset);
    wb_record *record = wb_bson_make(r, WB_RECORD_OPAQUE, v->element.offset);
    if (record) record->type = wb_bson_copy_text(r, tag);
    return record;
}

static const struct {
    const char *tag;
    wb_record *(*read)(wb_bson_reader *r, const wb_bson_value *v);
} tags[] = {
    {"array", read_array},   {"struct", read_struct},     {"tuple", read_tuple},
    {"symbol", read_symbol}, {"datatype", read_datatype}, {"svec", read_vector_of_types},
    {"ref", read_reference},
};

wb_record *wb_bson_read_tagged(wb_bson_reader *r, const wb_bson_value *v) {
    if (v->fields.tag.type != WB_BSON_STRING) return wb_bson_begin_document(r, &v->element);
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        if (wb_bson_has_tag(&r->bson, v, tags[i].tag)) return tags[i].read(r, v);
    return read_unknown(r, v);
}
