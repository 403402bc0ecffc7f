/* Datatypes of a JLD2 file: class and version | bits u24 | size u32, and then by class. Julia's
 * structs, tuples, symbols and all but plain numbers and strings have committed datatypes, which
 * say their Julia type in attributes.
 *
 * JLD2 0.4.51 and 0.4.52 wrote a version of 0, which means 3. */
#include <string.h>

#include "formats/jld2.h"

enum { MOST_NESTED = 32, OLD_ARRAY_BYTES = 28 };

static wb_jld2_type *parse(wb_jld2 *r, wb_jld2_span *s, int depth);

/* ---- classes ---- */

static void parse_integer(wb_jld2 *r, wb_jld2_span *s, wb_jld2_type *t, uint64_t bits) {
    enum { IS_BIG = 1, IS_SIGNED = 8 };
    const int64_t offset = (int64_t)wb_jld2_take(r, s, 2), width = (int64_t)wb_jld2_take(r, s, 2);
    t->is_signed = bits & IS_SIGNED;
    if ((bits & IS_BIG) || offset || width != 8 * t->size) t->class_ = WB_JLD2_OTHER;
}

static void parse_real(wb_jld2 *r, wb_jld2_span *s, wb_jld2_type *t, uint64_t bits) {
    static const struct {
        int64_t size;
        unsigned char exponent, mantissa;
    } rows[] = {{2, 5, 10}, {4, 8, 23}, {8, 11, 52}};
    enum { IS_BIG = 0x41 };
    const unsigned char *b = wb_jld2_skip(r, s, 12);
    bool is_known = false;
    for (int i = 0; b && i < 3; i++)
        is_known |= rows[i].size == t->size && b[5] == rows[i].exponent && b[7] == rows[i].mantissa;
    if (!is_known || (bits & IS_BIG)) t->class_ = WB_JLD2_OTHER;
}

/* A name with its zero byte; versions 1 and 2 pad it to a multiple of 8 bytes. */
static const char *parse_name(wb_jld2 *r, wb_jld2_span *s, bool is_padded) {
    const int64_t at = s->at;
    const char *name = (const char *)r->file->map.bytes + at;
    const size_t length = strnlen(name, (size_t)(s->end - at));
    const int64_t bytes = (int64_t)length + 1;
    (void)wb_jld2_skip(r, s, is_padded ? (bytes + 7) & ~(int64_t)7 : bytes);
    return r->status == WB_OK ? wb_jld2_copy(r, name, (int64_t)length, at) : NULL;
}

static void parse_member(wb_jld2 *r, wb_jld2_span *s, int version, int depth, wb_jld2_type *t,
                         wb_jld2_member *m) {
    const bool is_padded = version == 1 || version == 2;
    const int64_t at = s->at;
    m->name = parse_name(r, s, is_padded);
    m->offset = (int64_t)wb_jld2_take(r, s,
                                      is_padded           ? 4
                                      : t->size <= 0xff   ? 1
                                      : t->size <= 0xffff ? 2
                                                          : 4);
    if (version == 1 && wb_jld2_take(r, s, 1) && r->status == WB_OK)
        wb_jld2_fault(r, at,
                      "a member is an array in the form of datatypes of version 1, which is "
                      "not read");
    if (version == 1) (void)wb_jld2_skip(r, s, OLD_ARRAY_BYTES - 1);
    m->type = r->status == WB_OK ? parse(r, s, depth + 1) : NULL;
    if (!m->type) return;
    t->has_references |= m->type->has_references;
    if (m->offset > t->size || m->type->size > t->size - m->offset)
        wb_jld2_fault(r, at, "member %.80s has %lld bytes at %lld of a datatype of %lld bytes",
                      m->name, (long long)m->type->size, (long long)m->offset, (long long)t->size);
}

/* As many fields; the first ones are the members. */
static void make_fields(wb_jld2 *r, wb_jld2_type *t, int64_t count) {
    t->fields = wb_jld2_list(r, count, sizeof *t->fields, t->offset);
    t->field_count = t->fields ? count : 0;
    for (int64_t i = 0; i < t->field_count; i++)
        t->fields[i] = (wb_jld2_field){.name = i < t->count ? t->members[i].name : "",
                                       .member = i < t->count ? (int)i : -1};
}

static void parse_compound(wb_jld2 *r, wb_jld2_span *s, wb_jld2_type *t, int version, int depth,
                           int64_t count) {
    enum { LEAST_BYTES = 1 + 1 + 8 };
    if (count > (s->end - s->at) / LEAST_BYTES) {
        wb_jld2_fault(r, t->offset,
                      "a datatype should have %lld members, but only %lld bytes "
                      "follow",
                      (long long)count, (long long)(s->end - s->at));
        return;
    }
    t->members = wb_jld2_list(r, count, sizeof *t->members, t->offset);
    for (; t->members && t->count < count && r->status == WB_OK; t->count++)
        parse_member(r, s, version, depth, t, &t->members[t->count]);
    if (r->status == WB_OK) make_fields(r, t, count);
}

