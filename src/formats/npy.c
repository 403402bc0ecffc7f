/* NumPy's .npy, versions 1.0, 2.0 and 3.0:
 * https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
 *
 *     \x93NUMPY  major minor  length (2 or 4 bytes)  {'descr': '<f4', 'fortran_order': False,
 *                'shape': (3, 4), }  spaces \n  elements
 *
 * In C order the last dimension is fastest: its shape is reversed, and no bytes are moved. In
 * Fortran order the first one is fastest, as in Weber: the shape is the sizes. Weber writes
 * Fortran's order, so that x[i, j] is the same element in both.
 *
 * NumPy has no bfloat16; the package ml_dtypes stores it as '<V2', two raw bytes, and so does
 * Weber. */
#include "formats/npy.h"

#include <string.h>

#include "base/memory.h"
#include "base/widen.h"
#include "formats/flat.h"

static const char magic[] = "\x93NUMPY";
enum { MAGIC_BYTES = 6, VERSION_BYTES = 2, TYPE_BYTES = 56 };

/* Types by kind and size. Whole numbers of a type that Weber lacks are read into one that holds
 * them; safetensors has a name for each, by which what is opaque there is written here. */
static const struct {
    char code[3];
    unsigned char size;
    signed char dtype; /* wb_dtype */
    const char *name;  /* of a type that Weber lacks */
} types[] = {{"f4", 4, WB_F32, NULL},  {"f8", 8, WB_F64, NULL},  {"f2", 2, WB_F16, NULL},
             {"V2", 2, WB_BF16, NULL}, {"i4", 4, WB_I32, NULL},  {"i8", 8, WB_I64, NULL},
             {"u1", 1, WB_U8, NULL},   {"b1", 1, WB_BOOL, NULL}, {"i1", 1, WB_I32, "I8"},
             {"i2", 2, WB_I32, "I16"}, {"u2", 2, WB_I32, "U16"}, {"u4", 4, WB_I64, "U32"},
             {"u8", 8, WB_I64, "U64"}};
enum { TYPES = sizeof types / sizeof *types };

static bool is_npy(const unsigned char *bytes, int64_t size_bytes) {
    return size_bytes >= MAGIC_BYTES && memcmp(bytes, magic, MAGIC_BYTES) == 0;
}

/* ---- the header: a dictionary as Python writes it ---- */

typedef struct parser {
    const wb_npy_source *source;
    const char *text, *end, *at;
    bool is_fortran, is_big;
    int type; /* in types; -1: another one */
    char name[TYPE_BYTES];
    int ndim;
    int64_t sizes[WB_MAX_DIMS + 1]; /* as written; dimensions beyond WB_MAX_DIMS are only counted */
    int64_t elements;
} parser;

static wb_status fault_at(const wb_npy_source *s, int64_t at, const char *what) {
    const char *before = s->entry ? s->entry : "", *colon = s->entry ? ": " : "";
    if (!s->is_inflated)
        return wb_file_fault(s->file, s->offset + at, "%.200s%s%s", before, colon, what);
    return wb_file_fault(s->file, s->offset, "%.200s%s%s (byte %lld of the entry)", before, colon,
                         what, (long long)at);
}

static wb_status fault(const parser *p, const char *what) {
    return fault_at(p->source, (const unsigned char *)p->at - p->source->bytes, what);
}

static void skip_spaces(parser *p) {
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\n' || *p->at == '\t')) p->at++;
}

static bool take(parser *p, char c) {
    skip_spaces(p);
    if (p->at == p->end || *p->at != c) return false;
    p->at++;
    return true;
}

/* 'text' or "text" without escapes; false where there is none. */
static bool take_text(parser *p, const char **text, size_t *length) {
    skip_spaces(p);
    if (p->at == p->end || (*p->at != '\'' && *p->at != '"')) return false;
    const char *close = memchr(p->at + 1, *p->at, (size_t)(p->end - p->at - 1));
    if (!close || memchr(p->at, '\\', (size_t)(close - p->at))) return false;
    *text = p->at + 1, *length = (size_t)(close - *text);
    p->at = close + 1;
    return true;
}

