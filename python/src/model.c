/* The type Layer, layers that are written in Python, and functions as layers. */
#include <stdlib.h>

#include "binding.h"

PyTypeObject *Layer_type;

static inline wb_layer *of(PyObject *self) { return ((Layer *)self)->layer; }

/* ---- what a callback gets and returns ---- */

/* Arrays as a tuple of Python's. */
static PyObject *tuple_of(int count, wb_array *const *arrays) {
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; tuple && i < count; i++)
        PyTuple_SetItem(tuple, i, py_wrap_array(wb_take(arrays[i])));
    return tuple;
}

/* The arrays of a result, given to the scope; 0 with an exception. */
static int arrays_of(PyObject *result, wb_array **out) {
    if (!PyTuple_Check(result)) {
        out[0] = py_array(result);
        if (PyErr_Occurred() || !out[0]) return 0;
        out[0] = wb_give(wb_take(out[0]));
        return 1;
    }
    const Py_ssize_t count = PyTuple_Size(result);
    if (count < 1 || count > WB_MOST_ARRAYS) {
        PyErr_Format(PyExc_ValueError, "a layer returns 1 to %d arrays, got %zd",
                     (int)WB_MOST_ARRAYS, count);
        return 0;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        out[i] = py_array(PyTuple_GetItem(result, i));
        if (PyErr_Occurred() || !out[i]) return 0;
        out[i] = wb_give(wb_take(out[i]));
    }
    return (int)count;
}

/* Takes over args. */
static int call_with(PyObject *function, PyObject *args, PyObject *kwargs, wb_array **results) {
    py_now->recording++;
    PyObject *result = args && function ? PyObject_Call(function, args, kwargs) : NULL;
    const int made = result ? arrays_of(result, results) : 0;
    if (result && !made && !PyErr_Occurred() && !wb_failed())
        PyErr_SetString(PyExc_TypeError, "a layer returns an Array, or a tuple of them");
    Py_XDECREF(args);
    Py_XDECREF(result);
    if (PyErr_Occurred()) py_keep_exception();
    py_now->recording--;
    return wb_failed() ? 0 : made;
}

static int call_function(PyObject *function, int count, wb_array *const *inputs,
                         wb_array **results) {
    return call_with(function, tuple_of(count, inputs), NULL, results);
}

/* ---- functions as layers ---- */

static int apply_function(void *context, int count, wb_array *const *inputs, wb_array **results) {
    const py_inside inside = py_callback_begin();
    const int made = call_function(context, count, inputs, results);
    py_callback_end(inside);
    return made;
}
static void release_function(void *context) { py_do_later((void (*)(void *))Py_DecRef, context); }

wb_layer *py_function_layer(PyObject *function) {
    PyObject *name = PyObject_GetAttrString(function, "__name__");
    const char *text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    PyErr_Clear();
    const wb_fn_with_desc desc =
        WB_DESC(fn_with, .function = apply_function, .context = Py_NewRef(function),
                .release = release_function,
                .name = text && *text != '<' && strlen(text) < 48 ? text : "function");
    wb_layer *layer = wb_fn_with_make(desc);
    Py_XDECREF(name);
    if (!layer) (void)py_raise();
    return layer;
}

/* ---- layers in Python ---- */

/* Arrays and layers are in a list of Weber's, where optimisers and files find them; everything else
 * is in a dict, which all Python objects for the layer share. */
typedef struct Module {
    wb_layer layer;
    wb_layer_list members;
    PyObject *dict;
} Module;

/* An array that is not trained, as an entry of that list: its path is "mean.value". */
typedef struct State {
    wb_layer layer;
    wb_array *value;
} State;
WB_FUNCTOR(State, NULL, WB_STATE_FIELD(State, value));

/* A class of Python's as one of Weber's. */
typedef struct module_class {
    wb_layer_class base;
    PyObject *type;
} module_class;

static bool is_input(PyObject *o) {
    if (Py_TYPE(o) == Array_type) return true;
    return !PyBytes_Check(o) && (PyObject_CheckBuffer(o) || PyObject_HasAttrString(o, "__array__"));
}

