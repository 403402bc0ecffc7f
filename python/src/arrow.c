/* Columns of pandas, polars, pyarrow and DuckDB, by Arrow's C data interface
 * (arrow.apache.org/docs/format/CDataInterface.html): numbers without a copy. */
#include <stdlib.h>

#include "binding.h"

typedef struct arrow_schema {
    const char *format, *name, *metadata;
    int64_t flags, child_count;
    struct arrow_schema **children, *dictionary;
    void (*release)(struct arrow_schema *);
    void *own;
} arrow_schema;

typedef struct arrow_array {
    int64_t length, null_count, offset, buffer_count, child_count;
    const void **buffers;
    struct arrow_array **children, *dictionary;
    void (*release)(struct arrow_array *);
    void *own;
} arrow_array;

typedef struct arrow_stream {
    int (*get_schema)(struct arrow_stream *, arrow_schema *);
    int (*get_next)(struct arrow_stream *, arrow_array *);
    const char *(*get_last_error)(struct arrow_stream *);
    void (*release)(struct arrow_stream *);
    void *own;
} arrow_stream;

/* What an object has given: a column, or a table, in chunks. */
typedef struct table {
    arrow_schema schema;
    arrow_array *chunks;
    int64_t count;
} table;

static void table_end(table *t) {
    for (int64_t i = 0; i < t->count; i++)
        if (t->chunks[i].release) t->chunks[i].release(&t->chunks[i]);
    if (t->schema.release) t->schema.release(&t->schema);
    free(t->chunks);
}

/* ---- taking ---- */

/* Room for another chunk, NULL with an exception. */
static arrow_array *new_chunk(table *t) {
    arrow_array *more = realloc(t->chunks, (size_t)(t->count + 1) * sizeof *more);
    if (!more) return (void)PyErr_NoMemory(), NULL;
    t->chunks = more;
    t->chunks[t->count] = (arrow_array){0};
    return &t->chunks[t->count];
}

static void take_array(PyObject *o, table *t) {
    PyObject *pair = PyObject_CallMethod(o, "__arrow_c_array__", NULL);
    PyObject *first = pair ? PySequence_GetItem(pair, 0) : NULL;
    PyObject *second = first ? PySequence_GetItem(pair, 1) : NULL;
    arrow_schema *schema = second ? PyCapsule_GetPointer(first, "arrow_schema") : NULL;
    arrow_array *array = schema ? PyCapsule_GetPointer(second, "arrow_array") : NULL;
    arrow_array *chunk = array ? new_chunk(t) : NULL;
    if (chunk) {
        t->schema = *schema, *chunk = *array;
        schema->release = NULL, array->release = NULL;
        t->count++;
    }
    Py_XDECREF(first), Py_XDECREF(second), Py_XDECREF(pair);
}

static bool stream_failed(arrow_stream *s, int code) {
    if (code == 0) return PyErr_Occurred();
    const char *text = s->get_last_error(s);
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "from_arrow: %s", text ? text : "the stream has failed");
    return true;
}

static void take_stream(PyObject *o, table *t) {
    PyObject *capsule = PyObject_CallMethod(o, "__arrow_c_stream__", NULL);
    arrow_stream *s = capsule ? PyCapsule_GetPointer(capsule, "arrow_array_stream") : NULL;
    bool is_over = !s || stream_failed(s, s->get_schema(s, &t->schema));
    while (!is_over) {
        arrow_array *chunk = new_chunk(t);
        is_over = !chunk || stream_failed(s, s->get_next(s, chunk)) || !chunk->release;
        t->count += !is_over;
    }
    Py_XDECREF(capsule); /* releases the stream */
}

static bool has(PyObject *o, const char *name) { return PyObject_HasAttrString(o, name); }

bool py_is_arrow(PyObject *o) {
    return has(o, "__arrow_c_array__") || has(o, "__arrow_c_stream__");
}

static bool take(PyObject *o, table *t) {
    if (has(o, "__arrow_c_array__"))
        take_array(o, t);
    else if (has(o, "__arrow_c_stream__"))
        take_stream(o, t);
    else
        PyErr_Format(PyExc_TypeError,
                     "from_arrow: %R is no column of Arrow's (it has no __arrow_c_array__ or "
                     "__arrow_c_stream__); array(x) takes other objects",
                     (PyObject *)Py_TYPE(o));
    return !PyErr_Occurred();
}

/* ---- one column ---- */

static bool is_null(const uint8_t *bits, int64_t i) { return !(bits[i / 8] >> i % 8 & 1); }

