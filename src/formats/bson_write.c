/* Julia's BSON from records, as BSON.load reads it: the top is a document, the maps in it are
 * NamedTuples and lists are tuples, which is the shape of Flux.state and what Flux.loadmodel!
 * takes. Records that are reached twice are written once, under _backrefs.
 *
 * A document begins with its length. All of the file but the arrays' numbers is made in memory,
 * each length filled in where its document ends; so what does not fit into BSON's 2 GiB is refused
 * before a byte is written, and numbers go to the file from where they lie. */
#include <stdlib.h>
#include <string.h>

#include "array/array.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "formats/bson.h"

/* What is known of an array, list or map; a record's number is 1 + the index of its mark. */
typedef struct mark {
    wb_record *record;
    int64_t uses;
    int64_t entry;      /* of _backrefs, from 1; 0: none yet */
    int64_t type_nodes; /* of its Julia type */
    int32_t type_depth;
    bool is_open; /* being surveyed */
} mark;

/* Numbers that belong at a place in the bytes. */
typedef struct insert {
    int64_t at;
    const wb_record *array;
} insert;

typedef struct open_document {
    int64_t at, offset; /* of its length: in the bytes, in the file */
} open_document;

typedef struct writer {
    const char *path;
    bool is_tree; /* arrays are elsewhere, structs may have fields */
    const wb_record *root;
    wb_status status;
    mark *marks;
    int64_t nmarks, marks_room;
    int64_t *shared; /* marks, by entry */
    int64_t nshared, shared_room;
    wb_text bytes; /* all but what arrays hold */
    insert *inserts;
    int64_t ninserts, inserts_room, insert_bytes;
    int depth;
    open_document open[WB_BSON_DEPTH];
} writer;

/* Concrete types repeat all that is below; larger ones become Any, as which Julia takes
 * everything. */
enum { MOST_TYPE_NODES = 1024, MOST_TYPE_DEPTH = 32 };

static const int64_t most_bytes = INT32_MAX;

/* ---- faults ---- */

static bool refuse(writer *w, wb_status status, const wb_branch *p, const char *what) {
    char text[256] = "";
    if (p) wb_branch_text(p, text, sizeof text);
    w->status = wb_fail(status, "%s: %s%s%s", w->path, text, p ? ": " : "", what);
    return false;
}

static bool too_large(writer *w) {
    return refuse(w, WB_ERROR_UNSUPPORTED, NULL,
                  "a BSON file has at most 2,147,483,647 bytes, and this one would be larger; "
                  ".safetensors has no such limit");
}

/* ---- survey: what is there, what is shared, what cannot be written ---- */

static wb_dtype dtype_of(const wb_record *r) {
    return (wb_dtype)(r->array ? r->array->dtype : r->dtype);
}

static int64_t array_shape(const wb_record *r, wb_dtype *dtype, const int64_t **sizes) {
    *dtype = dtype_of(r);
    *sizes = r->array ? r->array->sizes : r->sizes;
    return r->array ? r->array->ndim : r->ndim;
}

static int64_t array_bytes(const wb_record *r) {
    wb_dtype dtype;
    const int64_t *sizes;
    const int ndim = (int)array_shape(r, &dtype, &sizes);
    const int64_t count = wb_count_sizes(ndim, sizes), size = (int64_t)wb_dtype_size(dtype);
    return count < 0 || count > INT64_MAX / size ? -1 : count * size;
}