/* The arguments of the call, with the arrays that Weber has passed on in their places. */
static PyObject *merged(PyObject *given, int count, wb_array *const *inputs) {
    const Py_ssize_t size = PyTuple_Size(given);
    PyObject *args = PyTuple_New(size);
    for (Py_ssize_t i = 0, k = 0; args && i < size; i++) {
        PyObject *o = PyTuple_GetItem(given, i);
        const bool is_array = is_input(o) && k < count;
        PyTuple_SetItem(args, i, is_array ? py_wrap_array(wb_take(inputs[k++])) : Py_NewRef(o));
    }
    return args;
}

/* A Module may be called with more than arrays: model(x, None, causal=True). Weber passes the
 * arrays on, and the call that has set given_to is the next one of that layer. */
static int module_forward(wb_layer *layer, int count, wb_array *const *inputs, wb_array **results) {
    const py_inside inside = py_callback_begin();
    PyObject *self = py_wrap_layer(wb_keep_layer(layer));
    PyObject *forward = self ? PyObject_GetAttrString(self, "forward") : NULL;
    py_context *now = py_now;
    const bool has_more = now->given_to == layer;
    if (has_more) now->given_to = NULL;
    PyObject *args = has_more ? merged(now->given_args, count, inputs) : tuple_of(count, inputs);
    const int made = call_with(forward, args, has_more ? now->given_kwargs : NULL, results);
    Py_XDECREF(forward);
    Py_XDECREF(self);
    py_callback_end(inside);
    return made;
}

static bool module_copied(wb_layer *copy) {
    const py_inside inside = py_callback_begin();
    Module *m = (Module *)(void *)copy;
    m->dict = m->dict ? PyDict_Copy(m->dict) : PyDict_New();
    if (!m->dict) py_keep_exception();
    py_callback_end(inside);
    return m->dict;
}
static void module_released(wb_layer *layer) {
    PyObject *dict = ((Module *)(void *)layer)->dict;
    if (dict) py_do_later((void (*)(void *))Py_DecRef, dict);
}

static const wb_field module_fields[] = {
    {.offset = offsetof(Module, members), .kind = WB_FIELD_LIST, .trainable = true, .spread = true},
    {.name = "dict", .offset = offsetof(Module, dict), .kind = WB_FIELD_VALUE, .fixed = true}};

static void class_ends(PyObject *capsule) { (void)capsule; /* layers may outlive it */ }