static int64_t nulls_of(const arrow_array *a) {
    const uint8_t *bits = a->null_count && a->buffer_count > 0 ? a->buffers[0] : NULL;
    int64_t count = 0;
    for (int64_t i = 0; bits && i < a->length; i++) count += is_null(bits, a->offset + i);
    return count;
}

/* Arrow's letter of a type of numbers, as buffers have it, and the size of one. */
static const struct {
    char arrow, buffer;
    int8_t size, dtype; /* -1: a type that Weber lacks */
} types[] = {{'f', 'f', 4, WB_F32}, {'g', 'd', 8, WB_F64}, {'e', 'e', 2, WB_F16},
             {'i', 'i', 4, WB_I32}, {'l', 'q', 8, WB_I64}, {'C', 'B', 1, WB_U8},
             {'c', 'b', 1, -1},     {'s', 'h', 2, -1},     {'S', 'H', 2, -1},
             {'I', 'I', 4, -1},     {'L', 'Q', 8, -1},     {'b', '?', 1, WB_BOOL}};
enum { TYPES = (int)(sizeof types / sizeof *types) };

static int type_of(const arrow_schema *schema) {
    int i = 0;
    while (i < TYPES && (schema->format[0] != types[i].arrow || schema->format[1])) i++;
    return schema->dictionary ? TYPES : i;
}

/* What a column that has no numbers has, and what can be done. */
static const char *advice(const arrow_schema *schema) {
    if (schema->dictionary)
        return "categories: take their codes (pandas: series.cat.codes, polars: "
               "series.to_physical(), pyarrow: column.indices)";
    switch (schema->format[0]) {
    case 'u':
    case 'U':
    case 'v':
        return "texts: make categories of them, and take their codes (pandas: "
               "series.astype('category').cat.codes)";
    case 't':
        return "times: cast them to int64 or float64 first";
    case 'd':
        return "decimals: cast them to float64 first";
    case 'n':
        return "nothing but nulls: fill them first";
    case '+':
        return "lists or structs: flatten them first; a table is from_arrow(table), a dict";
    default:
        return "bytes, or another type that is no number";
    }
}

static bool check(const arrow_schema *schema, int64_t nulls, int64_t length) {
    const char *name = schema->name && *schema->name ? schema->name : NULL;
    const char *a = name ? "column '" : "the column", *b = name ? name : "", *c = name ? "'" : "";
    if (type_of(schema) == TYPES)
        PyErr_Format(PyExc_TypeError, "from_arrow: %s%s%s has %s", a, b, c, advice(schema));
    else if (nulls)
        PyErr_Format(PyExc_ValueError,
                     "from_arrow: %s%s%s has %lld nulls among %lld values: fill or drop them "
                     "first (pandas: fillna, dropna, polars and pyarrow: fill_null, drop_nulls)",
                     a, b, c, (long long)nulls, (long long)length);
    return !PyErr_Occurred();
}

static void release_chunk(void *argument) {
    arrow_array *a = argument;
    if (a->release) a->release(a);
    free(a);
}
static void chunk_is_unused(void *chunk, void *data) {
    (void)data;
    py_do_later(release_chunk, chunk); /* its owner may want the interpreter's lock */
}

/* Arrow's bools are bits. */
static wb_array *of_bits(const arrow_array *a) {
    uint8_t *bytes = PyMem_Malloc((size_t)a->length + 1);
    if (!bytes) return (void)PyErr_NoMemory(), NULL;
    for (int64_t i = 0; i < a->length; i++) bytes[i] = !is_null(a->buffers[1], a->offset + i);
    wb_array *x = wb_from_make(WB_BOOL, bytes, 1, &a->length);
    PyMem_Free(bytes);
    return x;
}

/* The numbers of a chunk, which a borrowed array keeps. */
static wb_array *of_chunk(arrow_array *a, int type) {
    const char *data = a->length ? (const char *)a->buffers[1] + a->offset * types[type].size : "";
    if (types[type].dtype == WB_BOOL) return of_bits(a);
    if (types[type].dtype < 0) {
        char format[] = {types[type].buffer, '\0'};
        const Py_buffer view = {.buf = (void *)(uintptr_t)data,
                                .len = (Py_ssize_t)(a->length * types[type].size),
                                .itemsize = types[type].size,
                                .format = format,
                                .ndim = 1};
        return py_of_other_integers(&view, &a->length);
    }
    if (a->length == 0) return wb_from_make((wb_dtype)types[type].dtype, data, 1, &a->length);
    arrow_array *kept = malloc(sizeof *kept);
    if (!kept) return (void)PyErr_NoMemory(), NULL;
    *kept = *a;
    a->release = NULL;
    return wb_borrow_make((wb_dtype)types[type].dtype, data, chunk_is_unused, kept, 1,
                          &kept->length);
}

