/* The type Tokenizer: texts into lists of ids and back. */
#include <stdlib.h>

#include "binding.h"

static PyTypeObject *Tokenizer_type;

static wb_tokenizer *tokenizer_of(PyObject *self) { return ((Handle *)self)->object; }

/* Tokenizer(path) */
static PyObject *new_tokenizer(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char name[] = "path";
    static char *names[] = {name, NULL};
    PyObject *path = NULL;
    (void)type;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&", names, PyUnicode_FSConverter, &path))
        return NULL;
    if (!py_open()) return Py_DECREF(path), NULL;
    wb_tokenizer *t = wb_tokenizer_load(PyBytes_AsString(path));
    Py_DECREF(path);
    return py_give(Tokenizer_type, t);
}

/* ---- encode ---- */

static PyObject *list_of(const int32_t *ids, int64_t count) {
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (int64_t i = 0; list && i < count; i++) {
        PyObject *id = PyLong_FromLong(ids[i]);
        if (!id || PyList_SetItem(list, (Py_ssize_t)i, id) < 0) Py_CLEAR(list);
    }
    return list;
}

/* Twice where the first room is too small. */
static PyObject *encode_text(const wb_tokenizer *t, const char *text, Py_ssize_t bytes,
                             bool special) {
    int64_t room = bytes + 64, count = -1;
    int32_t *ids = NULL;
    for (int i = 0; i < 2 && count < 0; i++) {
        free(ids);
        ids = malloc((size_t)room * sizeof *ids);
        if (!ids) return PyErr_NoMemory();
        count = wb_encode(t, text, ids, room, bytes, .special = special);
        if (count < 0) break;
        if (count > room) room = count, count = -1;
    }
    PyObject *list = count < 0 ? NULL : list_of(ids, count);
    free(ids);
    return list;
}

/* encode(text, special=True) */
static PyObject *encode(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                        PyObject *kwnames) {
    static const char *const names[] = {"text", "special"};
    static const py_signature signature = {"encode", names, 2, 1, 2};
    PyObject *a[2];
    Py_ssize_t bytes = 0;
    if (!py_bind(&signature, args, nargs, kwnames, a)) return NULL;
    const bool special = a[1] ? py_truth(a[1]) : true;
    const char *text = PyErr_Occurred() ? NULL : PyUnicode_AsUTF8AndSize(a[0], &bytes);
    if (!text || !py_open()) return NULL;
    return py_give_object(encode_text(tokenizer_of(self), text, bytes, special));
}

/* ---- decode ---- */

/* Memory for free(); NULL with an exception. */
static int32_t *ids_of(PyObject *o, Py_ssize_t *count) {
    PyObject *list = PySequence_List(o);
    *count = list ? PyList_Size(list) : 0;
    int32_t *ids = list ? malloc(((size_t)*count + 1) * sizeof *ids) : NULL;
    if (list && !ids) (void)PyErr_NoMemory();
    for (Py_ssize_t i = 0; ids && i < *count; i++) {
        const long long id = PyLong_AsLongLong(PyList_GetItem(list, i));
        ids[i] = id < 0 || id > INT32_MAX ? -1 : (int32_t)id; /* no token */
    }
    Py_XDECREF(list);
    if (!PyErr_Occurred()) return ids;
    free(ids);
    return NULL;
}

static PyObject *decode_ids(const wb_tokenizer *t, const int32_t *ids, Py_ssize_t count,
                            bool special, bool partial) {
    const int64_t bytes = wb_decode(t, ids, count, .special = special, .partial = partial);
    char *text = bytes < 0 ? NULL : malloc((size_t)bytes + 1);
    if (bytes >= 0 && !text) return PyErr_NoMemory();
    PyObject *made = NULL;
    if (text &&
        wb_decode(t, ids, count, text, bytes + 1, .special = special, .partial = partial) == bytes)
        made = PyUnicode_DecodeUTF8(text, (Py_ssize_t)bytes, NULL);
    free(text);
    return made;
}

/* decode(ids, special=False, partial=False) */
static PyObject *decode(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                        PyObject *kwnames) {
    static const char *const names[] = {"ids", "special", "partial"};
    static const py_signature signature = {"decode", names, 3, 1, 3};
    PyObject *a[3];
    Py_ssize_t count;
    if (!py_bind(&signature, args, nargs, kwnames, a)) return NULL;
    const bool special = a[1] && py_truth(a[1]), partial = a[2] && py_truth(a[2]);
    int32_t *ids = PyErr_Occurred() ? NULL : ids_of(a[0], &count);
    if (!ids) return NULL;
    if (!py_open()) return free(ids), NULL;
    PyObject *text = decode_ids(tokenizer_of(self), ids, count, special, partial);
    free(ids);
    return py_give_object(text);
}

/* ---- questions ---- */

static Py_ssize_t length(PyObject *self) {
    return (Py_ssize_t)wb_tokenizer_size(tokenizer_of(self));
}