/* Module.__init_subclass__: the class of Weber's for one of Python's. */
static PyObject *new_class(PyObject *module, PyObject *type) {
    (void)module;
    PyObject *name = PyObject_GetAttrString(type, "__name__");
    const char *text = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    module_class *c = text ? calloc(1, sizeof *c) : NULL;
    char *copy = text ? malloc(strlen(text) + 1) : NULL;
    if (!c || !copy) {
        free(c), free(copy);
        Py_XDECREF(name);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    strcpy(copy, text);
    Py_DECREF(name);
    c->base = (wb_layer_class){.name = copy,
                               .size_bytes = sizeof(Module),
                               .fields = module_fields,
                               .field_count = 2,
                               .forward_many = module_forward,
                               .copied = module_copied,
                               .released = module_released};
    c->type = Py_NewRef(type);
    return PyCapsule_New(c, "weber.class", class_ends);
}

static module_class *class_of(PyObject *type) {
    PyObject *capsule = PyObject_GetAttrString(type, "_class");
    module_class *c = capsule ? PyCapsule_GetPointer(capsule, "weber.class") : NULL;
    Py_XDECREF(capsule);
    return c;
}

/* register(cls): files may name the class from now on. */
static PyObject *register_class(PyObject *module, PyObject *type) {
    (void)module;
    const module_class *c = class_of(type);
    if (!c) return NULL;
    py_enter();
    const wb_status status = wb_register_layer(&c->base);
    py_leave();
    return status == WB_OK ? Py_NewRef(type) : py_raise();
}

static Module *module_of(PyObject *self) {
    wb_layer *layer = of(self);
    return layer->class_ && layer->class_->forward_many == module_forward ? (Module *)(void *)layer
                                                                          : NULL;
}

PyObject *py_wrap_layer(wb_layer *layer) {
    PyTypeObject *type = Layer_type;
    const bool is_module = layer->class_ && layer->class_->forward_many == module_forward;
    if (is_module) type = (PyTypeObject *)((const module_class *)layer->class_)->type;
    Layer *l = (Layer *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (!l) return py_release(layer), NULL;
    l->layer = layer;
    if (!is_module) return (PyObject *)l;
    Module *m = (Module *)(void *)layer;
    if (!m->dict) m->dict = PyDict_New(); /* one that a file made */
    if (!m->dict || PyObject_SetAttrString((PyObject *)l, "__dict__", m->dict) < 0) {
        Py_DECREF((PyObject *)l);
        return NULL;
    }
    return (PyObject *)l;
}

static PyObject *layer_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    (void)args, (void)kwargs;
    const module_class *c = class_of((PyObject *)type);
    if (!c) {
        PyErr_SetString(PyExc_TypeError, "a layer of your own is a subclass of weber.Module");
        return NULL;
    }
    py_enter();
    wb_layer *layer = wb_layer_new(&c->base);
    py_leave();
    return layer ? py_wrap_layer(layer) : py_raise();
}

/* The entry of this name or, in a list without names, at this place; NULL: none. */
static wb_layer_item *item_of(const wb_layer_list *list, PyObject *name) {
    if (PyLong_Check(name)) {
        const Py_ssize_t i = PyLong_AsSsize_t(name);
        if (i == -1) PyErr_Clear();
        return i >= 0 && i < list->count ? &list->items[i] : NULL;
    }
    if (!PyUnicode_Check(name)) return NULL;
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    if (!text) PyErr_Clear(); /* half of a pair of surrogates: no entry has such a name */
    for (int64_t i = 0; text && i < list->count; i++)
        if (list->items[i].name && strcmp(text, list->items[i].name) == 0) return &list->items[i];
    return NULL;
}

static const wb_array *state_in(const wb_layer_item *item) {
    return item && item->layer && item->layer->class_ == &State_functor
               ? ((const State *)(const void *)item->layer)->value
               : NULL;
}

/* The array of an entry; its path is its name, or its number from 1. */
static wb_array *array_of(wb_layer *layer, const wb_layer_list *list, const wb_layer_item *item) {
    PyObject *path = item->name ? PyUnicode_FromString(item->name)
                                : PyUnicode_FromFormat("%zd", (Py_ssize_t)(item - list->items) + 1);
    PyObject *whole = path && state_in(item) ? PyUnicode_FromFormat("%U.value", path)
                      : path                 ? Py_NewRef(path)
                                             : NULL;
    const char *text = whole ? PyUnicode_AsUTF8AndSize(whole, NULL) : NULL;
    wb_array *x = text ? wb_get(layer, text) : NULL;
    Py_XDECREF(path), Py_XDECREF(whole);
    return x;
}

/* _member(module, name): the layer or array of that name or place; NotImplemented: none. */
static PyObject *member(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module, (void)nargs;
    if (!py_open()) return NULL;
    Module *m = module_of(args[0]);
    const wb_layer_item *item = m ? item_of(&m->members, args[1]) : NULL;
    if (!item) return py_give_object(Py_NewRef(Py_NotImplemented));
    if (item->layer && !state_in(item)) return py_give(Layer_type, wb_keep_layer(item->layer));
    return py_give_array(array_of(of(args[0]), &m->members, item));
}

/* _names(module): the names of its layers and arrays, None for those without. */
static PyObject *names(PyObject *module, PyObject *self) {
    (void)module;
    const Module *m = module_of(self);
    PyObject *list = PyList_New(0);
    for (int64_t i = 0; m && list && i < m->members.count; i++) {
        const char *text = m->members.items[i].name;
        PyObject *name = text ? PyUnicode_FromString(text) : Py_NewRef(Py_None);
        if (!name || PyList_Append(list, name) < 0) Py_CLEAR(list);
        Py_XDECREF(name);
    }
    return list;
}

static wb_layer *new_state(wb_array *value) {
    State *s = wb_new(State);
    if (s) s->value = wb_keep(value);
    return s ? &s->layer : NULL;
}

static bool contains(wb_layer *layer, const wb_layer *wanted) {
    bool found = false;
    for (wb_module m = {0}; wb_next_module(layer, &m);) found = found || m.layer == wanted;
    return found;
}

/* A reference that wb_list_append takes over; it does not where the layer contains the list's. */
static wb_layer *to_append(PyObject *o, const wb_layer *module) {
    const bool is_cycle = PyObject_TypeCheck(o, Layer_type) && contains(py_layer(o), module);
    return is_cycle ? py_layer(o) : py_layer_reference(o);
}

/* Optimisers have the addresses of what they train: what a Module had stays as long as itself. */
static void keep_replaced(Module *m, wb_layer *before) {
    PyObject *layer = py_wrap_layer(before), *list = PyDict_GetItemString(m->dict, "__replaced");
    PyObject *kept = list ? Py_NewRef(list) : PyList_New(0);
    if (layer && kept && PyList_Append(kept, layer) == 0)
        (void)PyDict_SetItemString(m->dict, "__replaced", kept);
    Py_XDECREF(kept), Py_XDECREF(layer);
}

/* Another layer in the place of one that a Module has: a new Module takes it over, and the two
 * exchange what they have. */
static PyObject *replace_layer(PyObject *self, wb_layer_item *item, PyObject *o) {
    Module *m = module_of(self);
    const bool is_cycle = PyObject_TypeCheck(o, Layer_type) && contains(py_layer(o), of(self));
    if (is_cycle) PyErr_SetString(PyExc_ValueError, "a layer cannot contain itself");
    if (PyErr_Occurred()) return py_fail();
    wb_layer *fresh = wb_layer_new(m->layer.class_);
    if (fresh && wb_list_append(fresh, "", item->name, py_layer_reference(o)) == WB_OK) {
        wb_layer_item *with = ((Module *)(void *)fresh)->members.items;
        wb_layer *before = item->layer;
        item->layer = with->layer, with->layer = before;
        keep_replaced(m, fresh);
    } else {
        wb_free(fresh);
    }
    return PyErr_Occurred() ? py_fail() : py_give_status(WB_OK);
}

/* _append(module, name, object, is_state): a new entry, or another layer in the place of one; in
 * LayerLists the name is None, or a place. */
static PyObject *append(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module, (void)nargs;
    if (!py_open()) return NULL;
    Module *m = module_of(args[0]);
    wb_layer_item *item = m ? item_of(&m->members, args[1]) : NULL;
    if (item && item->layer) return replace_layer(args[0], item, args[2]);
    const char *name = args[1] == Py_None ? NULL : py_text(args[1]);
    if (PyErr_Occurred()) return py_fail();
    void *object;
    if (PyObject_TypeCheck(args[2], Layer_type) || PyCallable_Check(args[2]))
        object = to_append(args[2], of(args[0]));
    else if (py_truth(args[3]))
        object = new_state(py_array(args[2]));
    else
        object = py_array(args[2]);
    if (PyErr_Occurred()) return py_fail();
    return py_give_status(wb_list_append(of(args[0]), "", name, object));
}

/* ---- the type ---- */

static void layer_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    if (((Layer *)self)->weak) PyObject_ClearWeakRefs(self);
    py_release(of(self));
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

/* Whether a Module is called with anything but arrays. */
static bool has_others(PyObject *args, PyObject *kwargs) {
    bool found = kwargs && PyDict_Size(kwargs) > 0;
    for (Py_ssize_t i = 0; i < PyTuple_Size(args); i++)
        found = found || !is_input(PyTuple_GetItem(args, i));
    return found;
}

static PyObject *call_module(PyObject *self, PyObject *args, PyObject *kwargs) {
    if (!py_open()) return NULL;
    wb_array *in[WB_MOST_ARRAYS], *out[WB_MOST_ARRAYS];
    int count = 0;
    for (Py_ssize_t i = 0; i < PyTuple_Size(args) && !PyErr_Occurred(); i++) {
        PyObject *o = PyTuple_GetItem(args, i);
        if (!is_input(o)) continue;
        if (count == WB_MOST_ARRAYS)
            PyErr_Format(PyExc_TypeError, "a layer takes at most %d arrays", (int)WB_MOST_ARRAYS);
        else
            in[count++] = py_array(o);
    }
    if (!count && !PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "a layer takes at least one array, without a name");
    if (PyErr_Occurred()) return py_fail();
    py_now->given_to = of(self), py_now->given_args = args, py_now->given_kwargs = kwargs;
    const int made = wb_apply_many(of(self), count, in, WB_MOST_ARRAYS, out);
    py_now->given_to = NULL;
    return made == 1 ? py_give_array(out[0]) : made ? py_give_arrays(made, out) : py_fail();
}

static PyObject *layer_call(PyObject *self, PyObject *args, PyObject *kwargs) {
    if (module_of(self) && has_others(args, kwargs)) return call_module(self, args, kwargs);
    if (kwargs && PyDict_Size(kwargs)) {
        PyErr_SetString(PyExc_TypeError, "layers take arrays, without names");
        return NULL;
    }
    const Py_ssize_t count = PyTuple_Size(args);
    wb_array *in[WB_MOST_ARRAYS], *out[WB_MOST_ARRAYS];
    if (count > WB_MOST_ARRAYS) {
        return PyErr_Format(PyExc_TypeError, "a layer takes at most %d arrays, got %zd",
                            (int)WB_MOST_ARRAYS, count);
    }
    if (!py_open()) return NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        in[i] = py_array(PyTuple_GetItem(args, i));
        if (!in[i] && !PyErr_Occurred() && !wb_failed())
            PyErr_Format(PyExc_TypeError, "a layer takes arrays, but argument %zd is None", i);
    }
    if (!count) PyErr_SetString(PyExc_TypeError, "a layer takes at least one array");
    if (PyErr_Occurred()) return py_fail();
    if (count == 1 && !of(self)->class_->forward_many)
        return py_give_array(wb_apply(of(self), in[0]));
    const int made = wb_apply_many(of(self), (int)count, in, WB_MOST_ARRAYS, out);
    return made == 1 ? py_give_array(out[0]) : made ? py_give_arrays(made, out) : py_fail();
}

