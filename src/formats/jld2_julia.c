/* Julia's types in a JLD2 file: {name: a text in a heap, parameters: addresses in a heap}. A
 * parameter is a committed datatype, a dataset that is such a type, or a dataset with a value.
 *
 * Fields without data (functions, `nothing`, ()) are not in the file; what they are follows from
 * their types. */
#include <string.h>

#include "formats/jld2.h"

/* ---- names ---- */

/* Without Main, and without the doubled names of old files: "Flux.Dense" for "Main.Flux.Dense" and
 * "Flux.Flux.Dense". */
static char *tidy(char *name) {
    for (;;) {
        const char *dot = strchr(name, '.');
        const size_t part = dot ? (size_t)(dot - name) : 0;
        const bool is_double = dot && strncmp(dot + 1, name, part) == 0 && dot[1 + part] == '.';
        const bool is_main = part == 4 && memcmp(name, "Main", 4) == 0 && dot[1];
        if (!is_double && !is_main) return name;
        name += part + 1;
    }
}

wb_jld2_julia *wb_jld2_julia_of(wb_jld2 *r, const unsigned char *bytes, int64_t offset) {
    int64_t length;
    const unsigned char *name = wb_jld2_heap(r, bytes, 1, offset, &length);
    wb_jld2_julia *j = wb_jld2_list(r, 1, sizeof *j, offset);
    if (!j || r->status != WB_OK) return NULL;
    j->offset = offset;
    char *copied = wb_jld2_list(r, length + 1, 1, offset);
    if (!copied) return NULL;
    if (length) memcpy(copied, name, (size_t)length);
    j->name = tidy(copied);
    j->parameters = wb_jld2_heap(r, bytes + 16, 8, offset, &j->count);
    return r->status == WB_OK ? j : NULL;
}

static bool is_named(const wb_jld2_julia *j, const char *last) {
    return j && wb_julia_last_is(j->name, last);
}

bool wb_jld2_is_type_of_types(const wb_jld2_type *t) {
    return is_named(t->julia, "DataType") && t->class_ == WB_JLD2_COMPOUND &&
           t->size == WB_JLD2_JULIA_BYTES;
}

bool wb_jld2_is_tuple(const wb_jld2_julia *j) {
    return is_named(j, "Tuple") || is_named(j, "NTuple");
}

/* "NNlib.#relu" */
bool wb_jld2_is_function(const wb_jld2_julia *j) {
    const char *dot = strrchr(j->name, '.');
    return (dot ? dot + 1 : j->name)[0] == '#';
}

/* "Main.#3#4", "Main.#f#5": only the program that wrote it has such a function. */
bool wb_jld2_is_anonymous(const wb_jld2_julia *j) {
    const char *dot = strrchr(j->name, '.'), *last = dot ? dot + 1 : j->name;
    return *last == '#' && strchr(last + 1, '#');
}

/* ---- parameters ---- */

/* A dataset that is a type, or a value. */
static bool read_parameter(wb_jld2 *r, uint64_t address, int64_t from, wb_jld2_parameter *p) {
    wb_jld2_object o;
    if (!wb_jld2_object_at(r, address, from, &o)) return false;
    if (!o.layout.at && !o.is_group) {
        p->type = wb_jld2_type_at(r, address, from);
        return p->type != NULL;
    }
    const wb_jld2_type *t = o.is_shared && !o.is_group ? wb_jld2_type_of(r, o.type, true) : NULL;
    if (t && wb_jld2_is_type_of_types(t)) {
        wb_jld2_shape shape;
        wb_jld2_data data;
        if (!wb_jld2_shape_of(r, &o, &shape) || !wb_jld2_data_of(r, &o, &shape, t->size, &data))
            return false;
        if (data.size_bytes == WB_JLD2_JULIA_BYTES && !data.why_not)
            p->julia = wb_jld2_julia_of(r, data.bytes, data.offset);
    }
    if (r->status == WB_OK && !p->julia) p->value = wb_jld2_read(r, address, from);
    return r->status == WB_OK;
}

static bool parameter_of(wb_jld2 *r, uint64_t address, int64_t from, wb_jld2_parameter *p) {
    *p = (wb_jld2_parameter){.type = NULL};
    wb_jld2_entry *entry = wb_jld2_entry_of(r, address);
    if (!entry) return false;
    p->type = entry->type, p->julia = entry->julia;
    if (entry->is_value && !entry->is_open) p->value = entry->record;
    if (!p->type && !p->julia && !p->value) {
        if (!read_parameter(r, address, from, p)) return false;
        entry = wb_jld2_entry_of(r, address);
        if (!entry) return false;
        entry->julia = p->julia, entry->is_value = p->value != NULL;
    }
    if (p->type) p->julia = p->type->julia;
    return true;
}

bool wb_jld2_parameter_at(wb_jld2 *r, wb_jld2_julia *j, int64_t i, wb_jld2_parameter *p) {
    const uint64_t address = wb_julia_bits(j->parameters + 8 * i, 8);
    return parameter_of(r, address, j->offset, p);
}

bool wb_jld2_note_parameter(wb_jld2 *r, wb_jld2_julia *j, wb_record *record) {
    wb_jld2_parameter p;
    if (!j || !j->count) return r->status == WB_OK;
    if (!j->is_noted) {
        if (!wb_jld2_parameter_at(r, j, 0, &p)) return false;
        j->is_noted = true;
        j->boolean = p.value && p.value->kind == WB_RECORD_BOOL && p.value->boolean;
        j->text = p.value && p.value->kind == WB_RECORD_TEXT ? p.value->text : NULL;
    }
    record->boolean = j->boolean, record->text = j->text;
    return true;
}

