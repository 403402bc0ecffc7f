/* Loaders over arrays and over functions of Python's. */
#include "binding.h"

/* What a loader calls: kept by its Python object. */
typedef struct calls {
    PyObject *map, *getobs, *observe, *collate;
} calls;

static wb_status status_here(void) {
    if (PyErr_Occurred()) py_keep_exception();
    return wb_error_status();
}

/* ---- functions of Python's ---- */

enum { MOST_ARRAYS_OF_BATCH = 2 + WB_MORE_ARRAYS };

static wb_array **place_in(wb_batch *batch, Py_ssize_t i) {
    return i == 0 ? &batch->x : i == 1 ? &batch->y : &batch->more[i - 2];
}

static PyObject *batch_tuple(const wb_batch *batch) {
    wb_batch b = *batch;
    Py_ssize_t count = 0;
    for (Py_ssize_t i = 0; i < MOST_ARRAYS_OF_BATCH; i++) count += *place_in(&b, i) != NULL;
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t i = 0, k = 0; tuple && i < MOST_ARRAYS_OF_BATCH; i++)
        if (*place_in(&b, i)) PyTuple_SetItem(tuple, k++, py_wrap_array(wb_take(*place_in(&b, i))));
    return tuple;
}

/* Puts an array, or a tuple of them, in the places of a batch. */
static void fill_batch(wb_batch *batch, PyObject *result) {
    const Py_ssize_t count = PyTuple_Check(result) ? PyTuple_Size(result) : 1;
    if (count > MOST_ARRAYS_OF_BATCH) {
        PyErr_Format(PyExc_ValueError, "a batch has at most %d arrays", (int)MOST_ARRAYS_OF_BATCH);
        return;
    }
    for (Py_ssize_t i = 0; i < count && !PyErr_Occurred(); i++) {
        PyObject *o = PyTuple_Check(result) ? PyTuple_GetItem(result, i) : result;
        wb_array *x = py_is_none(o) ? NULL : py_array_of(o, true, -1); /* a label 3 is an int64 */
        if (x && !PyErr_Occurred()) *place_in(batch, i) = wb_give(wb_take(x));
    }
}

static void on_map(wb_batch *batch, void *user) {
    const py_inside inside = py_callback_begin();
    PyObject *args = batch_tuple(batch);
    PyObject *result = args ? PyObject_Call(((calls *)user)->map, args, NULL) : NULL;
    if (result == Py_None)
        PyErr_SetString(PyExc_TypeError, "map returned None instead of the arrays of a batch");
    else if (result)
        fill_batch(batch, result);
    Py_XDECREF(args), Py_XDECREF(result);
    (void)status_here();
    py_callback_end(inside);
}

static wb_status on_observe(int64_t place, wb_array **arrays, void *user) {
    const py_inside inside = py_callback_begin();
    PyObject *result = PyObject_CallFunction(((calls *)user)->observe, "L", (long long)place);
    wb_batch one = {0};
    if (result) fill_batch(&one, result);
    for (Py_ssize_t i = 0; i < MOST_ARRAYS_OF_BATCH; i++) arrays[i] = *place_in(&one, i);
    Py_XDECREF(result);
    const wb_status status = status_here();
    py_callback_end(inside);
    return status;
}

/* collate gets one list for each array of an observation. */
static wb_status on_collate(wb_batch *batch, wb_array *const *const *lists, void *user) {
    const py_inside inside = py_callback_begin();
    Py_ssize_t count = 0;
    while (count < MOST_ARRAYS_OF_BATCH && lists[count]) count++;
    PyObject *args = PyTuple_New(count), *result = NULL;
    for (Py_ssize_t k = 0; args && k < count; k++) {
        PyObject *list = PyList_New((Py_ssize_t)batch->size);
        for (Py_ssize_t i = 0; list && i < batch->size; i++)
            PyList_SetItem(list, i, py_wrap_array(wb_take(lists[k][i])));
        PyTuple_SetItem(args, k, list);
    }
    if (args) result = PyObject_Call(((calls *)user)->collate, args, NULL);
    if (result) fill_batch(batch, result);
    Py_XDECREF(args), Py_XDECREF(result);
    const wb_status status = status_here();
    py_callback_end(inside);
    return status;
}

/* getobs(place, seed, x, y, ...) writes into memoryviews of bytes, on a thread of the loader's. */
typedef struct getobs_call {
    calls base;
    Py_ssize_t bytes[MOST_ARRAYS_OF_BATCH];
} getobs_call;

/* The memory is the loader's again: a view that somebody keeps raises an error from now on. */
static void end_views(PyObject *args) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    for (Py_ssize_t i = 2; i < PyTuple_Size(args); i++) {
        PyObject *done = PyObject_CallMethod(PyTuple_GetItem(args, i), "release", NULL);
        if (!done) PyErr_Clear(); /* another view of it is in use */
        Py_XDECREF(done);
    }
    PyErr_Restore(type, value, trace);
}

