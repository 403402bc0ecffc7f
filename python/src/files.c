/* Saving and loading: paths, bytes and checkpoints. */
#include <stdlib.h>

#include "binding.h"

/* Objects by name, from a dict. */
typedef struct objects {
    int64_t count;
    wb_named *at;
} objects;

static void *object_of(PyObject *o) {
    if (PyObject_TypeCheck(o, Layer_type)) return py_layer(o);
    if (PyObject_TypeCheck(o, Optimiser_type) || PyObject_TypeCheck(o, Loader_type))
        return ((Handle *)o)->object;
    if (PyUnicode_Check(o)) {
        const char *text = py_text(o);
        return text ? wb_text_make(text) : NULL;
    }
    if (o == Py_Ellipsis) return wb_random_state(); /* weber.random_state */
    return py_array(o);
}

static objects objects_of(PyObject *dict) {
    objects list = {0};
    if (!PyDict_Check(dict)) {
        PyErr_SetString(PyExc_TypeError, "expected a dict of objects by name");
        return list;
    }
    list.at = PyMem_Calloc((size_t)PyDict_Size(dict) + 1, sizeof *list.at);
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (list.at && !PyErr_Occurred() && PyDict_Next(dict, &at, &key, &value))
        list.at[list.count++] = (wb_named){py_text(key), object_of(value)};
    if (!list.at) (void)PyErr_NoMemory();
    return list;
}

/* _save(path, dict), _load(path, dict) */
static PyObject *with_path(PyObject *const *args,
                           wb_status (*f)(const char *, int64_t, const wb_named *)) {
    if (!py_open()) return NULL;
    const char *path = py_text(args[0]);
    const objects list = objects_of(args[1]);
    wb_status status = WB_OK;
    if (!PyErr_Occurred()) {
        PyThreadState *others = PyEval_SaveThread();
        status = f(path, list.count, list.at);
        PyEval_RestoreThread(others);
    }
    PyMem_Free(list.at);
    return PyErr_Occurred() ? py_fail() : py_give_status(status);
}
static PyObject *save(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module, (void)nargs;
    return with_path(args, wb_save_make);
}
static PyObject *load(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module, (void)nargs;
    return with_path(args, wb_load_named_make);
}

/* _load_state(model, path, key, partial, rename, from): as wb_load. */
static PyObject *load_state(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module, (void)nargs;
    if (!py_open()) return NULL;
    wb_load_desc desc = WB_DESC(load, WB_NO_MORE);
    desc.model = py_layer(args[0]);
    desc.path = py_text(args[1]);
    desc.key = py_text(args[2]);
    desc.partial = py_truth(args[3]);
    desc.rename = py_text(args[4]);
    desc.from = py_text(args[5]);
    if (PyErr_Occurred()) return py_fail();
    PyThreadState *others = PyEval_SaveThread();
    const wb_status status = wb_load_make(desc);
    PyEval_RestoreThread(others);
    return py_give_status(status);
}

/* _save_bytes(name, dict): the bytes of the file. */
static PyObject *save_bytes(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module, (void)nargs;
    if (!py_open()) return NULL;
    const char *name = py_text(args[0]);
    const objects list = objects_of(args[1]);
    wb_file *file = NULL;
    if (!PyErr_Occurred()) {
        PyThreadState *others = PyEval_SaveThread();
        file = wb_save_memory_make(name, list.count, list.at);
        PyEval_RestoreThread(others);
    }
    PyMem_Free(list.at);
    if (!file) return py_fail();
    PyObject *bytes =
        PyBytes_FromStringAndSize(wb_file_bytes(file), (Py_ssize_t)wb_file_size(file));
    wb_free(file);
    return py_give_object(bytes);
}

static wb_file *file_of_bytes(PyObject *name, PyObject *bytes) {
    char *data;
    Py_ssize_t count;
    const char *text = py_text(name);
    if (!text || PyBytes_AsStringAndSize(bytes, &data, &count) < 0) return NULL;
    return wb_open_memory(text, data, (size_t)count, NULL, NULL);
}