static void parse_length(wb_jld2 *r, wb_jld2_span *s, wb_jld2_type *t, uint64_t bits, int depth) {
    t->is_text = (bits & 15) == 1;
    t->has_references = true;
    t->element = parse(r, s, depth + 1);
    if (t->element && t->size != 16)
        wb_jld2_fault(r, t->offset, "a value in a heap has 16 bytes, not %lld", (long long)t->size);
}

/* An array in a datatype: its sizes, and the elements' type. */
static void parse_array(wb_jld2 *r, wb_jld2_span *s, wb_jld2_type *t, int version, int depth) {
    const int64_t ndim = (int64_t)wb_jld2_take(r, s, 1);
    (void)wb_jld2_skip(r, s, version == 2 ? 3 + 8 * ndim : 4 * ndim);
    t->class_ = WB_JLD2_OTHER;
    if (r->status == WB_OK) (void)parse(r, s, depth + 1);
}

/* Names for numbers. */
static void parse_enumeration(wb_jld2 *r, wb_jld2_span *s, wb_jld2_type *t, int version, int depth,
                              int64_t count) {
    const wb_jld2_type *base = parse(r, s, depth + 1);
    t->class_ = WB_JLD2_OTHER;
    for (int64_t i = 0; base && i < count && r->status == WB_OK; i++)
        (void)parse_name(r, s, version < 3 && version > 0);
    if (base && r->status == WB_OK) (void)wb_jld2_skip(r, s, count * base->size);
}

static void parse_class(wb_jld2 *r, wb_jld2_span *s, wb_jld2_type *t, int version, uint64_t bits,
                        int depth) {
    enum { TIME = 2, ENUMERATION = 8, ARRAY = 10 };
    switch (t->class_) {
    case WB_JLD2_INTEGER:
        parse_integer(r, s, t, bits);
        return;
    case WB_JLD2_REAL:
        parse_real(r, s, t, bits);
        return;
    case WB_JLD2_BITS:
        (void)wb_jld2_skip(r, s, 4);
        if (t->size != 1) t->class_ = WB_JLD2_OTHER;
        return;
    case WB_JLD2_TEXT:
        return;
    case WB_JLD2_OPAQUE:
        (void)wb_jld2_skip(r, s, (int64_t)(bits & 255));
        return;
    case WB_JLD2_COMPOUND:
        parse_compound(r, s, t, version, depth, (int64_t)(bits & 0xffff));
        return;
    case WB_JLD2_REFERENCE:
        t->has_references = true;
        if (t->size != 8) t->class_ = WB_JLD2_OTHER;
        return;
    case WB_JLD2_LENGTH:
        parse_length(r, s, t, bits, depth);
        return;
    case TIME:
        (void)wb_jld2_skip(r, s, 2);
        t->class_ = WB_JLD2_OTHER;
        return;
    case ENUMERATION:
        parse_enumeration(r, s, t, version, depth, (int64_t)(bits & 0xffff));
        return;
    case ARRAY:
        parse_array(r, s, t, version, depth);
        return;
    default:
        wb_jld2_fault(r, t->offset, "a datatype of class %d is not known", t->class_);
    }
}

/* Recursive, at most MOST_NESTED deep. */
static wb_jld2_type *parse(wb_jld2 *r, wb_jld2_span *s, int depth) {
    const int64_t at = s->at;
    const int first = (int)wb_jld2_take(r, s, 1), version = first >> 4;
    const uint64_t bits = wb_jld2_take(r, s, 3);
    const int64_t size = (int64_t)wb_jld2_take(r, s, 4);
    if (r->status == WB_OK && depth > MOST_NESTED)
        wb_jld2_fault(r, at, "datatypes may be nested at most %d deep", MOST_NESTED);
    if (r->status == WB_OK && version > 5)
        wb_jld2_fault(r, at, "a datatype of version 0 to 5 is expected, not %d", version);
    wb_jld2_type *t = r->status == WB_OK ? wb_jld2_list(r, 1, sizeof *t, at) : NULL;
    if (!t) return NULL;
    t->class_ = (uint8_t)(first & 15), t->size = size, t->offset = at;
    parse_class(r, s, t, version, bits, depth);
    return r->status == WB_OK ? t : NULL;
}

/* ---- committed datatypes ---- */