static wb_status on_getobs(const wb_observation *o, void *user) {
    const getobs_call *c = user;
    const py_inside inside = py_foreign_begin();
    PyObject *args = PyTuple_New(2 + o->count), *result = NULL;
    if (args) {
        PyTuple_SetItem(args, 0, PyLong_FromLongLong((long long)o->place));
        PyTuple_SetItem(args, 1, PyLong_FromUnsignedLongLong((unsigned long long)o->seed));
        for (int i = 0; i < o->count; i++)
            PyTuple_SetItem(args, 2 + i,
                            PyMemoryView_FromMemory(o->data[i], c->bytes[i], PyBUF_WRITE));
        result = PyObject_Call(c->base.getobs, args, NULL);
        end_views(args);
    }
    Py_XDECREF(args), Py_XDECREF(result);
    wb_status status = WB_OK;
    if (PyErr_Occurred()) { /* the exception belongs to this thread: its text goes on */
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        PyObject *text = value ? PyObject_Str(value) : NULL;
        const char *s = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
        status = wb_fail(WB_ERROR_ARGUMENT, "getobs raised an exception: %s", s ? s : "");
        PyErr_Clear();
        Py_XDECREF(text), Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(trace);
    }
    py_foreign_end(inside);
    return status;
}

/* ---- the loader ---- */

typedef struct Loader {
    Handle handle;
    getobs_call calls;
} Loader;

