/* The module weber._weber: its types, and what calls return. */
#include <stdlib.h>

#include "binding.h"

PyTypeObject *Optimiser_type, *Gradients_type, *Schedule_type, *Loader_type, *Rule_type,
    *Device_type;

/* ---- results ---- */

static PyObject *new_object(PyTypeObject *type) {
    return ((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
}

PyObject *py_wrap(PyTypeObject *type, void *object, PyObject *also) {
    Handle *h = (Handle *)new_object(type);
    if (!h) return py_release(object), NULL;
    h->object = object, h->also = Py_XNewRef(also);
    return (PyObject *)h;
}

/* Computes y where too many results are pending. */
static void bound_pending(wb_array *y) {
    if (++py_now->pending < py_pending_limit) return;
    py_now->pending = 0;
    (void)wb_eval_make(1, &y);
}

/* Takes a result out of the call's scope. */
static wb_array *take(wb_array *x) {
    if (!x) return NULL;
    (void)wb_take(x);
    if (!py_now->recording) {
        (void)wb_forget_recipe(x);
        bound_pending(x);
    }
    return x;
}

PyObject *py_give_array(wb_array *x) {
    const bool is_none = !x && !wb_failed() && !PyErr_Occurred();
    if (is_none) return py_give_object(Py_NewRef(Py_None));
    if (!x || wb_failed()) return py_fail();
    (void)take(x);
    py_close();
    return wb_failed() ? (py_release(x), py_raise()) : py_wrap_array(x);
}

PyObject *py_give_arrays(int count, wb_array *const *arrays) {
    if (wb_failed()) return py_fail();
    for (int i = 0; i < count; i++) (void)take(arrays[i]);
    py_close();
    PyObject *tuple = wb_failed() ? py_raise() : PyTuple_New(count);
    for (int i = 0; i < count; i++) {
        if (!tuple)
            py_release(arrays[i]);
        else
            PyTuple_SetItem(tuple, i, arrays[i] ? py_wrap_array(arrays[i]) : Py_NewRef(Py_None));
    }
    return tuple;
}

PyObject *py_give(PyTypeObject *type, void *object) {
    if (!object || wb_failed()) {
        wb_free(object);
        return py_fail();
    }
    py_close();
    if (wb_failed()) return py_release(object), py_raise();
    return type == Layer_type ? py_wrap_layer(object) : py_wrap(type, object, NULL);
}

PyObject *py_give_object(PyObject *object) {
    if (!object || wb_failed()) {
        Py_XDECREF(object);
        return py_fail();
    }
    py_close();
    if (!wb_failed()) return object;
    Py_DECREF(object);
    return py_raise();
}

PyObject *py_give_status(wb_status status) {
    return status == WB_OK && !wb_failed() ? py_give_object(Py_NewRef(Py_None)) : py_fail();
}

PyObject *py_give_text(const char *text) {
    return py_give_object(text ? PyUnicode_FromString(text) : Py_NewRef(Py_None));
}

PyObject *py_give_rule(wb_rule rule, const char *maker, PyObject *const *args, Py_ssize_t nargs,
                       PyObject *kwnames) {
    if (wb_failed()) return py_fail();
    py_close();
    const Py_ssize_t count = nargs + (kwnames ? PyTuple_Size(kwnames) : 0);
    PyObject *given = PyTuple_New(count), *names = kwnames ? Py_NewRef(kwnames) : PyTuple_New(0);
    for (Py_ssize_t i = 0; given && i < count; i++) PyTuple_SetItem(given, i, Py_NewRef(args[i]));
    Rule *r = given && names ? (Rule *)new_object(Rule_type) : NULL;
    if (!r) return Py_XDECREF(given), Py_XDECREF(names), NULL;
    r->rule = rule, r->made = Py_BuildValue("(sNN)", maker, given, names);
    if (!r->made) Py_CLEAR(r);
    return (PyObject *)r;
}

static PyObject *wrap_device(const wb_device *device) {
    Device *d = (Device *)new_object(Device_type);
    if (d) d->device = device;
    return (PyObject *)d;
}

PyObject *py_give_device(const wb_device *device) {
    if (!device || wb_failed()) return py_fail();
    return py_give_object(wrap_device(device));
}

PyObject *py_give_devices(const wb_device *const *devices) {
    PyObject *list = devices ? PyList_New(0) : NULL;
    for (; list && *devices; devices++) {
        PyObject *device = wrap_device(*devices);
        if (!device || PyList_Append(list, device) < 0) Py_CLEAR(list);
        Py_XDECREF(device);
    }
    return py_give_object(list);
}

PyObject *py_give_texts(const char *const *texts) {
    PyObject *list = texts ? PyList_New(0) : NULL;
    for (; list && *texts; texts++) {
        PyObject *text = PyUnicode_DecodeUTF8(*texts, (Py_ssize_t)strlen(*texts), "replace");
        if (!text || PyList_Append(list, text) < 0) Py_CLEAR(list);
        Py_XDECREF(text);
    }
    return py_give_object(list);
}

/* ---- types ---- */

static void free_object(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

void py_handle_dealloc(PyObject *self) {
    Handle *h = (Handle *)self;
    if (h->weak) PyObject_ClearWeakRefs(self);
    py_release(h->object);
    Py_CLEAR(h->also);
    free_object(self);
}
void py_plain_dealloc(PyObject *self) { free_object(self); }

static void rule_dealloc(PyObject *self) {
    Py_CLEAR(((Rule *)self)->made);
    free_object(self);
}
static PyObject *rule_made(PyObject *self, void *closure) {
    (void)closure;
    return Py_NewRef(((Rule *)self)->made);
}
static PyGetSetDef rule_properties[] = {{"_made", rule_made, NULL, NULL, NULL},
                                        {NULL, NULL, NULL, NULL, NULL}};

PyTypeObject *py_new_type(PyObject *module, const char *name, size_t bytes, unsigned flags,
                          PyType_Slot *slots) {
    PyType_Spec spec = {name, (int)bytes, 0, Py_TPFLAGS_DEFAULT | flags, slots};
    PyObject *type = PyType_FromSpec(&spec);
    if (type && PyModule_AddObjectRef(module, strrchr(name, '.') + 1, type) < 0) Py_CLEAR(type);
    return (PyTypeObject *)type;
}

/* ---- devices ---- */

static PyObject *device_repr(PyObject *self) {
    return PyUnicode_FromFormat("weber.device('%s')", wb_device_name(((Device *)self)->device));
}
static PyObject *device_str(PyObject *self) {
    return PyUnicode_FromString(wb_device_name(((Device *)self)->device));
}
static Py_hash_t device_hash(PyObject *self) {
    return (Py_hash_t)((uintptr_t)((Device *)self)->device >> 4);
}
static PyObject *device_compare(PyObject *a, PyObject *b, int op) {
    if (op != Py_EQ && op != Py_NE) Py_RETURN_NOTIMPLEMENTED;
    bool equal = false;
    if (PyObject_TypeCheck(b, Device_type)) {
        equal = ((Device *)a)->device == ((Device *)b)->device;
    } else if (PyUnicode_Check(b)) {
        PyObject *lower = PyObject_CallMethod(b, "casefold", NULL), *own = device_str(a);
        PyObject *own_lower = own ? PyObject_CallMethod(own, "casefold", NULL) : NULL;
        equal = lower && own_lower && PyUnicode_Compare(lower, own_lower) == 0;
        Py_XDECREF(lower), Py_XDECREF(own), Py_XDECREF(own_lower);
    }
    return PyBool_FromLong(equal == (op == Py_EQ));
}

/* Sets the context's device; returns the one before, or None. */
static PyObject *set_device(PyObject *module, PyObject *o) {
    (void)module;
    if (!py_open()) return NULL;
    const wb_device *device = py_device(o);
    if (PyErr_Occurred()) return py_fail();
    const wb_device *before = wb_set_context_device(device);
    return py_give_object(before ? wrap_device(before) : Py_NewRef(Py_None));
}

static PyObject *get_device(PyObject *module, PyObject *o) {
    (void)module;
    if (!py_open()) return NULL;
    const wb_device *device = py_device(o);
    return PyErr_Occurred() ? py_fail() : py_give_device(device);
}

static PyMethodDef functions[] = {{"_set_device", set_device, METH_O, NULL},
                                  {"_get_device", get_device, METH_O, NULL},
                                  {NULL, NULL, 0, NULL}};

/* The docstring of a function, with its example, as long as the interpreter is there. */
static const char *with_example(const PyMethodDef *f) {
    int i = 0;
    while (py_examples[i].name && strcmp(py_examples[i].name, f->ml_name) != 0) i++;
    if (!py_examples[i].name || !f->ml_doc) return f->ml_doc;
    const size_t bytes = strlen(f->ml_doc) + strlen(py_examples[i].text) + sizeof "\n\n";
    char *doc = malloc(bytes);
    if (doc) (void)snprintf(doc, bytes, "%s\n\n%s", f->ml_doc, py_examples[i].text);
    return doc ? doc : f->ml_doc;
}

bool py_add_functions(PyObject *module, PyMethodDef *functions) {
    for (PyMethodDef *f = functions; f->ml_name; f++) f->ml_doc = with_example(f);
    return PyModule_AddFunctions(module, functions) == 0;
}

static bool add_types(PyObject *m) {
    static PyMemberDef weak[] = {PY_WEAK_AT(Handle), {NULL, 0, 0, 0, NULL}};
    PyType_Slot schedule[] = {{Py_tp_dealloc, py_handle_dealloc},
                              {Py_tp_members, weak},
                              {Py_tp_doc, "A number for each step: schedule_cosine and others."},
                              {0, NULL}};
    PyType_Slot rule[] = {{Py_tp_dealloc, rule_dealloc},
                          {Py_tp_getset, rule_properties},
                          {Py_tp_doc, "How parameters are updated: Adam and others, for setup()."},
                          {0, NULL}};
    PyType_Slot device[] = {{Py_tp_dealloc, py_plain_dealloc},
                            {Py_tp_doc, "Where arrays are; weber.device('CUDA:1') makes one."},
                            {Py_tp_repr, device_repr},
                            {Py_tp_str, device_str},
                            {Py_tp_hash, device_hash},
                            {Py_tp_richcompare, device_compare},
                            {0, NULL}};
    const unsigned flags = Py_TPFLAGS_DISALLOW_INSTANTIATION;
    Schedule_type = py_new_type(m, "weber.Schedule", sizeof(Handle), flags, schedule);
    Rule_type = py_new_type(m, "weber.Rule", sizeof(Rule), flags, rule);
    Device_type = py_new_type(m, "weber.Device", sizeof(Device), flags, device);
    return Schedule_type && Rule_type && Device_type;
}

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                        "_weber",
                                        "Weber's C library; import weber.",
                                        -1,
                                        NULL,
                                        NULL,
                                        NULL,
                                        NULL,
                                        NULL};

PyMODINIT_FUNC PyInit__weber(void) {
    PyObject *m = PyModule_Create(&definition);
    if (!m) return NULL;
    (void)wb_sizes_slowest_first(true);
    if (!py_add_errors(m) || !py_add_context(m) || !add_types(m) || !py_add_arguments(m) ||
        !py_add_array(m) || !py_add_model(m) || !py_add_derivatives(m) || !py_add_train(m) ||
        !py_add_data(m) || !py_add_share(m) || !py_add_log(m) || !py_add_files(m) ||
        !py_add_tools(m) || !py_add_text(m) || !py_add_images(m) ||
        !py_add_functions(m, functions) || !py_add_functions(m, py_generated) ||
        PyModule_AddStringConstant(m, "__version__", WEBER_VERSION) < 0) {
        Py_DECREF(m);
        return NULL;
    }
    return m;
}