static PyObject *parameters(PyObject *self, PyObject *args) {
    int all = 0;
    if (!PyArg_ParseTuple(args, "|p", &all)) return NULL;
    if (!py_open()) return NULL;
    PyObject *dict = PyDict_New();
    for (wb_parameter p = {0}; dict && wb_next_parameter(of(self), &p);) {
        if (!p.is_trainable && !all) continue;
        PyObject *x = py_wrap_array(wb_take(p.array));
        if (!x || PyDict_SetItemString(dict, p.path, x) < 0) Py_CLEAR(dict);
        Py_XDECREF(x);
    }
    return py_give_object(dict);
}

static PyObject *modules(PyObject *self, PyObject *unused) {
    (void)unused;
    if (!py_open()) return NULL;
    PyObject *dict = PyDict_New();
    for (wb_module m = {0}; dict && wb_next_module(of(self), &m);) {
        PyObject *layer = py_wrap_layer(wb_keep_layer(m.layer));
        if (!layer || PyDict_SetItemString(dict, m.path, layer) < 0) Py_CLEAR(dict);
        Py_XDECREF(layer);
    }
    return py_give_object(dict);
}

static PyObject *get_type(PyObject *self, void *closure) {
    (void)closure;
    return PyUnicode_FromString(of(self)->class_->name);
}

