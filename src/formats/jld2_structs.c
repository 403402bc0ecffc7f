/* Structs of a JLD2 file as records: tuples as lists, named tuples and dictionaries with names as
 * maps. Until JLD2 0.5 fields without data were not listed; those of tuples and pairs follow from
 * the parameters of their types. */
#include <stdlib.h>
#include <string.h>

#include "formats/jld2.h"

/* A struct in the file. */
typedef struct source {
    const wb_jld2_type *type;
    const unsigned char *bytes;
    int64_t offset;
} source;

static bool is_named(const wb_jld2_julia *j, const char *last) {
    return j && wb_julia_last_is(j->name, last);
}

/* ---- fields ---- */

static wb_record *read_field(wb_jld2 *r, const source *s, int64_t i) {
    const wb_jld2_field *f = &s->type->fields[i];
    if (f->member < 0 && !f->committed)
        wb_jld2_fault(r, s->type->offset, "field %.80s has neither data nor a type", f->name);
    if (r->status != WB_OK) return NULL;
    if (f->member < 0) return wb_jld2_without_data_at(r, f->committed, s->offset);
    const wb_jld2_member *m = &s->type->members[f->member];
    const wb_jld2_type *t =
        f->committed ? wb_jld2_type_at(r, f->committed, s->type->offset) : m->type;
    if (t && t->size != m->type->size)
        wb_jld2_fault(r, s->type->offset, "field %.80s has %lld bytes, but its type has %lld",
                      f->name, (long long)m->type->size, (long long)t->size);
    if (!t || r->status != WB_OK) return NULL;
    return wb_jld2_value(r, t, s->bytes + m->offset, s->offset + m->offset);
}

/* All fields that are listed. */
static bool put_fields(wb_jld2 *r, const source *s, wb_record *record) {
    for (int64_t i = 0; i < s->type->field_count; i++) {
        if (record->names) record->names[i] = s->type->fields[i].name;
        if (!wb_jld2_put(r, record, i, read_field(r, s, i))) return false;
    }
    return true;
}

static wb_record *read_listed(wb_jld2 *r, const source *s, wb_record_kind kind) {
    wb_record *record =
        wb_jld2_begin(r, kind, s->type->field_count, kind != WB_RECORD_LIST, s->offset);
    return record && put_fields(r, s, record) ? wb_jld2_end(r, record) : NULL;
}

/* Whether field i of a tuple has this name; names NULL: its number. */
static bool is_field(const wb_jld2_field *f, const char *const *names, int64_t i) {
    char number[24];
    (void)snprintf(number, sizeof number, "%lld", (long long)i + 1);
    return strcmp(f->name, names ? names[i] : number) == 0;
}

/* All fields of a tuple or pair: those that are listed, and between them those whose type says all
 * there is. `types` has a parameter for each. */
static wb_record *complete(wb_jld2 *r, const source *s, wb_record *record, const char *const *names,
                           const wb_jld2_julia *types) {
    int64_t next = 0;
    for (int64_t i = 0; record && i < record->count; i++) {
        const bool is_listed =
            next < s->type->field_count && is_field(&s->type->fields[next], names, i);
        const uint64_t address = wb_julia_bits(types->parameters + 8 * i, 8);
        if (record->names) record->names[i] = names[i];
        if (!wb_jld2_put(r, record, i,
                         is_listed ? read_field(r, s, next)
                                   : wb_jld2_without_data_at(r, address, s->offset)))
            return NULL;
        next += is_listed;
    }
    if (record && next < s->type->field_count)
        wb_jld2_fault(r, s->type->offset, "member %.80s is no field of %.200s",
                      s->type->fields[next].name, s->type->julia->name);
    return wb_jld2_end(r, record);
}

static bool is_complete(const wb_jld2 *r, const wb_jld2_type *t) {
    return t->has_names || !r->is_old;
}

/* ---- tuples ---- */

static wb_record *read_tuple(wb_jld2 *r, const source *s) {
    const wb_jld2_julia *j = s->type->julia;
    if (is_complete(r, s->type) || is_named(j, "NTuple") || j->count <= s->type->field_count)
        return read_listed(r, s, WB_RECORD_LIST);
    return complete(r, s, wb_jld2_begin(r, WB_RECORD_LIST, j->count, false, s->offset), NULL, j);
}