static bool take_word(parser *p, const char *word) {
    const size_t length = strlen(word);
    skip_spaces(p);
    if ((size_t)(p->end - p->at) < length || memcmp(p->at, word, length) != 0) return false;
    p->at += length;
    return true;
}

/* The name of a type that is opaque: "numpy " and what the header says, without what terminals
 * don't print. */
static void name_type(parser *p, const char *text, size_t length) {
    static const char before[] = "numpy ";
    size_t i = sizeof before - 1;
    memcpy(p->name, before, i);
    for (; length && i + 1 < sizeof p->name; i++, text++, length--)
        p->name[i] = *text >= ' ' && *text < 127 ? *text : '?';
    p->name[i] = 0;
}

/* "<f4": the order of bytes, the kind, the size. Others are opaque. */
static void parse_type(parser *p, const char *text, size_t length) {
    p->type = -1;
    name_type(p, text, length);
    if (length > 2 && text[1] == 'c') {
        const size_t end = strlen(p->name);
        (void)snprintf(p->name + end, sizeof p->name - end, " (complex)");
    }
    if (length != 3 || !strchr("<>|=", *text)) return;
    for (int i = 0; i < TYPES; i++)
        if (memcmp(types[i].code, text + 1, 2) == 0) p->type = i;
    p->is_big = *text == '>';
}

/* A Python list or tuple, the type of structures. Brackets are only counted. */
static bool skip_brackets(parser *p) {
    const char *begin = p->at, *text;
    size_t length;
    int64_t depth = 0;
    do {
        if (take_text(p, &text, &length)) continue;
        if (p->at == p->end) return false;
        depth += *p->at == '[' || *p->at == '(';
        depth -= *p->at == ']' || *p->at == ')';
        p->at++;
    } while (depth > 0);
    p->type = -1;
    name_type(p, begin, (size_t)(p->at - begin));
    return true;
}

static wb_status parse_descr(parser *p) {
    const char *text;
    size_t length;
    skip_spaces(p);
    if (take_text(p, &text, &length)) {
        parse_type(p, text, length);
        return WB_OK;
    }
    if (p->at < p->end && (*p->at == '[' || *p->at == '(') && skip_brackets(p)) return WB_OK;
    return fault(p, "descr must be a type that Weber knows");
}

static wb_status parse_order(parser *p) {
    p->is_fortran = take_word(p, "True");
    if (p->is_fortran || take_word(p, "False")) return WB_OK;
    return fault(p, "fortran_order must be True or False");
}

static bool take_size(parser *p, int64_t *size) {
    skip_spaces(p);
    const char *begin = p->at;
    *size = 0;
    for (; p->at < p->end && *p->at >= '0' && *p->at <= '9'; p->at++)
        if (__builtin_mul_overflow(*size, 10, size) ||
            __builtin_add_overflow(*size, *p->at - '0', size))
            return false;
    const bool is_there = p->at > begin;
    if (is_there && p->at < p->end && *p->at == 'L') p->at++; /* Python 2 */
    return is_there;
}

static wb_status add_size(parser *p, bool *is_empty) {
    int64_t size;
    if (!take_size(p, &size)) return fault(p, "each size in shape must be a whole number");
    if (p->ndim < WB_MAX_DIMS) p->sizes[p->ndim] = size;
    p->ndim++;
    *is_empty = *is_empty || size == 0;
    if (size &&
        (__builtin_mul_overflow(p->elements, size, &p->elements) || p->elements > INT64_MAX / 64))
        return fault(p, "shape has more elements than can be counted");
    return WB_OK;
}