static const char *key_text(PyObject *key) {
    if (key != Py_None) return py_text(key);
    PyErr_SetString(PyExc_TypeError, "a layer is indexed by a number or a path, got None");
    return NULL;
}

/* chain[a:b]: a chain of these layers, which both share. */
static PyObject *chain_part(PyObject *self, PyObject *key) {
    const int64_t count = wb_chain_count(of(self));
    Py_ssize_t start, stop, step;
    if (wb_failed() || PySlice_Unpack(key, &start, &stop, &step) < 0) return py_fail();
    const Py_ssize_t length = PySlice_AdjustIndices((Py_ssize_t)count, &start, &stop, step);
    if (step != 1) {
        PyErr_SetString(PyExc_ValueError, "a part of a chain has the step 1");
        return py_fail();
    }
    if (length == 0) return py_give(Layer_type, wb_chain_make(0, NULL));
    return py_give(Layer_type, wb_chain_slice(of(self), start + 1, stop));
}

static PyObject *layer_subscript(PyObject *self, PyObject *key) {
    if (!py_open()) return NULL;
    if (PySlice_Check(key)) return chain_part(self, key);
    if (PyIndex_Check(key)) {
        const int64_t i = py_integer(key), count = wb_chain_count(of(self));
        if (PyErr_Occurred() || wb_failed()) return py_fail();
        if (i < -count || i >= count) {
            PyErr_Format(PyExc_IndexError, "layer %lld of %lld", (long long)i, (long long)count);
            return py_fail();
        }
        return py_give(Layer_type, wb_keep_layer(wb_chain_at(of(self), i < 0 ? i : i + 1)));
    }
    const char *path = key_text(key);
    if (!path) return py_fail();
    wb_array *x = wb_get(of(self), path);
    if (x) return py_give_array(x);
    char text[2048];
    const wb_status status = wb_take_error(text, sizeof text); /* perhaps it is a layer */
    wb_layer *layer = wb_get_layer(of(self), path);
    if (layer) return py_give(Layer_type, wb_keep_layer(layer));
    wb_clear_error();
    (void)wb_fail(status, "%s", text);
    return py_fail();
}