static wb_jld2_julia *julia_in(wb_jld2 *r, const wb_jld2_object *o, wb_jld2_attribute_name name) {
    wb_jld2_attribute a;
    if (!wb_jld2_attribute_of(r, o, name, &a)) return NULL;
    const unsigned char *bytes = wb_jld2_skip(r, &a.data, WB_JLD2_JULIA_BYTES);
    return bytes ? wb_jld2_julia_of(r, bytes, a.data.at - WB_JLD2_JULIA_BYTES) : NULL;
}

/* Members stand in the order of the fields; those without data are missing. */
static void name_fields(wb_jld2 *r, wb_jld2_type *t, wb_jld2_attribute names) {
    int member = 0;
    t->has_names = true;
    make_fields(r, t, (names.data.end - names.data.at) / 16);
    for (int64_t i = 0; i < t->field_count && r->status == WB_OK; i++) {
        const int64_t at = names.data.at;
        int64_t length;
        const unsigned char *text =
            wb_jld2_heap(r, wb_jld2_skip(r, &names.data, 16), 1, at, &length);
        wb_jld2_field *f = &t->fields[i];
        f->name = wb_jld2_copy(r, text ? text : (const unsigned char *)"", length, at);
        const bool is_member =
            f->name && member < t->count && strcmp(f->name, t->members[member].name) == 0;
        f->member = is_member ? member++ : -1;
    }
    if (r->status == WB_OK && member < t->count)
        wb_jld2_fault(r, t->offset,
                      "member %.80s of a datatype is none of its fields, or in "
                      "another order",
                      t->members[member].name);
}

static void type_fields(wb_jld2 *r, wb_jld2_type *t, wb_jld2_attribute types) {
    const int64_t count = (types.data.end - types.data.at) / 8;
    if (count != t->field_count) {
        wb_jld2_fault(r, types.data.at, "%lld fields have types, but there are %lld",
                      (long long)count, (long long)t->field_count);
        return;
    }
    for (int64_t i = 0; i < count; i++) t->fields[i].committed = wb_jld2_take(r, &types.data, 8);
}

static void read_fields(wb_jld2 *r, const wb_jld2_object *o, wb_jld2_type *t) {
    wb_jld2_attribute names, types;
    const bool has_names = wb_jld2_attribute_of(r, o, WB_JLD2_FIELD_NAMES, &names);
    const bool has_types = wb_jld2_attribute_of(
        r, o, has_names ? WB_JLD2_FIELD_TYPES : WB_JLD2_FIELD_DATATYPES, &types);
    if (r->status != WB_OK) return;
    if (has_names) name_fields(r, t, names);
    if (has_types && r->status == WB_OK) type_fields(r, t, types);
}

static wb_jld2_type *read_committed(wb_jld2 *r, uint64_t address, int64_t from) {
    wb_jld2_object o;
    if (!wb_jld2_object_at(r, address, from, &o)) return NULL;
    if (!o.type.at || o.is_shared || o.space.at || o.layout.at) {
        wb_jld2_fault(r, o.offset, "a committed datatype is expected");
        return NULL;
    }
    wb_jld2_type *t = parse(r, &o.type, 0);
    if (!t) return NULL;
    t->address = address;
    t->julia = julia_in(r, &o, WB_JLD2_JULIA_TYPE);
    t->written = julia_in(r, &o, WB_JLD2_WRITTEN_TYPE);
    t->is_empty = o.attributes[WB_JLD2_EMPTY].at != 0;
    if (t->class_ == WB_JLD2_COMPOUND) read_fields(r, &o, t);
    return r->status == WB_OK ? t : NULL;
}

const wb_jld2_type *wb_jld2_type_at(wb_jld2 *r, uint64_t address, int64_t from) {
    wb_jld2_entry *entry = wb_jld2_entry_of(r, address);
    if (!entry || entry->type) return entry ? entry->type : NULL;
    const wb_jld2_type *type = read_committed(r, address, from);
    entry = wb_jld2_entry_of(r, address);
    if (entry) entry->type = type;
    return type;
}

const wb_jld2_type *wb_jld2_type_of(wb_jld2 *r, wb_jld2_span message, bool is_shared) {
    if (!is_shared) return parse(r, &message, 0);
    const int64_t at = message.at;
    const uint64_t kind = wb_jld2_take(r, &message, 2), address = wb_jld2_take(r, &message, 8);
    if (r->status == WB_OK && kind != 0x0203)
        wb_jld2_fault(r, at, "a shared datatype should have version 3 and type 2, not %d and %d",
                      (int)(kind & 255), (int)(kind >> 8));
    return r->status == WB_OK ? wb_jld2_type_at(r, address, at) : NULL;
}