static wb_status parse_shape(parser *p) {
    bool is_empty = false, has_comma = true;
    p->elements = 1;
    if (!take(p, '(')) return fault(p, "shape must be a tuple");
    while (!take(p, ')')) {
        if (!has_comma) return fault(p, "a comma is expected in shape");
        const wb_status status = add_size(p, &is_empty);
        if (status != WB_OK) return status;
        has_comma = take(p, ',');
    }
    if (p->ndim == 1 && !has_comma) return fault(p, "shape must be a tuple, but is a number");
    if (is_empty) p->elements = 0;
    return WB_OK;
}

static wb_status parse_items(parser *p) {
    static const struct {
        const char *key;
        wb_status (*parse)(parser *);
    } items[] = {{"descr", parse_descr}, {"fortran_order", parse_order}, {"shape", parse_shape}};
    bool has[3] = {false}, has_comma = true;
    const char *key;
    size_t length;
    while (!take(p, '}')) {
        if (!has_comma || !take_text(p, &key, &length)) return fault(p, "a key is expected");
        int i = 0;
        while (i < 3 && (strlen(items[i].key) != length || memcmp(items[i].key, key, length) != 0))
            i++;
        if (i == 3) return fault(p, "an unknown key");
        if (has[i]) return fault(p, "a key appears twice");
        if (!take(p, ':')) return fault(p, "a colon is expected");
        const wb_status status = items[i].parse(p);
        if (status != WB_OK) return status;
        has[i] = true;
        has_comma = take(p, ',');
    }
    return has[0] && has[1] && has[2] ? WB_OK
                                      : fault(p, "descr, fortran_order or shape is missing");
}

/* Sets text .. end to what is between the prefix and the elements. */
static wb_status find_text(parser *p) {
    const wb_npy_source *s = p->source;
    const int64_t fixed = MAGIC_BYTES + VERSION_BYTES;
    if (!is_npy(s->bytes, s->size_bytes))
        return fault_at(s, 0, "an array of NumPy must begin with \\x93NUMPY");
    if (s->size_bytes < fixed + 2)
        return fault_at(s, s->size_bytes,
                        "it is cut short: it ends "
                        "within its header");
    const int major = s->bytes[MAGIC_BYTES], minor = s->bytes[MAGIC_BYTES + 1];
    if (major < 1 || major > 3 || minor != 0)
        return fault_at(s, MAGIC_BYTES, "its version must be 1.0, 2.0 or 3.0");
    const int64_t length_bytes = major == 1 ? 2 : 4;
    if (s->size_bytes < fixed + length_bytes)
        return fault_at(s, s->size_bytes, "it is cut short: it ends within its header");
    int64_t length = 0;
    for (int64_t i = length_bytes; i-- > 0;) length = length << 8 | s->bytes[fixed + i];
    if (length > s->size_bytes - fixed - length_bytes)
        return fault_at(s, fixed, "it is cut short: its header should be longer than all of it");
    p->text = p->at = (const char *)s->bytes + fixed + length_bytes;
    p->end = p->text + length;
    return WB_OK;
}

static wb_status parse(parser *p) {
    wb_status status = find_text(p);
    if (status != WB_OK) return status;
    if (!take(p, '{')) return fault(p, "the header must be a dictionary");
    status = parse_items(p);
    if (status != WB_OK) return status;
    skip_spaces(p);
    return p->at == p->end ? WB_OK : fault(p, "unexpected text after the dictionary");
}

/* ---- the array ---- */

static wb_status check_data(const parser *p) {
    const int64_t have = p->source->size_bytes - (p->end - (const char *)p->source->bytes);
    const int64_t at = p->source->size_bytes - have;
    if (p->type < 0) return WB_OK; /* the length of its elements is unknown */
    const int64_t need = p->elements * types[p->type].size;
    if (need > have)
        return fault_at(p->source, at,
                        "it is cut short: it has fewer elements "
                        "than its shape says");
    return need < have ? fault_at(p->source, at + need,
                                  "there are bytes after its last "
                                  "element")
                       : WB_OK;
}

