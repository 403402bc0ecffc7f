/* Writes records as Julia's BSON, for BSON.load: the top is a document, the maps in it are
 * NamedTuples and lists are tuples, as in Flux.state, and as Flux.loadmodel! accepts them. Records
 * that are reached twice are written once, under _backrefs.
 *
 * A document begins with its length. All of the file but the arrays' numbers is made in memory,
 * each length filled in where its document ends; so a file over BSON's limit of 2 GiB is refused
 * before a byte is written, and the numbers of arrays are written without a copy. */
#include <string.h>

#include "array/array.h"
#include "base/memory.h"
#include "formats/bson_writer.h"
#include "formats/flat.h"

static const int64_t most_bytes = INT32_MAX;

static bool too_large(wb_bson_writer *w) {
    return wb_bson_refuse(
        w, WB_ERROR_UNSUPPORTED, NULL,
        "a BSON file has at most 2,147,483,647 bytes, and this one would be larger; "
        ".safetensors has no such limit");
}

/* ---- bytes ---- */

static int64_t used(const wb_bson_writer *w) { return (int64_t)w->bytes.size; }

static int64_t offset_of(const wb_bson_writer *w) { return used(w) + w->insert_bytes; }

static void put(wb_bson_writer *w, const void *bytes, size_t size_bytes) {
    if (w->status != WB_OK) return;
    if ((int64_t)size_bytes > most_bytes - offset_of(w))
        (void)too_large(w);
    else
        wb_text_bytes(&w->bytes, bytes, size_bytes), w->status = wb_text_status(&w->bytes);
}

static void store_bits(unsigned char *bytes, uint64_t bits, int size_bytes) {
    for (int i = 0; i < size_bytes; i++) bytes[i] = (unsigned char)(bits >> 8 * i);
}

static void put_bits(wb_bson_writer *w, uint64_t bits, int size_bytes) {
    unsigned char bytes[8];
    store_bits(bytes, bits, size_bytes);
    put(w, bytes, (size_t)size_bytes);
}

static void put_key(wb_bson_writer *w, wb_bson_type type, const char *key) {
    put_bits(w, (uint64_t)type, 1);
    put(w, key, strlen(key) + 1);
}

static void put_text(wb_bson_writer *w, const char *key, const char *text) {
    const size_t size = strlen(text) + 1;
    put_key(w, WB_BSON_STRING, key);
    if (size > INT32_MAX) (void)too_large(w);
    put_bits(w, size, 4);
    put(w, text, size);
}

static void put_integer(wb_bson_writer *w, const char *key, int64_t value) {
    put_key(w, WB_BSON_INT64, key);
    put_bits(w, (uint64_t)value, 8);
}

static void begin_bytes(wb_bson_writer *w) {
    if (w->status != WB_OK) return;
    if (w->depth == WB_BSON_DEPTH) {
        (void)wb_bson_refuse(w, WB_ERROR_ARGUMENT, NULL, "values are nested too deep");
        return;
    }
    w->open[w->depth++] = (wb_bson_open){used(w), offset_of(w)};
    put_bits(w, 0, 4);
}

static void begin(wb_bson_writer *w, wb_bson_type type, const char *key) {
    put_key(w, type, key);
    begin_bytes(w);
}