static PyObject *id(PyObject *self, PyObject *o) {
    if (!py_open()) return NULL;
    const char *token = py_text(o);
    if (PyErr_Occurred()) return py_fail();
    const int32_t found = wb_tokenizer_id(tokenizer_of(self), token);
    return py_give_object(found < 0 ? Py_NewRef(Py_None) : PyLong_FromLong(found));
}

static PyObject *token(PyObject *self, PyObject *o) {
    if (!py_open()) return NULL;
    const int64_t number = py_integer(o);
    if (PyErr_Occurred()) return py_fail();
    const bool is_id = number >= 0 && number <= INT32_MAX;
    return py_give_text(is_id ? wb_tokenizer_token(tokenizer_of(self), (int32_t)number) : NULL);
}

/* ---- generate ---- */

static bool on_token(void *user, int32_t token) {
    const py_inside inside = py_callback_begin();
    PyObject *result = PyObject_CallFunction(user, "i", (int)token);
    const bool goes_on = result && result != Py_False;
    Py_XDECREF(result);
    if (PyErr_Occurred()) py_keep_exception();
    py_callback_end(inside);
    return goes_on;
}

/* Reads the settings, in the order of the signature below. */
static bool read_settings(PyObject *const *a, wb_generate_desc *d) {
    d->model = py_layer(a[0]);
    if (a[2]) d->most = py_integer(a[2]);
    d->temperature = py_given_real(a[3], 1), d->top_p = py_given_real(a[5], 1);
    if (!py_is_none(a[4])) d->top_k = py_integer(a[4]);
    d->repetition = py_given_real(a[6], 1);
    if (!py_is_none(a[7])) d->end = py_integer(a[7]);
    if (!py_is_none(a[8])) d->each = on_token, d->user = a[8];
    if (d->most < d->count) d->most = d->count;
    return !PyErr_Occurred();
}

/* generate(model, tokens, most, ...) */
static PyObject *generate(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                          PyObject *kwnames) {
    static const char *const names[] = {"model", "tokens",     "most", "temperature", "top_k",
                                        "top_p", "repetition", "end",  "each"};
    static const py_signature signature = {"generate", names, 9, 3, 3};
    PyObject *a[9], *list = NULL;
    Py_ssize_t count;
    wb_generate_desc d = WB_DESC(generate, NULL);
    (void)module;
    if (!py_bind(&signature, args, nargs, kwnames, a)) return NULL;
    int32_t *given = ids_of(a[1], &count), *all = NULL;
    if (!given) return NULL;
    if (!py_open()) return free(given), NULL;
    d.count = count;
    if (read_settings(a, &d) && d.most < 1 << 30)
        all = realloc(given, ((size_t)d.most + 1) * sizeof *all);
    if (!all) {
        free(given);
        if (!PyErr_Occurred()) PyErr_NoMemory();
        return py_fail();
    }
    d.tokens = all;
    PyThreadState *others = PyEval_SaveThread();
    const int64_t length = wb_generate_make(d);
    PyEval_RestoreThread(others);
    list = length < 0 ? NULL : list_of(all, length);
    free(all);
    return py_give_object(list);
}

static PyMethodDef functions[] = {
    {"generate", (PyCFunction)(void *)generate, METH_FASTCALL | METH_KEYWORDS,
     "generate($module, model, tokens, most, *, temperature=1, top_k=None, top_p=1, repetition=1, "
     "end=None, each=None)\n--\n\nContinues the tokens up to `most` of them, by a model of "
     "language; returns all. temperature=0 takes the likeliest each time, top_k and top_p leave "
     "unlikely ones out, end is a token that ends the text (end_token(folder)). each(token) is "
     "called with every new one; False ends the text."},
    {NULL, NULL, 0, NULL}};

bool py_add_text(PyObject *module) {
    static PyMemberDef weak[] = {PY_WEAK_AT(Handle), {NULL, 0, 0, 0, NULL}};
    static PyMethodDef methods[] = {
        {"encode", (PyCFunction)(void *)encode, METH_FASTCALL | METH_KEYWORDS,
         "encode(text, special=True): the ids of a text, with those that the file puts around it."},
        {"decode", (PyCFunction)(void *)decode, METH_FASTCALL | METH_KEYWORDS,
         "decode(ids, special=False, partial=False): the text of ids; with special=True special "
         "tokens are shown, with partial=True a character that is not complete is left out."},
        {"id", id, METH_O, "id(token): its number, or None."},
        {"token", token, METH_O, "token(id): as the file writes it, or None."},
        {NULL, NULL, 0, NULL}};
    PyType_Slot slots[] = {{Py_tp_dealloc, py_handle_dealloc},
                           {Py_tp_new, new_tokenizer},
                           {Py_tp_members, weak},
                           {Py_tp_methods, methods},
                           {Py_sq_length, length},
                           {Py_tp_doc, "Tokenizer(path): a tokenizer.json, or the folder that has "
                                       "it; its length is what an Embedding of its tokens needs."},
                           {0, NULL}};
    Tokenizer_type = py_new_type(module, "weber.Tokenizer", sizeof(Handle), 0, slots);
    return Tokenizer_type && PyModule_AddFunctions(module, functions) == 0;
}