static const void *swapped(wb_file *file, const unsigned char *bytes, int64_t size_bytes,
                           int element) {
    unsigned char *out = wb_arena_take(&file->arena, wb_bytes(size_bytes));
    for (int64_t i = 0; out && i < size_bytes; i += element)
        for (int k = 0; k < element; k++) out[i + k] = bytes[i + element - 1 - k];
    return out;
}

/* Sets data to elements of a type that Weber has. */
static bool widen(const parser *p, wb_record *r) {
    const bool is_signed = types[p->type].code[0] == 'i';
    const wb_integers from = {types[p->type].size, is_signed, p->is_big};
    r->data_bytes = p->elements * wb_widened_bytes(from);
    void *out = wb_arena_take(&p->source->file->arena, wb_bytes(r->data_bytes));
    const int64_t misfit = out ? wb_widen(from, r->data, p->elements, out) : 0;
    r->data = out;
    if (!out || misfit < 0) return out != NULL;
    (void)fault_at(p->source, p->end - (const char *)p->source->bytes + misfit * from.size_bytes,
                   "an element of U64 is 2^63 or more, which i64 cannot hold");
    return false;
}

static bool set_type(const parser *p, wb_record *r) {
    char text[TYPE_BYTES + 32];
    const char *name = p->type >= 0 && types[p->type].name ? types[p->type].name : p->name;
    r->kind = WB_RECORD_OPAQUE;
    if (p->ndim > WB_MAX_DIMS) {
        (void)snprintf(text, sizeof text, "%s of %d dimensions", name, p->ndim);
        name = text;
    } else if (p->type >= 0) {
        r->kind = WB_RECORD_ARRAY;
        r->dtype = (uint8_t)types[p->type].dtype;
        return true;
    }
    return (r->type = wb_arena_text(&p->source->file->arena, name, strlen(name))) != NULL;
}

static void set_sizes(const parser *p, wb_record *r) {
    if (p->ndim > WB_MAX_DIMS) return;
    r->ndim = (uint8_t)p->ndim;
    for (int d = 0; d < p->ndim; d++) r->sizes[d] = p->sizes[p->is_fortran ? d : p->ndim - 1 - d];
}

wb_record *wb_npy_read(const wb_npy_source *source) {
    parser p = {.source = source};
    if (parse(&p) != WB_OK || check_data(&p) != WB_OK) return NULL;
    wb_record *r = wb_record_new(&source->file->arena, WB_RECORD_ARRAY);
    if (!r || !set_type(&p, r)) return NULL;
    set_sizes(&p, r);
    const int64_t header_bytes = p.end - (const char *)source->bytes;
    r->offset = source->is_inflated ? source->offset : source->offset + header_bytes;
    r->data_bytes = source->size_bytes - header_bytes;
    r->data = source->bytes + header_bytes;
    if (r->kind == WB_RECORD_ARRAY && types[p.type].name) return widen(&p, r) ? r : NULL;
    if (p.type >= 0 && p.is_big && types[p.type].size > 1)
        r->data = swapped(source->file, r->data, r->data_bytes, types[p.type].size);
    return r->data ? r : NULL;
}

/* ---- writing ---- */

/* The type of the record in types; -1: it has no such type, or its number of bytes does not fit its
 * sizes. */
static int type_of(const wb_record *r, const wb_flat_array *array) {
    for (int i = 0; i < TYPES; i++) {
        const bool is_it = r->kind == WB_RECORD_ARRAY
                               ? !types[i].name && types[i].dtype == (int)array->dtype
                               : types[i].name && r->type && strcmp(types[i].name, r->type) == 0;
        const int64_t count = wb_count_sizes(array->ndim, array->sizes);
        if (is_it) return count * types[i].size == array->data_bytes ? i : -1;
    }
    return -1;
}

const char *wb_npy_refuses(const wb_record *r) {
    const wb_flat_array array = wb_flat_array_of(r);
    return type_of(r, &array) >= 0 ? NULL : r->type ? r->type : "the sizes of an array are damaged";
}