/* _load_bytes(name, bytes, dict) */
static PyObject *load_bytes(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module, (void)nargs;
    if (!py_open()) return NULL;
    wb_file *file = file_of_bytes(args[0], args[1]);
    if (!file) return py_fail();
    const objects list = objects_of(args[2]);
    const wb_status status =
        PyErr_Occurred() ? WB_OK : wb_load_named_from_make(file, list.count, list.at);
    PyMem_Free(list.at);
    wb_free(file);
    return PyErr_Occurred() ? py_fail() : py_give_status(status);
}

/* _model_of_bytes(name, bytes): the model in them. */
static PyObject *model_of_bytes(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module, (void)nargs;
    if (!py_open()) return NULL;
    wb_file *file = file_of_bytes(args[0], args[1]);
    if (!file) return py_fail();
    wb_layer *model = wb_file_model(file, "model", NULL);
    wb_free(file);
    return py_give(Layer_type, model);
}

/* A text of a file, or None; closes it. */
static PyObject *text_in(wb_file *file, PyObject *name) {
    if (!file) return py_fail();
    const char *wanted = py_text(name), *text = wanted ? wb_file_text(file, wanted) : NULL;
    wb_clear_error(); /* there is none */
    PyObject *result = text ? PyUnicode_FromString(text) : Py_NewRef(Py_None);
    wb_free(file);
    return py_give_object(result);
}
/* _text_of(path, name), _text_of_bytes(file's name, bytes, name) */
static PyObject *text_of(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module, (void)nargs;
    if (!py_open()) return NULL;
    const char *path = py_text(args[0]);
    return text_in(path ? wb_open(path) : NULL, args[1]);
}
static PyObject *text_of_bytes(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module, (void)nargs;
    if (!py_open()) return NULL;
    return text_in(file_of_bytes(args[0], args[1]), args[2]);
}

/* _checkpoint_save(path, number, keep, dict), _checkpoint_load(path, dict): the number, or -1 */
static PyObject *checkpoint_save(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module, (void)nargs;
    if (!py_open()) return NULL;
    const char *path = py_text(args[0]);
    const int64_t count = py_integer(args[1]), kept = py_integer(args[2]);
    const objects list = objects_of(args[3]);
    const wb_status status =
        PyErr_Occurred() ? WB_OK : wb_checkpoint_save_make(path, count, kept, list.count, list.at);
    PyMem_Free(list.at);
    return PyErr_Occurred() ? py_fail() : py_give_status(status);
}
static PyObject *checkpoint_load(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module, (void)nargs;
    if (!py_open()) return NULL;
    const char *path = py_text(args[0]);
    const objects list = objects_of(args[1]);
    int64_t number = -1;
    if (!PyErr_Occurred()) (void)wb_checkpoint_load_make(path, &number, list.count, list.at);
    PyMem_Free(list.at);
    return PyErr_Occurred() || wb_failed() ? py_fail()
                                           : py_give_object(PyLong_FromLongLong((long long)number));
}

#define FAST(name, function)                                                                       \
    { name, (PyCFunction)(void *)function, METH_FASTCALL, NULL }
static PyMethodDef functions[] = {FAST("_save", save),
                                  FAST("_load", load),
                                  FAST("_load_state", load_state),
                                  FAST("_save_bytes", save_bytes),
                                  FAST("_load_bytes", load_bytes),
                                  FAST("_model_of_bytes", model_of_bytes),
                                  FAST("_text_of", text_of),
                                  FAST("_text_of_bytes", text_of_bytes),
                                  FAST("_checkpoint_save", checkpoint_save),
                                  FAST("_checkpoint_load", checkpoint_load),
                                  {NULL, NULL, 0, NULL}};

bool py_add_files(PyObject *module) { return py_add_functions(module, functions); }