static int layer_assign(PyObject *self, PyObject *key, PyObject *value) {
    if (!value) return PyErr_SetString(PyExc_TypeError, "arrays of a model cannot be deleted"), -1;
    if (!py_open()) return -1;
    const char *path = key_text(key);
    if (!path) return (void)py_fail(), -1;
    wb_array *x = py_array(value);
    py_now->has_written = true;
    PyObject *done = PyErr_Occurred() ? py_fail() : py_give_status(wb_set(of(self), path, x));
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* Only chains have a length, and `if model:` is for all. */
static int layer_truth(PyObject *self) { return (void)self, 1; }

static Py_ssize_t layer_length(PyObject *self) {
    py_enter();
    const int64_t count = wb_chain_count(of(self));
    py_leave();
    return wb_failed() ? (py_raise(), -1) : (Py_ssize_t)count;
}

static PyObject *layer_element(PyObject *self, Py_ssize_t i) {
    PyObject *key = PyLong_FromSsize_t(i), *layer = key ? layer_subscript(self, key) : NULL;
    Py_XDECREF(key);
    return layer;
}

static PyObject *layer_repr(PyObject *self) {
    for (size_t bytes = 1024;; bytes *= 4) {
        char *text = malloc(bytes);
        if (!text) return PyErr_NoMemory();
        if (!py_open()) return free(text), NULL;
        (void)wb_show_text(of(self), text, bytes); /* the scope has what it makes */
        py_close();
        size_t n = wb_failed() ? 0 : strlen(text);
        if (n + 8 < bytes || bytes > 1 << 24) {
            while (n && text[n - 1] == '\n') n--;
            PyObject *s =
                wb_failed() ? py_raise() : PyUnicode_DecodeUTF8(text, (Py_ssize_t)n, "replace");
            free(text);
            return s;
        }
        wb_clear_error();
        free(text);
    }
}

static PyObject *compare(PyObject *a, PyObject *b, int op) {
    if ((op != Py_EQ && op != Py_NE) || !PyObject_TypeCheck(b, Layer_type))
        Py_RETURN_NOTIMPLEMENTED;
    return PyBool_FromLong((of(a) == of(b)) == (op == Py_EQ));
}
static Py_hash_t hash(PyObject *self) { return (Py_hash_t)((uintptr_t)of(self) >> 4); }

/* map_model(function, model): a new model of what function(path, array) returns. */
static wb_array *map_leaf(void *user, const char *path, wb_array *x) {
    const py_inside inside = py_callback_begin();
    py_now->recording++;
    PyObject *array = py_wrap_array(wb_take(x));
    PyObject *args = array ? Py_BuildValue("(sN)", path, array) : NULL;
    PyObject *result = args ? PyObject_Call(user, args, NULL) : NULL;
    wb_array *y = result ? py_array(result) : NULL;
    if (y && !PyErr_Occurred()) y = wb_give(wb_take(y));
    Py_XDECREF(args);
    Py_XDECREF(result);
    if (PyErr_Occurred()) py_keep_exception();
    py_now->recording--;
    py_callback_end(inside);
    return wb_failed() ? NULL : y;
}
static PyObject *map_model(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module;
    if (nargs != 2) return PyErr_SetString(PyExc_TypeError, "map_model(function, model)"), NULL;
    if (!py_open()) return NULL;
    wb_layer *model = py_layer(args[1]);
    return PyErr_Occurred() ? py_fail() : py_give(Layer_type, wb_map(map_leaf, args[0], model));
}

static bool is_layer(PyObject *o, bool may_be_array) {
    return !may_be_array || PyObject_TypeCheck(o, Layer_type);
}

/* _chain_named(names, objects), _tree_named(names, objects) */
static PyObject *named(PyObject *const *args, wb_layer *(*make)(int64_t, const wb_named *),
                       bool has_arrays) {
    if (!py_open()) return NULL;
    const Py_ssize_t count = PySequence_Size(args[0]);
    wb_named *list = PyMem_Calloc((size_t)count + 1, sizeof *list);
    Py_ssize_t made = 0;
    for (; list && made < count && !PyErr_Occurred(); made++) {
        PyObject *o = PyList_GetItem(args[1], made);
        list[made].name = py_text(PyList_GetItem(args[0], made));
        list[made].object =
            is_layer(o, has_arrays) ? (void *)py_layer_reference(o) : (void *)py_array(o);
    }
    if (!list) (void)PyErr_NoMemory();
    wb_layer *layer = PyErr_Occurred() ? NULL : make(count, list);
    for (Py_ssize_t i = 0; i < made && PyErr_Occurred(); i++)
        if (is_layer(PyList_GetItem(args[1], i), has_arrays)) wb_free(list[i].object);
    PyMem_Free(list);
    return PyErr_Occurred() ? py_fail() : py_give(Layer_type, layer);
}
static PyObject *chain_named(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module, (void)nargs;
    return named(args, wb_chain_named_make, false);
}
static PyObject *tree_named(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module, (void)nargs;
    return named(args, wb_tree_named_make, true);
}

/* training(flag): as wb_training. */
static PyObject *training(PyObject *module, PyObject *flag) {
    (void)module;
    py_enter();
    const bool before = wb_training(py_truth(flag));
    py_leave();
    return PyErr_Occurred() ? NULL : PyBool_FromLong(before);
}

#define FAST(name, function, doc)                                                                  \
    { name, (PyCFunction)(void *)function, METH_FASTCALL, doc }
static PyMethodDef functions[] = {
    {"_new_class", new_class, METH_O, NULL},
    {"register", register_class, METH_O,
     "register($module, cls)\n--\n\nLets files name this subclass of Module, so that load_model "
     "can "
     "make its layers. Returns cls: a decorator."},
    FAST("_member", member, NULL),
    FAST("_append", append, NULL),
    {"_names", names, METH_O, NULL},
    FAST("_chain_named", chain_named, NULL),
    FAST("_tree_named", tree_named, NULL),
    FAST("map_model", map_model,
         "map_model($module, function, model)\n--\n\nA new model of the arrays that "
         "function(path, array) returns (fmap in Flux)."),
    {"training", training, METH_O,
     "training($module, flag)\n--\n\nLayers are in training mode from now on, or no more. Returns "
     "what held before. withgradient, train_step and train set it themselves."},
    {NULL, NULL, 0, NULL}};

static PyMethodDef methods[] = {
    {"parameters", parameters, METH_VARARGS,
     "parameters($self, all=False)\n--\n\nThe arrays that are trained, by their paths; all: "
     "states, "
     "too."},
    {"modules", modules, METH_NOARGS,
     "modules($self)\n--\n\nAll layers in it by their paths; the model itself is ''."},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef properties[] = {{"type", get_type, NULL, "The name of its class.", NULL},
                                   {NULL, NULL, NULL, NULL, NULL}};

static PyMemberDef members[] = {PY_WEAK_AT(Layer), {NULL, 0, 0, 0, NULL}};

bool py_add_model(PyObject *module) {
    PyType_Slot slots[] = {
        {Py_tp_dealloc, layer_dealloc},
        {Py_tp_doc, "A layer or model: Dense() and others; of your own: Module."},
        {Py_tp_new, layer_new},
        {Py_tp_call, layer_call},
        {Py_tp_methods, methods},
        {Py_tp_getset, properties},
        {Py_tp_members, members},
        {Py_tp_repr, layer_repr},
        {Py_tp_richcompare, compare},
        {Py_tp_hash, hash},
        {Py_mp_subscript, layer_subscript},
        {Py_mp_ass_subscript, layer_assign},
        {Py_nb_bool, layer_truth},
        {Py_mp_length, layer_length},
        {Py_sq_length, layer_length},
        {Py_sq_item, layer_element},
        {0, NULL}};
    Layer_type = py_new_type(module, "weber.Layer", sizeof(Layer), Py_TPFLAGS_BASETYPE, slots);
    if (!Layer_type || !py_add_functions(module, functions)) return false;
    return wb_register_layer(&State_functor) == WB_OK || py_raise();
}