/* ---- values without data ---- */

/* What may be in NTuple{N, T}: no bytes in the file stand for the elements. */
static int64_t size_of_tuple(wb_jld2 *r, wb_jld2_julia *j) {
    enum { MOST = 1 << 12 };
    wb_jld2_parameter p;
    if (j->count != 2 || !wb_jld2_parameter_at(r, j, 0, &p)) return 0;
    const int64_t count = p.value && p.value->kind == WB_RECORD_INTEGER ? p.value->integer : 0;
    if (count >= 0 && count <= MOST) return count;
    wb_jld2_fault(r, j->offset,
                  "a tuple without data should have %lld elements; at most %d are "
                  "read",
                  (long long)count, MOST);
    return 0;
}

static wb_record *tuple_without(wb_jld2 *r, wb_jld2_julia *j, int64_t offset) {
    const bool is_repeated = is_named(j, "NTuple");
    const int64_t count = is_repeated ? size_of_tuple(r, j) : j->count;
    wb_record *list = wb_jld2_begin(r, WB_RECORD_LIST, count, false, offset);
    for (int64_t i = 0; list && i < count && r->status == WB_OK; i++) {
        const uint64_t address = wb_julia_bits(j->parameters + 8 * (is_repeated ? 1 : i), 8);
        if (!wb_jld2_put(r, list, i, wb_jld2_without_data_at(r, address, offset))) return NULL;
    }
    return wb_jld2_end(r, list);
}

/* NamedTuple{names, types} */
static wb_record *named_tuple_without(wb_jld2 *r, wb_jld2_julia *j, int64_t offset) {
    wb_jld2_parameter names, types;
    if (j->count != 2) return wb_jld2_end(r, wb_jld2_begin(r, WB_RECORD_MAP, 0, true, offset));
    if (!wb_jld2_parameter_at(r, j, 0, &names) || !wb_jld2_parameter_at(r, j, 1, &types))
        return NULL;
    const bool is_tuple = types.julia && wb_jld2_is_tuple(types.julia);
    wb_record *map = is_tuple ? tuple_without(r, types.julia, offset)
                              : wb_jld2_make_opaque(r, "", j->name, offset);
    if (!map || !is_tuple || !names.value || names.value->count != map->count) return map;
    return wb_jld2_name(r, map, names.value, offset) ? map : NULL;
}

/* Functions, tuples and named tuples among a struct's parameters are most likely its fields, as in
 * Chain{Tuple{typeof(relu)}}: children by the parameters' numbers, {1}. */
static bool is_field(const wb_jld2_parameter *p) {
    wb_jld2_julia *j = p->julia;
    return j && (!p->type || p->type->is_empty) &&
           (wb_jld2_is_function(j) || wb_jld2_is_tuple(j) || is_named(j, "NamedTuple"));
}

static wb_record *struct_without(wb_jld2 *r, wb_jld2_julia *j, int64_t offset) {
    if (wb_jld2_is_anonymous(j)) return wb_jld2_make_opaque(r, WB_JLD2_ANONYMOUS, j->name, offset);
    if (wb_julia_is_beyond(j->name)) return wb_jld2_make_opaque(r, "", j->name, offset);
    wb_record *record =
        wb_jld2_begin(r, WB_RECORD_STRUCT, wb_jld2_is_function(j) ? 0 : j->count, true, offset);
    if (!record || !wb_jld2_note_parameter(r, j, record)) return NULL;
    record->type = j->name;
    int64_t fields = 0;
    for (int64_t i = 0; i < record->count && r->status == WB_OK; i++) {
        wb_jld2_parameter p;
        char name[32];
        if (!wb_jld2_parameter_at(r, j, i, &p)) return NULL;
        if (!is_field(&p)) continue;
        const int length = snprintf(name, sizeof name, "{%lld}", (long long)i + 1);
        record->names[fields] = wb_jld2_copy(r, name, length, offset);
        if (!wb_jld2_put(r, record, fields++, wb_jld2_without_data(r, p.julia, offset)))
            return NULL;
    }
    record->count = fields;
    return wb_jld2_end(r, record);
}

wb_record *wb_jld2_without_data(wb_jld2 *r, wb_jld2_julia *j, int64_t offset) {
    if (is_named(j, "Nothing")) return wb_jld2_make(r, WB_RECORD_NULL, offset);
    if (wb_jld2_is_tuple(j)) return tuple_without(r, j, offset);
    if (is_named(j, "NamedTuple")) return named_tuple_without(r, j, offset);
    return struct_without(r, j, offset);
}

wb_record *wb_jld2_without_data_at(wb_jld2 *r, uint64_t address, int64_t from) {
    wb_jld2_parameter p;
    wb_jld2_entry *entry = wb_jld2_entry_of(r, address);
    if (!entry) return NULL;
    if (entry->without) return entry->without;
    if (!parameter_of(r, address, from, &p)) return NULL;
    if (!p.julia) {
        wb_jld2_fault(r, from, "the type of a field without data is expected at the address %llu",
                      (unsigned long long)address);
        return NULL;
    }
    wb_record *made = wb_jld2_without_data(r, p.julia, from);
    entry = wb_jld2_entry_of(r, address);
    /* () and functions are made anew, as they are no object that two places share */
    if (entry && made && made->count) entry->without = made;
    return made;
}