/* NamedTuple{names, types} */
static wb_record *read_named_tuple(wb_jld2 *r, const source *s) {
    wb_jld2_parameter names, types;
    wb_jld2_julia *j = s->type->julia;
    if (is_complete(r, s->type) || j->count != 2) return read_listed(r, s, WB_RECORD_MAP);
    if (!wb_jld2_parameter_at(r, j, 0, &names) || !wb_jld2_parameter_at(r, j, 1, &types))
        return NULL;
    const int64_t count = names.value ? names.value->count : 0;
    if (!types.julia || !wb_jld2_is_tuple(types.julia) || types.julia->count != count)
        return read_listed(r, s, WB_RECORD_MAP);
    const char **texts = wb_jld2_list(r, count, sizeof *texts, s->offset);
    for (int64_t i = 0; texts && i < count; i++) {
        const wb_record *name = names.value->children[i];
        texts[i] = name->kind == WB_RECORD_TEXT ? name->text : "";
    }
    if (!texts) return NULL;
    return complete(r, s, wb_jld2_begin(r, WB_RECORD_MAP, count, true, s->offset), texts,
                    types.julia);
}

static wb_record *read_pair(wb_jld2 *r, const source *s) {
    static const char *const names[] = {"first", "second"};
    wb_record *pair = wb_jld2_begin(r, WB_RECORD_STRUCT, 2, true, s->offset);
    if (pair) pair->type = s->type->julia->name;
    return complete(r, s, pair, names, s->type->julia);
}

/* ---- structs ---- */

/* Of an old file: the functions among the type's parameters may be fields. */
static int64_t count_functions(wb_jld2 *r, wb_jld2_julia *j, int64_t *first) {
    int64_t count = 0;
    for (int64_t i = 0; i < j->count && r->status == WB_OK; i++) {
        wb_jld2_parameter p;
        if (!wb_jld2_parameter_at(r, j, i, &p)) return 0;
        if (p.julia && wb_jld2_is_function(p.julia) && count++ == 0) *first = i;
    }
    return count;
}

/* They become children by the parameters' numbers: {1}. */
static bool put_functions(wb_jld2 *r, const source *s, wb_record *record, int64_t i) {
    int64_t at = s->type->field_count;
    for (; at < record->count; i++) {
        wb_jld2_parameter p;
        char name[32];
        if (!wb_jld2_parameter_at(r, s->type->julia, i, &p)) return false;
        if (!p.julia || !wb_jld2_is_function(p.julia)) continue;
        const int length = snprintf(name, sizeof name, "{%lld}", (long long)i + 1);
        record->names[at] = wb_jld2_copy(r, name, length, s->offset);
        if (!record->names[at] ||
            !wb_jld2_put(r, record, at++, wb_jld2_without_data(r, p.julia, s->offset)))
            return false;
    }
    return true;
}

static wb_record *read_struct(wb_jld2 *r, const source *s) {
    wb_jld2_julia *j = s->type->julia;
    int64_t first = 0;
    const int64_t functions = is_complete(r, s->type) ? 0 : count_functions(r, j, &first);
    const bool is_anonymous = wb_jld2_is_anonymous(j);
    const bool is_opaque = is_anonymous || wb_julia_is_beyond(j->name);
    wb_record *record = wb_jld2_begin(r, is_opaque ? WB_RECORD_OPAQUE : WB_RECORD_STRUCT,
                                      s->type->field_count + functions, true, s->offset);
    if (!record) return NULL;
    record->type = j->name;
    if (is_anonymous) {
        const wb_record *named = wb_jld2_make_opaque(r, WB_JLD2_ANONYMOUS, j->name, s->offset);
        if (named) record->type = named->type;
    }
    if (!put_fields(r, s, record) || !put_functions(r, s, record, first) ||
        !wb_jld2_note_parameter(r, j, record))
        return NULL;
    return wb_jld2_end(r, record);
}

/* An element of Vector{Union{A, B}}: {mask, t1, t2} is A where mask is 0, else B. */
static wb_record *read_either(wb_jld2 *r, const source *s) {
    const wb_jld2_type *t = s->type;
    if (t->field_count != 3 || t->fields[0].member != 0 || t->members[0].type->size != 1)
        return read_struct(r, s);
    return read_field(r, s, s->bytes[t->members[0].offset] ? 2 : 1);
}

/* Union: {description, datatypes, ...} */
static wb_record *read_union(wb_jld2 *r, const source *s) {
    const wb_jld2_type *t = s->type;
    const bool is_sound = t->field_count && t->fields[0].member == 0 && t->members[0].type->is_text;
    const wb_record *text = is_sound ? read_field(r, s, 0) : NULL;
    if (r->status != WB_OK) return NULL;
    return wb_jld2_make_opaque(
        r, "datatype ", text && text->kind == WB_RECORD_TEXT ? text->text : "Union", s->offset);
}