static bool survey_array(writer *w, const wb_record *r, const wb_branch *p) {
    if (w->is_tree) return true;
    if (!wb_bson_name_of_dtype(dtype_of(r)))
        return refuse(w, WB_ERROR_DTYPE, p,
                      "Julia has no such type as bf16; .safetensors has, or convert it to f32");
    const int64_t size = array_bytes(r);
    if (size < 0 || (!r->array && size != r->data_bytes))
        return refuse(w, WB_ERROR_ARGUMENT, p, "its sizes do not fit its data");
    return true;
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names are there, and text, and no two are the same: a NamedTuple has no such names. */
static bool survey_names(writer *w, const wb_record *map, const wb_branch *p) {
    for (int64_t i = 0; i < map->count; i++)
        if (!map->names || !map->names[i])
            return refuse(w, WB_ERROR_ARGUMENT, p, "each value must have a name");
        else if (wb_utf8_fault(map->names[i], strlen(map->names[i])) >= 0)
            return refuse(w, WB_ERROR_ARGUMENT, p, "a name in it is no UTF-8");
    const char **sorted = wb_alloc_list(map->count, sizeof *sorted);
    if (!sorted) return (w->status = WB_ERROR_MEMORY), false;
    if (map->count) memcpy(sorted, map->names, (size_t)map->count * sizeof *sorted);
    qsort(sorted, (size_t)map->count, sizeof *sorted, by_text);
    bool good = true;
    for (int64_t i = 1; good && i < map->count; i++) good = strcmp(sorted[i - 1], sorted[i]) != 0;
    wb_release(sorted);
    return good || refuse(w, WB_ERROR_ARGUMENT, p, "two values have the same name");
}

/* A function or `missing`: types without parameters and without fields. */
static bool is_singleton(const wb_record *r) {
    return r->kind == WB_RECORD_STRUCT && r->count == 0 && r->type &&
           (wb_bson_function(r) || strcmp(r->type, "Base.Missing") == 0);
}

static bool is_marked(const wb_record *r) {
    return r->kind == WB_RECORD_ARRAY || r->kind == WB_RECORD_LIST || r->kind == WB_RECORD_MAP ||
           (r->kind == WB_RECORD_STRUCT && !is_singleton(r));
}

static bool is_elsewhere(const writer *w, const wb_record *r) {
    return w->is_tree && (r->kind == WB_RECORD_ARRAY || (r->kind == WB_RECORD_OPAQUE && r->data));
}

static const mark *mark_of(const writer *w, const wb_record *r) {
    return is_marked(r) ? &w->marks[r->number - 1] : NULL;
}

/* Whether a record's type is written out where it is part of another. */
static bool is_concrete(const writer *w, const wb_record *r) {
    const mark *m = mark_of(w, r);
    return !m || (m->type_nodes <= MOST_TYPE_NODES && m->type_depth <= MOST_TYPE_DEPTH);
}

static void measure_type(writer *w, const wb_record *r) {
    mark *own = &w->marks[r->number - 1];
    own->type_nodes = 1;
    for (int64_t i = 0; i < r->count; i++) {
        const mark *child = mark_of(w, r->children[i]);
        const bool is_whole = child && is_concrete(w, r->children[i]);
        own->type_nodes += is_whole ? child->type_nodes : 1;
        if (is_whole && child->type_depth >= own->type_depth)
            own->type_depth = child->type_depth + 1;
    }
}

static bool survey(writer *w, wb_record *r, const wb_branch *p);

static bool survey_children(writer *w, const wb_record *r, const wb_branch *outer) {
    for (int64_t i = 0; i < r->count; i++) {
        const wb_branch p = {outer, r->kind == WB_RECORD_MAP ? r->names[i] : NULL, i,
                             outer ? outer->depth + 1 : 1};
        if (!r->children[i]) return refuse(w, WB_ERROR_ARGUMENT, &p, "there is nothing to save");
        if (!survey(w, r->children[i], &p)) return false;
    }
    return true;
}

static bool survey_new(writer *w, wb_record *r, const wb_branch *p) {
    if (!WB_GROW(w->marks, w->nmarks, w->marks_room)) return (w->status = WB_ERROR_MEMORY), false;
    w->marks[w->nmarks++] = (mark){.record = r, .uses = 1, .is_open = true};
    r->number = w->nmarks;
    if (r->kind == WB_RECORD_ARRAY && !survey_array(w, r, p)) return false;
    if (r->kind == WB_RECORD_MAP && !survey_names(w, r, p)) return false;
    if (!survey_children(w, r, p)) return false;
    measure_type(w, r);
    w->marks[r->number - 1].is_open = false;
    return true;
}

const char *wb_bson_refuses(const wb_record *r) {
    if (r->kind == WB_RECORD_ARRAY) return wb_bson_name_of_dtype(dtype_of(r)) ? NULL : "bf16";
    const bool is_good = r->kind < WB_RECORD_STRUCT || is_singleton(r);
    return is_good ? NULL : r->type ? r->type : "unknown";
}

/* Recursive, as all below, but no deeper than WB_RECORD_DEPTH. */
static bool survey(writer *w, wb_record *r, const wb_branch *p) {
    const bool is_good = r->kind < WB_RECORD_STRUCT || is_singleton(r) || is_elsewhere(w, r) ||
                         (w->is_tree && r->kind == WB_RECORD_STRUCT);
    if (!is_good) {
        char text[256];
        (void)snprintf(text, sizeof text,
                       "a value of Julia's type %s cannot be written; its arrays can",
                       r->type ? r->type : "unknown");
        return refuse(w, WB_ERROR_UNSUPPORTED, p, text);
    }
    if (!is_marked(r)) return true;
    if (p->depth >= WB_RECORD_DEPTH + (r->kind == WB_RECORD_ARRAY))
        return refuse(w, WB_ERROR_ARGUMENT, p, "it is nested too deep");
    const bool is_known =
        r->number >= 1 && r->number <= w->nmarks && w->marks[r->number - 1].record == r;
    if (r == w->root || (is_known && w->marks[r->number - 1].is_open))
        return refuse(w, WB_ERROR_ARGUMENT, p, "it is part of itself");
    if (!is_known) return survey_new(w, r, p);
    w->marks[r->number - 1].uses++;
    return true;
}

static bool survey_root(writer *w, const wb_record *root, const wb_record *metadata) {
    if (!root || root->kind != WB_RECORD_MAP)
        return refuse(w, WB_ERROR_ARGUMENT, NULL, "what is saved must have names");
    if (!survey_names(w, root, NULL)) return false;
    for (int64_t i = 0; i < root->count; i++) {
        const char *name = root->names[i];
        const wb_branch p = {.name = name};
        if (strcmp(name, "tag") == 0 || strcmp(name, "_backrefs") == 0)
            return refuse(w, WB_ERROR_ARGUMENT, &p, "BSON reserves this name");
        if (metadata && strcmp(name, "metadata") == 0)
            return refuse(w, WB_ERROR_ARGUMENT, &p, "the file's metadata has this name");
    }
    return survey_children(w, root, NULL);
}

static bool survey_metadata(writer *w, const wb_record *metadata) {
    if (!metadata) return true;
    if (metadata->kind != WB_RECORD_MAP || !survey_names(w, metadata, NULL))
        return w->status != WB_OK || refuse(w, WB_ERROR_ARGUMENT, NULL, "metadata must have names");
    for (int64_t i = 0; i < metadata->count; i++) {
        const wb_branch p = {.name = metadata->names[i]};
        if (!metadata->children[i] || metadata->children[i]->kind != WB_RECORD_TEXT)
            return refuse(w, WB_ERROR_ARGUMENT, &p, "metadata must be texts");
        if (strcmp(metadata->names[i], "tag") == 0)
            return refuse(w, WB_ERROR_ARGUMENT, &p, "BSON reserves this name");
    }
    return true;
}

/* ---- bytes ---- */

static int64_t used(const writer *w) { return (int64_t)w->bytes.size; }

static int64_t offset_of(const writer *w) { return used(w) + w->insert_bytes; }

static void put(writer *w, const void *bytes, size_t size_bytes) {
    if (w->status != WB_OK) return;
    if ((int64_t)size_bytes > most_bytes - offset_of(w))
        (void)too_large(w);
    else
        wb_text_bytes(&w->bytes, bytes, size_bytes), w->status = wb_text_status(&w->bytes);
}

static void store_bits(unsigned char *bytes, uint64_t bits, int size_bytes) {
    for (int i = 0; i < size_bytes; i++) bytes[i] = (unsigned char)(bits >> 8 * i);
}

static void put_bits(writer *w, uint64_t bits, int size_bytes) {
    unsigned char bytes[8];
    store_bits(bytes, bits, size_bytes);
    put(w, bytes, (size_t)size_bytes);
}

static void put_key(writer *w, wb_bson_type type, const char *key) {
    put_bits(w, (uint64_t)type, 1);
    put(w, key, strlen(key) + 1);
}

static void put_text(writer *w, const char *key, const char *text) {
    const size_t size = strlen(text) + 1;
    put_key(w, WB_BSON_STRING, key);
    if (size > INT32_MAX) (void)too_large(w);
    put_bits(w, size, 4);
    put(w, text, size);
}

static void put_integer(writer *w, const char *key, int64_t value) {
    put_key(w, WB_BSON_INT64, key);
    put_bits(w, (uint64_t)value, 8);
}

static void begin_bytes(writer *w) {
    if (w->status != WB_OK) return;
    if (w->depth == WB_BSON_DEPTH) {
        (void)refuse(w, WB_ERROR_ARGUMENT, NULL, "values are nested too deep");
        return;
    }
    w->open[w->depth++] = (open_document){used(w), offset_of(w)};
    put_bits(w, 0, 4);
}

static void begin(writer *w, wb_bson_type type, const char *key) {
    put_key(w, type, key);
    begin_bytes(w);
}

static void end(writer *w) {
    put_bits(w, 0, 1);
    if (w->status != WB_OK) return;
    const open_document *d = &w->open[--w->depth];
    store_bits((unsigned char *)w->bytes.data + d->at, (uint64_t)(offset_of(w) - d->offset), 4);
}

/* The key of a list's element. */
typedef struct index_key {
    char text[24];
} index_key;

static index_key key_of(int64_t i) {
    index_key key;
    (void)snprintf(key.text, sizeof key.text, "%lld", (long long)i);
    return key;
}

/* ---- tagged documents: their keys in the order that Julia's own writer gives them ---- */

static void begin_tagged(writer *w, const char *key, const char *tag) {
    begin(w, WB_BSON_DOCUMENT, key);
    put_text(w, "tag", tag);
}

static void begin_type(writer *w, const char *key) {
    begin_tagged(w, key, "datatype");
    begin(w, WB_BSON_ARRAY, "params");
}

static void end_type(writer *w, const char *name) {
    end(w);
    begin(w, WB_BSON_ARRAY, "name");
    put_text(w, "0", "Core");
    put_text(w, "1", name);
    end(w);
    end(w);
}

static void put_type(writer *w, const char *key, const char *name) {
    begin_type(w, key);
    end_type(w, name);
}

/* "NNlib.#relu": its parts without the dots. */
static void put_singleton_type(writer *w, const char *key, const char *name) {
    begin_type(w, key);
    end(w);
    begin(w, WB_BSON_ARRAY, "name");
    for (int64_t i = 0; name; i++) {
        const char *dot = strchr(name, '.');
        char part[WB_BSON_NAME_BYTES];
        (void)snprintf(part, sizeof part, "%.*s", (int)strcspn(name, "."), name);
        put_text(w, key_of(i).text, part);
        name = dot ? dot + 1 : NULL;
    }
    end(w);
    end(w);
}

static void put_type_of(writer *w, const char *key, const wb_record *r);

static void put_tuple_type(writer *w, const char *key, const wb_record *r) {
    begin_type(w, key);
    for (int64_t i = 0; i < r->count; i++) {
        const wb_record *child = r->children[i];
        if (is_concrete(w, child))
            put_type_of(w, key_of(i).text, child);
        else
            put_type(w, key_of(i).text, "Any");
    }
    end_type(w, "Tuple");
}

static void put_named_tuple_type(writer *w, const char *key, const wb_record *r) {
    begin_type(w, key);
    begin_tagged(w, "0", "tuple");
    begin(w, WB_BSON_ARRAY, "data");
    for (int64_t i = 0; i < r->count; i++) {
        begin_tagged(w, key_of(i).text, "symbol");
        put_text(w, "name", r->names[i]);
        end(w);
    }
    end(w);
    end(w);
    put_tuple_type(w, "1", r);
    end_type(w, "NamedTuple");
}

static void put_array_type(writer *w, const char *key, const wb_record *r) {
    wb_dtype dtype;
    const int64_t *sizes;
    const int64_t ndim = array_shape(r, &dtype, &sizes);
    begin_type(w, key);
    put_type(w, "0", wb_bson_name_of_dtype(dtype));
    put_integer(w, "1", ndim);
    end_type(w, "Array");
}

static void put_type_of(writer *w, const char *key, const wb_record *r) {
    static const char *const names[] = {[WB_RECORD_NULL] = "Nothing",
                                        [WB_RECORD_BOOL] = "Bool",
                                        [WB_RECORD_INTEGER] = "Int64",
                                        [WB_RECORD_REAL] = "Float64",
                                        [WB_RECORD_TEXT] = "String"};
    if (is_elsewhere(w, r))
        put_singleton_type(w, key, WB_BSON_ARRAY_TYPE);
    else if (r->kind == WB_RECORD_ARRAY)
        put_array_type(w, key, r);
    else if (r->kind == WB_RECORD_LIST)
        put_tuple_type(w, key, r);
    else if (r->kind == WB_RECORD_MAP)
        put_named_tuple_type(w, key, r);
    else if (r->kind == WB_RECORD_STRUCT)
        put_singleton_type(w, key, r->type);
    else
        put_type(w, key, names[r->kind]);
}

/* ---- values ---- */

static void put_numbers(writer *w, const char *key, const wb_record *r) {
    const int64_t size = array_bytes(r);
    put_key(w, WB_BSON_BINARY, key);
    if (w->status == WB_OK && size > most_bytes - offset_of(w) - 5) (void)too_large(w);
    put_bits(w, (uint64_t)size, 4);
    put_bits(w, 0, 1);
    if (w->status != WB_OK || size == 0) return;
    if (!WB_GROW(w->inserts, w->ninserts, w->inserts_room)) {
        w->status = WB_ERROR_MEMORY;
        return;
    }
    w->inserts[w->ninserts++] = (insert){used(w), r};
    w->insert_bytes += size;
}

static void put_array(writer *w, const char *key, const wb_record *r) {
    wb_dtype dtype;
    const int64_t *sizes;
    const int64_t ndim = array_shape(r, &dtype, &sizes);
    if (dtype == WB_U8 && ndim == 1) {
        put_numbers(w, key, r);
        return;
    }
    begin_tagged(w, key, "array");
    put_type(w, "type", wb_bson_name_of_dtype(dtype));
    begin(w, WB_BSON_ARRAY, "size");
    for (int64_t d = 0; d < ndim; d++) put_integer(w, key_of(d).text, sizes[d]);
    end(w);
    put_numbers(w, "data", r);
    end(w);
}

static void put_value(writer *w, const char *key, const wb_record *r);

static void put_data(writer *w, const wb_record *r) {
    begin(w, WB_BSON_ARRAY, "data");
    for (int64_t i = 0; i < r->count; i++) put_value(w, key_of(i).text, r->children[i]);
    end(w);
}

static void put_tuple(writer *w, const char *key, const wb_record *r) {
    begin_tagged(w, key, "tuple");
    put_data(w, r);
    end(w);
}

/* The name of an array that is elsewhere. */
static void put_name(writer *w, const char *key, const wb_record *r) {
    begin_tagged(w, key, "struct");
    put_singleton_type(w, "type", WB_BSON_ARRAY_TYPE);
    begin(w, WB_BSON_ARRAY, "data");
    put_text(w, "0", r->text ? r->text : "");
    end(w);
    end(w);
}

/* A NamedTuple, or a struct. */
static void put_struct(writer *w, const char *key, const wb_record *r) {
    begin_tagged(w, key, "struct");
    put_type_of(w, "type", r);
    put_data(w, r);
    end(w);
}

static void put_real(writer *w, const char *key, double real) {
    uint64_t bits;
    memcpy(&bits, &real, sizeof bits);
    put_key(w, WB_BSON_DOUBLE, key);
    put_bits(w, bits, 8);
}

static void put_bool(writer *w, const char *key, bool value) {
    put_key(w, WB_BSON_BOOL, key);
    put_bits(w, value, 1);
}

/* The value itself, where it is one of _backrefs too. */
static void put_whole(writer *w, const char *key, const wb_record *r) {
    if (is_elsewhere(w, r)) {
        put_name(w, key, r);
        return;
    }
    switch ((wb_record_kind)r->kind) {
    case WB_RECORD_BOOL:
        put_bool(w, key, r->boolean);
        break;
    case WB_RECORD_INTEGER:
        put_integer(w, key, r->integer);
        break;
    case WB_RECORD_REAL:
        put_real(w, key, r->real);
        break;
    case WB_RECORD_TEXT:
        put_text(w, key, r->text ? r->text : "");
        break;
    case WB_RECORD_ARRAY:
        put_array(w, key, r);
        break;
    case WB_RECORD_LIST:
        put_tuple(w, key, r);
        break;
    case WB_RECORD_MAP:
    case WB_RECORD_STRUCT:
        put_struct(w, key, r);
        break;
    default:
        put_key(w, WB_BSON_NULL, key);
    }
}

static int64_t entry_of(writer *w, const wb_record *r) {
    mark *m = &w->marks[r->number - 1];
    if (m->entry) return m->entry;
    if (!WB_GROW(w->shared, w->nshared, w->shared_room)) {
        w->status = WB_ERROR_MEMORY;
        return 0;
    }
    w->shared[w->nshared++] = r->number - 1;
    return m->entry = w->nshared;
}

static void put_value(writer *w, const char *key, const wb_record *r) {
    const mark *m = mark_of(w, r);
    if (!m || m->uses < 2) {
        put_whole(w, key, r);
        return;
    }
    begin_tagged(w, key, "backref");
    put_integer(w, "ref", entry_of(w, r));
    end(w);
}

/* ---- the file ---- */

static void put_metadata(writer *w, const wb_record *metadata) {
    begin(w, WB_BSON_DOCUMENT, "metadata");
    for (int64_t i = 0; i < metadata->count; i++)
        put_whole(w, metadata->names[i], metadata->children[i]);
    end(w);
}

static void put_file(writer *w, const wb_record *root, const wb_record *metadata) {
    begin_bytes(w);
    for (int64_t i = 0; i < root->count; i++) put_value(w, root->names[i], root->children[i]);
    if (metadata) put_metadata(w, metadata);
    if (w->nshared && w->status == WB_OK) {
        begin(w, WB_BSON_ARRAY, "_backrefs");
        for (int64_t i = 0; i < w->nshared; i++) /* grows on the way */
            put_whole(w, key_of(i).text, w->marks[w->shared[i]].record);
        end(w);
    }
    end(w);
}

static void flush_numbers(writer *w, wb_text *out, const wb_record *r) {
    const void *data = r->array ? wb_read_begin(r->array) : r->data;
    if (data)
        wb_text_bytes(out, data, (size_t)array_bytes(r)), w->status = wb_text_status(out);
    else
        w->status = wb_failed() ? wb_error_status()
                                : wb_fail(WB_ERROR_ARGUMENT, "%s: an array without data", w->path);
    if (data && r->array) wb_read_end(r->array);
}

static void flush_all(writer *w, wb_text *out) {
    int64_t from = 0;
    for (int64_t i = 0; i < w->ninserts && w->status == WB_OK; i++) {
        const insert *in = &w->inserts[i];
        wb_text_bytes(out, w->bytes.data + from, (size_t)(in->at - from));
        flush_numbers(w, out, in->array);
        from = in->at;
    }
    wb_text_bytes(out, w->bytes.data + from, (size_t)(used(w) - from));
    if (w->status == WB_OK) w->status = wb_text_status(out);
}

static void release(writer *w) {
    for (int64_t i = 0; i < w->nmarks; i++) w->marks[i].record->number = 0;
    wb_release(w->marks);
    wb_release(w->shared);
    wb_text_release(&w->bytes);
    wb_release(w->inserts);
}

static wb_status write(const wb_record *root, const wb_record *metadata, wb_text *out,
                       bool is_tree) {
    writer *w = wb_alloc(sizeof *w);
    if (!w) return WB_ERROR_MEMORY;
    w->path = out->path;
    w->root = root;
    w->is_tree = is_tree;
    if (metadata && metadata->count == 0) metadata = NULL;
    if (survey_root(w, root, metadata) && survey_metadata(w, metadata)) put_file(w, root, metadata);
    if (w->status == WB_OK) flush_all(w, out);
    const wb_status status = w->status;
    release(w);
    wb_release(w);
    return status;
}

wb_status wb_bson_write(const wb_record *root, const wb_record *metadata, wb_text *out) {
    return write(root, metadata, out, false);
}

wb_status wb_bson_write_tree(const wb_record *root, wb_text *out) {
    return write(root, NULL, out, true);
}