static void loader_dealloc(PyObject *self) {
    Loader *l = (Loader *)self;
    PyTypeObject *type = Py_TYPE(self);
    if (l->handle.weak) PyObject_ClearWeakRefs(self);
    void *const loader = l->handle.object;
    if (loader) { /* it waits for its thread, which may wait for the interpreter */
        py_enter();
        PyThreadState *others = PyEval_SaveThread();
        wb_free(loader);
        PyEval_RestoreThread(others);
        py_leave();
    }
    Py_XDECREF(l->handle.also);
    Py_XDECREF(l->calls.base.map), Py_XDECREF(l->calls.base.getobs);
    Py_XDECREF(l->calls.base.observe), Py_XDECREF(l->calls.base.collate);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static const py_member members[] = {
    {PY_INT64, 0, offsetof(wb_loader_desc, batchsize), "batchsize", NULL},
    {PY_BOOL, 0, offsetof(wb_loader_desc, shuffle), "shuffle", NULL},
    {PY_UINT64, 0, offsetof(wb_loader_desc, seed), "seed", NULL},
    {PY_BOOL, 0, offsetof(wb_loader_desc, drop_partial), "drop_partial", NULL},
    {PY_BOOL, 0, offsetof(wb_loader_desc, shard), "shard", NULL},
    {PY_DEVICE, 0, offsetof(wb_loader_desc, device), "device", NULL},
    {PY_BOOL, 0, offsetof(wb_loader_desc, background), "background", NULL},
    {PY_INT, 0, offsetof(wb_loader_desc, threads), "threads", NULL},
    {PY_INT64, 0, offsetof(wb_loader_desc, numobs), "numobs", NULL},
};
enum { MEMBERS = (int)(sizeof members / sizeof *members) };

static PyObject *keep(PyObject *function) {
    return py_is_none(function) ? NULL : Py_NewRef(function);
}

/* DataLoader(arrays, settings...): arrays is a tuple, made in Python. */
static PyObject *loader_new(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                            PyObject *kwnames) {
    (void)module;
    enum { ARRAYS, FIRST, MAP = FIRST + MEMBERS, GETOBS, OBSERVE, COLLATE, IMAGES, COUNT };
    static const char *const more_names[] = {"z0", "z1", "z2", "z3", "z4", "z5"};
    const char *names[COUNT] = {"arrays"};
    for (int i = 0; i < MEMBERS; i++) names[FIRST + i] = members[i].name;
    names[MAP] = "map", names[GETOBS] = "getobs", names[OBSERVE] = "observe";
    names[COLLATE] = "collate", names[IMAGES] = "images";
    const py_signature signature = {"DataLoader", names, COUNT, 1, 1};
    PyObject *a[COUNT];
    if (!py_bind(&signature, args, nargs, kwnames, a)) return NULL;
    Loader *l = (Loader *)((allocfunc)PyType_GetSlot(Loader_type, Py_tp_alloc))(Loader_type, 0);
    if (!l) return NULL;
    if (!py_open()) return Py_DECREF((PyObject *)l), NULL;
    wb_loader_desc desc = WB_DESC(loader, .user = &l->calls);
    const Py_ssize_t count = PyTuple_Size(a[ARRAYS]);
    if (count > MOST_ARRAYS_OF_BATCH)
        PyErr_Format(PyExc_ValueError, "at most %d arrays", (int)MOST_ARRAYS_OF_BATCH);
    for (Py_ssize_t i = 0; i < count && !PyErr_Occurred(); i++) {
        wb_array *x = py_array(PyTuple_GetItem(a[ARRAYS], i));
        if (i < 2)
            *(i ? &desc.y : &desc.x) = x;
        else
            desc.more[i - 2] = (wb_named_array){more_names[i - 2], x};
        if (x)
            l->calls.bytes[i] = (Py_ssize_t)(wb_count(x) * (int64_t)wb_dtype_size(wb_dtype_of(x)));
    }
    py_fill(&desc, members, MEMBERS, a + FIRST);
    if (!py_is_none(a[IMAGES])) desc.images = py_handle(a[IMAGES], ImageFolder_type);
    if (PyErr_Occurred()) {
        Py_DECREF((PyObject *)l);
        return py_fail();
    }
    l->calls.base = (calls){keep(a[MAP]), keep(a[GETOBS]), keep(a[OBSERVE]), keep(a[COLLATE])};
    if (l->calls.base.map) desc.map = on_map;
    if (l->calls.base.getobs) desc.getobs = on_getobs;
    if (l->calls.base.observe) desc.observe = on_observe;
    if (l->calls.base.collate) desc.collate = on_collate;
    PyThreadState *others = PyEval_SaveThread();
    l->handle.object = wb_loader_make(desc);
    PyEval_RestoreThread(others);
    if (!l->handle.object || wb_failed()) {
        Py_DECREF((PyObject *)l);
        return py_fail();
    }
    py_close();
    return (PyObject *)l;
}

static Py_ssize_t loader_length(PyObject *self) {
    py_enter();
    const int64_t length = wb_loader_length(((Handle *)self)->object);
    py_leave();
    return wb_failed() ? (py_raise(), -1) : (Py_ssize_t)length;
}

/* ---- a loop over it ---- */

typedef struct Batches {
    PyObject_HEAD PyObject *loader;
    wb_batch batch;
    bool has_ended;
} Batches;
static PyTypeObject *Batches_type;

static PyObject *loader_iter(PyObject *self) {
    Batches *b = (Batches *)((allocfunc)PyType_GetSlot(Batches_type, Py_tp_alloc))(Batches_type, 0);
    if (b) b->loader = Py_NewRef(self);
    return (PyObject *)b;
}

static PyObject *batches_next(PyObject *self) {
    Batches *b = (Batches *)self;
    if (b->has_ended) return NULL; /* a further wb_next would begin another epoch */
    py_enter();
    PyThreadState *others = PyEval_SaveThread();
    const bool has_more = wb_next(((Handle *)b->loader)->object, &b->batch);
    PyEval_RestoreThread(others);
    PyObject *tuple = NULL;
    if (has_more) {
        tuple = batch_tuple(&b->batch);
        (void)wb_scope_leave();
    }
    py_leave();
    b->has_ended = !has_more;
    if (wb_failed()) {
        Py_XDECREF(tuple);
        return py_raise();
    }
    return tuple;
}

static void batches_dealloc(PyObject *self) {
    Batches *b = (Batches *)self;
    PyTypeObject *type = Py_TYPE(self);
    Py_DECREF(b->loader);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyMethodDef functions[] = {
    {"_loader", (PyCFunction)(void *)loader_new, METH_FASTCALL | METH_KEYWORDS, NULL},
    {NULL, NULL, 0, NULL}};

bool py_add_data(PyObject *module) {
    static PyMemberDef weak[] = {PY_WEAK_AT(Handle), {NULL, 0, 0, 0, NULL}};
    PyType_Slot loader[] = {{Py_tp_dealloc, loader_dealloc},
                            {Py_tp_members, weak},
                            {Py_tp_doc, "Batches, epoch after epoch, by DataLoader()."},
                            {Py_tp_iter, loader_iter},
                            {Py_sq_length, loader_length},
                            {0, NULL}};
    PyType_Slot batches[] = {{Py_tp_dealloc, batches_dealloc},
                             {Py_tp_doc, "One epoch of a Loader."},
                             {Py_tp_iter, PyObject_SelfIter},
                             {Py_tp_iternext, batches_next},
                             {0, NULL}};
    const unsigned flags = Py_TPFLAGS_DISALLOW_INSTANTIATION;
    Loader_type = py_new_type(module, "weber.Loader", sizeof(Loader), flags, loader);
    Batches_type = py_new_type(module, "weber.Batches", sizeof(Batches), flags, batches);
    return Loader_type && Batches_type && py_add_functions(module, functions);
}
