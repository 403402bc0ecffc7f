/* The type SharedModel: copies of a model over the same memory, each with a context of its own, so
 * that several threads compute at once. */
#include <stdlib.h>

#include "binding.h"

static PyTypeObject *SharedModel_type;

typedef struct copy {
    py_context context;
    wb_layer *model;
    const wb_device *device; /* of the model */
    bool is_busy;            /* changed with the GIL */
} copy;

typedef struct SharedModel {
    PyObject_HEAD Py_ssize_t count;
    copy *copies;
    PyObject *free; /* a threading.Semaphore: of copies that are not busy */
    PyObject *weak;
} SharedModel;

/* ---- making ---- */

static bool begin(copy *c, wb_layer *model, const wb_device *device) {
    c->device = device, c->model = wb_share(model);
    if (!c->model) return (void)py_raise(), false;
    return py_context_begin(&c->context);
}

static void end(copy *c) {
    if (c->context.context) py_context_end(&c->context);
    py_release(c->model);
}

static void dealloc(PyObject *self) {
    SharedModel *s = (SharedModel *)self;
    PyTypeObject *type = Py_TYPE(self);
    if (s->weak) PyObject_ClearWeakRefs(self);
    for (Py_ssize_t i = 0; i < s->count; i++) end(&s->copies[i]);
    free(s->copies);
    Py_CLEAR(s->free);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyObject *semaphore(Py_ssize_t count) {
    PyObject *threading = PyImport_ImportModule("threading");
    PyObject *made = threading ? PyObject_CallMethod(threading, "Semaphore", "n", count) : NULL;
    Py_XDECREF(threading);
    return made;
}

/* share(model, threads=None) */
static PyObject *share(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                       PyObject *kwnames) {
    (void)module;
    static const char *const names[] = {"model", "threads"};
    static const py_signature signature = {"share", names, 2, 1, 2};
    PyObject *a[2];
    if (!py_bind(&signature, args, nargs, kwnames, a)) return NULL;
    const Py_ssize_t count = py_is_none(a[1]) ? wb_threads() : (Py_ssize_t)py_integer(a[1]);
    if (PyErr_Occurred()) return NULL;
    if (count < 1 || count > 1024)
        return PyErr_Format(PyExc_ValueError, "threads must be from 1 to 1024, got %zd", count);
    SharedModel *s = (SharedModel *)((allocfunc)PyType_GetSlot(SharedModel_type, Py_tp_alloc))(
        SharedModel_type, 0);
    if (!s) return NULL;
    s->copies = calloc((size_t)count, sizeof *s->copies);
    s->free = s->copies ? semaphore(count) : PyErr_NoMemory();
    if (!s->free || !py_open()) return Py_DECREF((PyObject *)s), NULL;
    wb_layer *model = py_layer(a[0]);
    const wb_device *device = model && !PyErr_Occurred() ? wb_device_of(model) : NULL;
    if (wb_failed() || PyErr_Occurred()) {
        Py_DECREF((PyObject *)s);
        return py_fail();
    }
    while (s->count < count && begin(&s->copies[s->count++], model, device)) {
    }
    py_close();
    if (!PyErr_Occurred() && !wb_failed()) return (PyObject *)s;
    Py_DECREF((PyObject *)s);
    return PyErr_Occurred() ? NULL : py_raise();
}

/* ---- calls ---- */

/* Arrays of the interpreter's context for another one; what else is given stays NULL. */
static bool share_inputs(PyObject *args, wb_array **shared) {
    const Py_ssize_t count = PyTuple_Size(args);
    bool good = true;
    for (Py_ssize_t i = 0; i < count && good; i++) {
        PyObject *o = PyTuple_GetItem(args, i);
        if (Py_TYPE(o) != Array_type) continue;
        if (!py_open()) return false;
        wb_array *x = py_array(o);
        PyThreadState *others = PyEval_SaveThread();
        shared[i] = wb_share_array(x);
        PyEval_RestoreThread(others);
        py_close();
        good = shared[i] && !wb_failed();
    }
    return good || (py_raise(), false);
}

/* In the copy's context: the results, for the context that uses them first; how many, or 0. */
static int apply(const copy *c, PyObject *args, wb_array **inputs, wb_array **results) {
    const int count = (int)PyTuple_Size(args);
    (void)wb_set_context_device(c->device);
    for (int i = 0; i < count && !PyErr_Occurred(); i++) {
        if (inputs[i]) {
            inputs[i] = wb_give(inputs[i]);
            continue;
        }
        inputs[i] = py_array(PyTuple_GetItem(args, i));
        if (!inputs[i] && !PyErr_Occurred() && !wb_failed())
            PyErr_Format(PyExc_TypeError, "a model takes arrays, but argument %d is None", i);
    }
    if (PyErr_Occurred()) return 0;
    wb_array *out[WB_MOST_ARRAYS];
    const int made = wb_apply_many(c->model, count, inputs, WB_MOST_ARRAYS, out);
    PyThreadState *others = PyEval_SaveThread();
    const bool good = wb_eval_make(made, out) == WB_OK;
    for (int i = 0; i < made && good; i++) results[i] = wb_share_array(out[i]);
    PyEval_RestoreThread(others);
    return made;
}

static PyObject *results_of(int made, wb_array **results) {
    if (made == 1) return py_wrap_array(results[0]);
    PyObject *tuple = PyTuple_New(made);
    for (int i = 0; i < made; i++) {
        if (tuple)
            PyTuple_SetItem(tuple, i, py_wrap_array(results[i]));
        else
            py_release(results[i]);
    }
    return tuple;
}

static PyObject *call_copy(copy *c, PyObject *args) {
    wb_array *inputs[WB_MOST_ARRAYS] = {NULL}, *results[WB_MOST_ARRAYS] = {NULL};
    if (!share_inputs(args, inputs)) {
        for (Py_ssize_t i = 0; i < PyTuple_Size(args); i++) py_release(inputs[i]);
        return NULL;
    }
    py_context *before = py_now;
    py_now = &c->context;
    int made = 0;
    bool is_good = py_open();
    if (is_good) {
        made = apply(c, args, inputs, results);
        py_close();
        is_good = made > 0 && !wb_failed() && !PyErr_Occurred();
    }
    if (!is_good) {
        for (int i = 0; i < made; i++) py_release(results[i]);
        (void)py_raise();
    }
    py_now = before;
    return is_good ? results_of(made, results) : NULL;
}

/* Waits for a copy that is not busy; NULL with an exception. */
static copy *take_copy(SharedModel *s) {
    PyObject *taken = PyObject_CallMethod(s->free, "acquire", NULL);
    if (!taken) return NULL;
    Py_DECREF(taken);
    copy *c = s->copies;
    while (c->is_busy) c++;
    c->is_busy = true;
    return c;
}

static bool give_copy(SharedModel *s, copy *c) {
    PyObject *type, *value, *trace;
    c->is_busy = false;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *given = PyObject_CallMethod(s->free, "release", NULL);
    Py_XDECREF(given);
    if (given)
        PyErr_Restore(type, value, trace);
    else
        Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(trace);
    return given;
}

static PyObject *call(PyObject *self, PyObject *args, PyObject *kwargs) {
    SharedModel *s = (SharedModel *)self;
    const Py_ssize_t count = PyTuple_Size(args);
    if (kwargs && PyDict_Size(kwargs))
        return PyErr_SetString(PyExc_TypeError, "shared models take arrays, without names"), NULL;
    if (count < 1 || count > WB_MOST_ARRAYS)
        return PyErr_Format(PyExc_TypeError, "a model takes 1 to %d arrays, got %zd",
                            (int)WB_MOST_ARRAYS, count);
    if (py_is_inside()) {
        PyErr_SetString(PyExc_RuntimeError,
                        "a shared model cannot be called in a loss, a layer or another function "
                        "that Weber calls: use the model itself there");
        return NULL;
    }
    copy *c = take_copy(s);
    PyObject *result = c ? call_copy(c, args) : NULL;
    if (c && !give_copy(s, c)) Py_CLEAR(result);
    return result;
}

/* ---- the type ---- */

static PyObject *get_threads(PyObject *self, void *closure) {
    (void)closure;
    return PyLong_FromSsize_t(((SharedModel *)self)->count);
}
static PyObject *repr(PyObject *self) {
    const SharedModel *s = (const SharedModel *)self;
    return PyUnicode_FromFormat("weber.SharedModel(%s, threads=%zd)",
                                s->copies[0].model->class_->name, s->count);
}
static PyGetSetDef properties[] = {
    {"threads", get_threads, NULL, "How many threads compute at once.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};
static PyMemberDef members[] = {PY_WEAK_AT(SharedModel), {NULL, 0, 0, 0, NULL}};

static PyMethodDef functions[] = {
    {"share", (PyCFunction)(void *)share, METH_FASTCALL | METH_KEYWORDS,
     "share($module, model, threads=None)\n--\n\nA SharedModel: the model as it is now, over the "
     "same memory, called by several threads at once, as many as `threads` (None: the number of "
     "cores); more wait. Calls take arrays and return computed ones. Other calls of Weber wait "
     "for each other. Later updates of the model do not reach it."},
    {NULL, NULL, 0, NULL}};

bool py_add_share(PyObject *module) {
    PyType_Slot slots[] = {{Py_tp_dealloc, dealloc},
                           {Py_tp_doc, "A model that several threads call at once: share(model)."},
                           {Py_tp_call, call},
                           {Py_tp_getset, properties},
                           {Py_tp_members, members},
                           {Py_tp_repr, repr},
                           {0, NULL}};
    SharedModel_type = py_new_type(module, "weber.SharedModel", sizeof(SharedModel),
                                   Py_TPFLAGS_DISALLOW_INSTANTIATION, slots);
    return SharedModel_type && py_add_functions(module, functions);
}