static wb_record *read_datatype(wb_jld2 *r, const source *s) {
    const wb_jld2_julia *j = wb_jld2_julia_of(r, s->bytes, s->offset);
    return j ? wb_jld2_make_opaque(r, "datatype ", j->name, s->offset) : NULL;
}

wb_record *wb_jld2_compound(wb_jld2 *r, const wb_jld2_type *t, const unsigned char *bytes,
                            int64_t offset) {
    const source s = {t, bytes, offset};
    const wb_jld2_julia *j = t->julia;
    if (!j) return read_listed(r, &s, WB_RECORD_MAP);
    if (wb_jld2_is_type_of_types(t)) return read_datatype(r, &s);
    if (is_named(j, "Union")) return read_union(r, &s);
    if (is_named(j, "UnionAll")) return wb_jld2_make_opaque(r, "", j->name, offset);
    if (wb_jld2_is_tuple(j)) return read_tuple(r, &s);
    if (is_named(j, "NamedTuple")) return read_named_tuple(r, &s);
    if (is_named(j, "InlineUnionEl")) return read_either(r, &s);
    if (is_named(j, "Pair") && j->count == 2 && !is_complete(r, t)) return read_pair(r, &s);
    return read_struct(r, &s);
}

/* ---- dictionaries and other conversions ---- */

static bool are_pairs(const wb_record *list) {
    for (int64_t i = 0; i < list->count; i++)
        if (list->children[i]->kind != WB_RECORD_STRUCT || list->children[i]->count != 2)
            return false;
    return list->kind == WB_RECORD_LIST;
}

static bool are_names(const wb_record *pairs) {
    for (int64_t i = 0; i < pairs->count; i++)
        if (pairs->children[i]->children[0]->kind != WB_RECORD_TEXT) return false;
    return true;
}

/* The keys (0) or the values (1) of the pairs. */
static wb_record *column(wb_jld2 *r, const wb_record *pairs, int which, int64_t offset) {
    wb_record *list = wb_jld2_begin(r, WB_RECORD_LIST, pairs->count, false, offset);
    for (int64_t i = 0; list && i < pairs->count; i++)
        if (!wb_jld2_put(r, list, i, pairs->children[i]->children[which])) return NULL;
    return wb_jld2_end(r, list);
}

/* Keys that are texts or symbols are names; else a struct of the list of keys and that of values,
 * as from BSON. */
static wb_record *dictionary_of(wb_jld2 *r, wb_record *pairs, const char *type, int64_t offset) {
    if (!pairs || !are_pairs(pairs)) return pairs;
    wb_record *keys = column(r, pairs, 0, offset), *values = column(r, pairs, 1, offset);
    if (!keys || !values) return NULL;
    if (are_names(pairs)) return wb_jld2_name(r, values, keys, offset) ? values : NULL;
    wb_record *dictionary = wb_jld2_begin(r, WB_RECORD_STRUCT, 2, false, offset);
    if (!dictionary || !wb_jld2_put(r, dictionary, 0, keys) ||
        !wb_jld2_put(r, dictionary, 1, values))
        return NULL;
    dictionary->type = type;
    return wb_jld2_end(r, dictionary);
}

static bool is_dictionary(const wb_jld2_julia *j) {
    return is_named(j, "Dict") || is_named(j, "IdDict") || is_named(j, "ImmutableDict");
}

/* The value in the form that it has in the file. */
static wb_record *read_written(wb_jld2 *r, const wb_jld2_type *t, const unsigned char *bytes,
                               int64_t offset) {
    wb_jld2_type plain = *t;
    plain.julia = t->class_ == WB_JLD2_COMPOUND || t->class_ == WB_JLD2_OPAQUE ? t->written : NULL;
    plain.written = NULL;
    return wb_jld2_value(r, &plain, bytes, offset);
}

wb_record *wb_jld2_converted(wb_jld2 *r, const wb_jld2_type *t, const unsigned char *bytes,
                             int64_t offset) {
    const wb_jld2_julia *j = t->julia;
    wb_record *value = read_written(r, t, bytes, offset);
    if (!value || !j) return value;
    if (is_dictionary(j)) {
        const bool is_wrapped = is_named(t->written, "SerializedDict") && value->count == 1;
        return dictionary_of(r, is_wrapped ? value->children[0] : value, j->name, offset);
    }
    if (is_named(j, "Module") && value->kind == WB_RECORD_TEXT)
        return wb_jld2_make_opaque(r, "ref ", value->text, offset);
    if (wb_julia_is_beyond(j->name) || is_named(j, "Ptr"))
        return wb_jld2_make_opaque(r, "", j->name, offset);
    if (value->kind == WB_RECORD_STRUCT) value->type = j->name;
    return value;
}