static void end(wb_bson_writer *w) {
    put_bits(w, 0, 1);
    if (w->status != WB_OK) return;
    const wb_bson_open *d = &w->open[--w->depth];
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

static void begin_tagged(wb_bson_writer *w, const char *key, const char *tag) {
    begin(w, WB_BSON_DOCUMENT, key);
    put_text(w, "tag", tag);
}

static void begin_type(wb_bson_writer *w, const char *key) {
    begin_tagged(w, key, "datatype");
    begin(w, WB_BSON_ARRAY, "params");
}

static void end_type(wb_bson_writer *w, const char *name) {
    end(w);
    begin(w, WB_BSON_ARRAY, "name");
    put_text(w, "0", "Core");
    put_text(w, "1", name);
    end(w);
    end(w);
}

static void put_type(wb_bson_writer *w, const char *key, const char *name) {
    begin_type(w, key);
    end_type(w, name);
}

/* "NNlib.#relu": its parts without the dots. */
static void put_singleton_type(wb_bson_writer *w, const char *key, const char *name) {
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

static void put_type_of(wb_bson_writer *w, const char *key, const wb_record *r);

static void put_tuple_type(wb_bson_writer *w, const char *key, const wb_record *r) {
    begin_type(w, key);
    for (int64_t i = 0; i < r->count; i++) {
        const wb_record *child = r->children[i];
        if (wb_bson_is_concrete(w, child))
            put_type_of(w, key_of(i).text, child);
        else
            put_type(w, key_of(i).text, "Any");
    }
    end_type(w, "Tuple");
}

static void put_named_tuple_type(wb_bson_writer *w, const char *key, const wb_record *r) {
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

static void put_array_type(wb_bson_writer *w, const char *key, const wb_record *r) {
    wb_dtype dtype;
    const int64_t *sizes;
    const int64_t ndim = wb_bson_shape(r, &dtype, &sizes);
    begin_type(w, key);
    put_type(w, "0", wb_julia_name_of_dtype(dtype));
    put_integer(w, "1", ndim);
    end_type(w, "Array");
}

static void put_type_of(wb_bson_writer *w, const char *key, const wb_record *r) {
    static const char *const names[] = {[WB_RECORD_NULL] = "Nothing",
                                        [WB_RECORD_BOOL] = "Bool",
                                        [WB_RECORD_INTEGER] = "Int64",
                                        [WB_RECORD_REAL] = "Float64",
                                        [WB_RECORD_TEXT] = "String"};
    if (wb_bson_is_elsewhere(w, r))
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

static void put_numbers(wb_bson_writer *w, const char *key, const wb_record *r) {
    const int64_t size = wb_bson_array_bytes(r);
    put_key(w, WB_BSON_BINARY, key);
    if (w->status == WB_OK && size > most_bytes - offset_of(w) - 5) (void)too_large(w);
    put_bits(w, (uint64_t)size, 4);
    put_bits(w, 0, 1);
    if (w->status != WB_OK || size == 0) return;
    if (!WB_GROW(w->inserts, w->ninserts, w->inserts_room)) {
        w->status = WB_ERROR_MEMORY;
        return;
    }
    w->inserts[w->ninserts++] = (wb_bson_insert){used(w), r};
    w->insert_bytes += size;
}

static void put_array(wb_bson_writer *w, const char *key, const wb_record *r) {
    wb_dtype dtype;
    const int64_t *sizes;
    const int64_t ndim = wb_bson_shape(r, &dtype, &sizes);
    if (dtype == WB_U8 && ndim == 1) {
        put_numbers(w, key, r);
        return;
    }
    begin_tagged(w, key, "array");
    put_type(w, "type", wb_julia_name_of_dtype(dtype));
    begin(w, WB_BSON_ARRAY, "size");
    for (int64_t d = 0; d < ndim; d++) put_integer(w, key_of(d).text, sizes[d]);
    end(w);
    put_numbers(w, "data", r);
    end(w);
}

static void put_value(wb_bson_writer *w, const char *key, const wb_record *r);

static void put_data(wb_bson_writer *w, const wb_record *r) {
    begin(w, WB_BSON_ARRAY, "data");
    for (int64_t i = 0; i < r->count; i++) put_value(w, key_of(i).text, r->children[i]);
    end(w);
}

static void put_tuple(wb_bson_writer *w, const char *key, const wb_record *r) {
    begin_tagged(w, key, "tuple");
    put_data(w, r);
    end(w);
}

/* The name of an array that is elsewhere. */
static void put_name(wb_bson_writer *w, const char *key, const wb_record *r) {
    begin_tagged(w, key, "struct");
    put_singleton_type(w, "type", WB_BSON_ARRAY_TYPE);
    begin(w, WB_BSON_ARRAY, "data");
    put_text(w, "0", r->text ? r->text : "");
    end(w);
    end(w);
}

/* A NamedTuple, or a struct. */
static void put_struct(wb_bson_writer *w, const char *key, const wb_record *r) {
    begin_tagged(w, key, "struct");
    put_type_of(w, "type", r);
    put_data(w, r);
    end(w);
}

static void put_real(wb_bson_writer *w, const char *key, double real) {
    uint64_t bits;
    memcpy(&bits, &real, sizeof bits);
    put_key(w, WB_BSON_DOUBLE, key);
    put_bits(w, bits, 8);
}

static void put_bool(wb_bson_writer *w, const char *key, bool value) {
    put_key(w, WB_BSON_BOOL, key);
    put_bits(w, value, 1);
}

/* Writes the value itself, also one that is written under _backrefs. */
static void put_whole(wb_bson_writer *w, const char *key, const wb_record *r) {
    if (wb_bson_is_elsewhere(w, r)) {
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

static int64_t entry_of(wb_bson_writer *w, const wb_record *r) {
    wb_bson_mark *m = &w->marks[r->number - 1];
    if (m->entry) return m->entry;
    if (!WB_GROW(w->shared, w->nshared, w->shared_room)) {
        w->status = WB_ERROR_MEMORY;
        return 0;
    }
    w->shared[w->nshared++] = r->number - 1;
    return m->entry = w->nshared;
}

static void put_value(wb_bson_writer *w, const char *key, const wb_record *r) {
    const wb_bson_mark *m = wb_bson_mark_of(w, r);
    if (!m || m->uses < 2) {
        put_whole(w, key, r);
        return;
    }
    begin_tagged(w, key, "backref");
    put_integer(w, "ref", entry_of(w, r));
    end(w);
}

/* ---- the file ---- */

static void put_metadata(wb_bson_writer *w, const wb_record *metadata) {
    begin(w, WB_BSON_DOCUMENT, "metadata");
    for (int64_t i = 0; i < metadata->count; i++)
        put_whole(w, metadata->names[i], metadata->children[i]);
    end(w);
}

static void put_file(wb_bson_writer *w, const wb_record *root, const wb_record *metadata) {
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

static void flush_numbers(wb_bson_writer *w, wb_text *out, const wb_record *r) {
    const void *data = wb_flat_data_begin(r);
    if (data)
        wb_text_bytes(out, data, (size_t)wb_bson_array_bytes(r)), w->status = wb_text_status(out);
    else
        w->status = wb_failed() ? wb_error_status()
                                : wb_fail(WB_ERROR_ARGUMENT, "%s: an array without data", w->path);
    if (data) wb_flat_data_end(r, data);
}

static void flush_all(wb_bson_writer *w, wb_text *out) {
    int64_t from = 0;
    for (int64_t i = 0; i < w->ninserts && w->status == WB_OK; i++) {
        const wb_bson_insert *in = &w->inserts[i];
        wb_text_bytes(out, w->bytes.data + from, (size_t)(in->at - from));
        flush_numbers(w, out, in->array);
        from = in->at;
    }
    wb_text_bytes(out, w->bytes.data + from, (size_t)(used(w) - from));
    if (w->status == WB_OK) w->status = wb_text_status(out);
}

static void release(wb_bson_writer *w) {
    for (int64_t i = 0; i < w->nmarks; i++) w->marks[i].record->number = 0;
    wb_release(w->marks);
    wb_release(w->shared);
    wb_text_release(&w->bytes);
    wb_release(w->inserts);
}

static wb_status write(const wb_record *root, const wb_record *metadata, wb_text *out,
                       bool is_tree) {
    wb_bson_writer *w = wb_alloc(sizeof *w);
    if (!w) return WB_ERROR_MEMORY;
    w->path = out->path;
    w->root = root;
    w->is_tree = is_tree;
    if (metadata && metadata->count == 0) metadata = NULL;
    if (wb_bson_survey(w, root, metadata)) put_file(w, root, metadata);
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