/* The chunks as one array, in the current scope. */
static wb_array *of_chunks(const arrow_schema *schema, arrow_array *const *chunks, int64_t count) {
    int64_t nulls = 0, length = 0, used = 0;
    for (int64_t i = 0; i < count; i++) nulls += nulls_of(chunks[i]), length += chunks[i]->length;
    if (!check(schema, nulls, length)) return NULL;
    arrow_array nothing = {0};
    const int type = type_of(schema);
    wb_array **list = PyMem_Calloc((size_t)count + 1, sizeof(wb_array *));
    for (int64_t i = 0; list && i < count && !PyErr_Occurred(); i++)
        if (chunks[i]->length) list[used++] = of_chunk(chunks[i], type);
    if (list && used == 0) list[used++] = of_chunk(&nothing, type);
    wb_array *x = !list || PyErr_Occurred() ? NULL
                  : used == 1               ? list[0]
                                            : wb_concat_make(0, (int)used, list);
    if (!list) (void)PyErr_NoMemory();
    PyMem_Free(list);
    return x;
}

static bool is_table(const table *t) { return strcmp(t->schema.format, "+s") == 0; }

/* Column k of a table: what it shares with its row, the place of its first one, is the table's. */
static wb_array *column_of(table *t, int64_t k) {
    arrow_array **chunks = PyMem_Calloc((size_t)t->count + 1, sizeof(arrow_array *));
    for (int64_t i = 0; chunks && i < t->count; i++) {
        chunks[i] = t->chunks[i].children[k];
        chunks[i]->offset += t->chunks[i].offset;
        chunks[i]->length = t->chunks[i].length;
        if (t->chunks[i].offset) chunks[i]->null_count = -1;
    }
    wb_array *x = chunks ? of_chunks(t->schema.children[k], chunks, t->count) : NULL;
    if (!chunks) (void)PyErr_NoMemory();
    PyMem_Free(chunks);
    return x;
}

static wb_array *whole(table *t) {
    arrow_array **chunks = PyMem_Calloc((size_t)t->count + 1, sizeof(arrow_array *));
    for (int64_t i = 0; chunks && i < t->count; i++) chunks[i] = &t->chunks[i];
    wb_array *x = chunks ? of_chunks(&t->schema, chunks, t->count) : NULL;
    if (!chunks) (void)PyErr_NoMemory();
    PyMem_Free(chunks);
    return x;
}

wb_array *py_of_arrow(PyObject *o) {
    table t = {0};
    wb_array *x = NULL;
    if (take(o, &t) && is_table(&t))
        PyErr_SetString(PyExc_TypeError,
                        "a table has several columns: from_arrow(table) is a dict of them");
    else if (!PyErr_Occurred())
        x = whole(&t);
    table_end(&t);
    return x;
}

static PyObject *columns(table *t) {
    for (int64_t i = 0; i < t->count; i++)
        if (nulls_of(&t->chunks[i]))
            return PyErr_SetString(PyExc_ValueError, "from_arrow: rows of the table are null"),
                   NULL;
    PyObject *dict = PyDict_New();
    for (int64_t k = 0; dict && k < t->schema.child_count && !PyErr_Occurred(); k++) {
        wb_array *x = column_of(t, k);
        PyObject *array = x && !PyErr_Occurred() ? py_wrap_array(wb_take(x)) : NULL;
        const char *name = t->schema.children[k]->name;
        if (!array || PyDict_SetItemString(dict, name ? name : "", array) < 0) Py_CLEAR(dict);
        Py_XDECREF(array);
    }
    if (PyErr_Occurred()) Py_CLEAR(dict);
    return dict;
}

PyObject *py_from_arrow(PyObject *module, PyObject *o) {
    (void)module;
    if (!py_open()) return NULL;
    table t = {0};
    PyObject *result = NULL;
    if (take(o, &t) && is_table(&t))
        result = columns(&t);
    else if (!PyErr_Occurred()) {
        wb_array *x = whole(&t);
        result = x && !PyErr_Occurred() ? py_wrap_array(wb_take(x)) : NULL;
    }
    table_end(&t);
    return py_give_object(result);
}