size_t wb_npy_header(const wb_record *record, char header[WB_NPY_MOST_HEADER], const char *path,
                     const char *name) {
    enum { PREFIX = MAGIC_BYTES + VERSION_BYTES + 2 };
    const wb_flat_array array = wb_flat_array_of(record);
    const char *what = wb_npy_refuses(record);
    if (what) {
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: \"%.200s\" is %s, which cannot be written as NumPy's",
                      path, name, what);
        return 0;
    }
    const int type = type_of(record, &array);
    char *at = header + PREFIX, *end = header + WB_NPY_MOST_HEADER;
    const char order = types[type].size == 1 ? '|' : '<';
    at += snprintf(at, (size_t)(end - at), "{'descr': '%c%s', 'fortran_order': True, 'shape': (",
                   order, types[type].code);
    for (int d = 0; d < array.ndim; d++)
        at += snprintf(at, (size_t)(end - at), d ? ", %lld" : "%lld", (long long)array.sizes[d]);
    if (array.ndim == 1) *at++ = ',';
    at += snprintf(at, (size_t)(end - at), "), }");
    while ((at + 1 - header) % WB_NPY_ALIGN) *at++ = ' ';
    *at++ = '\n';
    const size_t length = (size_t)(at - header) - PREFIX;
    memcpy(header, magic, MAGIC_BYTES);
    header[MAGIC_BYTES] = 1, header[MAGIC_BYTES + 1] = 0;
    header[PREFIX - 2] = (char)(length & 0xFF), header[PREFIX - 1] = (char)(length >> 8);
    return (size_t)(at - header);
}

/* The format has no place for texts, nor for a name; what a model is made of is in the program. */
static const char *text_to_lose(const wb_record *metadata) {
    static const char structure[] = "_structure";
    for (int64_t i = 0; metadata && i < metadata->count; i++) {
        const char *name = metadata->names[i];
        const size_t length = strlen(name), end = sizeof structure - 1;
        if (length < end || strcmp(name + length - end, structure) != 0) return name;
    }
    return NULL;
}

static wb_status write_file(const wb_record *root, const wb_record *metadata, wb_text *out) {
    char header[WB_NPY_MOST_HEADER];
    const char *lost = text_to_lose(metadata);
    while (root->kind == WB_RECORD_MAP && root->count == 1) root = root->children[0];
    if (!wb_record_has_data(root))
        return wb_fail(WB_ERROR_ARGUMENT, "%s: .npy holds one array; .npz holds several by name",
                       out->path);
    if (lost)
        return wb_fail(WB_ERROR_UNSUPPORTED, "%s: .npy has no place for \"%.80s\"; .npz has",
                       out->path, lost);
    const size_t length = wb_npy_header(root, header, out->path, "the array");
    if (!length) return wb_error_status();
    wb_text_bytes(out, header, length);
    return wb_flat_write_data(root, out);
}

/* ---- the format ---- */

static const char *refuses(const wb_record *r) {
    if (wb_record_has_data(r)) return wb_npy_refuses(r);
    if (wb_record_is_container(r) && r->kind != WB_RECORD_OPAQUE) return NULL;
    return r->type ? r->type : wb_record_noun(r);
}

static bool recognises(const wb_mapping *map) { return is_npy(map->bytes, map->size_bytes); }

static wb_status read_file(wb_file *file) {
    static const unsigned char nothing[1];
    file->root = wb_npy_read(&(wb_npy_source){.file = file,
                                              .bytes = file->map.bytes ? file->map.bytes : nothing,
                                              .size_bytes = file->map.size_bytes});
    return file->root ? WB_OK : wb_error_status();
}

const wb_format wb_format_npy = {.name = "npy",
                                 .extension = ".npy",
                                 .recognises = recognises,
                                 .read = read_file,
                                 .has_metadata = true, /* always NULL: an array is not a model */
                                 .write = write_file,
                                 .refuses = refuses};
