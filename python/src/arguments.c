/* Arguments of Python as C's. */
#include "binding.h"

/* ---- binding ---- */

/* PyTorch's and NumPy's words for some of ours. */
static const char *const synonyms[][2] = {{"dim", "axis"},
                                          {"dims", "axis"},
                                          {"keepdim", "keepdims"},
                                          {"lr", "eta"},
                                          {"batch_size", "batchsize"},
                                          {"weight_decay", "lambda_"},
                                          {"momentum", "rho"},
                                          {"padding", "pad"},
                                          {"kernel_size", "kernel"},
                                          {"in_features", "in_"},
                                          {"out_features", "out"},
                                          {"in_channels", "in_"},
                                          {"out_channels", "out"},
                                          {"num_heads", "heads"},
                                          {"input_size", "in_"},
                                          {"hidden_size", "out"},
                                          {"num_embeddings", "in_"},
                                          {"embedding_dim", "out"},
                                          {"num_features", "channels"},
                                          {"descending_", "descending"},
                                          {"label_smoothing", "smoothing"},
                                          {"reduction", "agg"},
                                          {"ignore_index", "ignore"},
                                          {"p", "ord"},
                                          {"embed_dim", "in_"},
                                          {"num_groups", "groups"},
                                          {"num_channels", "channels"},
                                          {"normalized_shape", "size"},
                                          {"ddof", "correction"},
                                          {"unbiased", "correction"},
                                          {"min", "low"},
                                          {"max", "high"},
                                          {"max_epochs", "epochs"},
                                          {"n_epochs", "epochs"},
                                          {"alpha", "a"}};

static void unknown_argument(const py_signature *s, PyObject *name) {
    const char *same = NULL;
    PyObject *list = PyUnicode_FromString("");
    for (int i = 0; i < s->count; i++) {
        for (size_t k = 0; k < sizeof synonyms / sizeof *synonyms; k++)
            if (strcmp(s->names[i], synonyms[k][1]) == 0 &&
                PyUnicode_CompareWithASCIIString(name, synonyms[k][0]) == 0)
                same = s->names[i];
        PyObject *more =
            list ? PyUnicode_FromFormat("%U%s%s", list, i ? ", " : "", s->names[i]) : NULL;
        Py_XDECREF(list);
        list = more;
    }
    if (same)
        PyErr_Format(PyExc_TypeError, "%s() has no argument '%U': it is '%s'", s->function, name,
                     same);
    else if (list)
        PyErr_Format(PyExc_TypeError, "%s() has no argument '%U'; it has %U", s->function, name,
                     list);
    Py_XDECREF(list);
}

bool py_bind(const py_signature *s, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
             PyObject **out) {
    if (nargs > s->positional) {
        PyErr_Format(PyExc_TypeError, "%s() takes at most %d arguments without a name, got %zd",
                     s->function, s->positional, nargs);
        return false;
    }
    for (int i = 0; i < s->count; i++) out[i] = i < nargs ? args[i] : NULL;
    const Py_ssize_t named = kwnames ? PyTuple_Size(kwnames) : 0;
    for (Py_ssize_t k = 0; k < named; k++) {
        PyObject *name = PyTuple_GetItem(kwnames, k);
        int i = 0;
        while (i < s->count && PyUnicode_CompareWithASCIIString(name, s->names[i]) != 0) i++;
        if (i == s->count) {
            unknown_argument(s, name);
            return false;
        }
        if (out[i]) {
            PyErr_Format(PyExc_TypeError, "%s() got '%U' twice", s->function, name);
            return false;
        }
        out[i] = args[nargs + k];
    }
    for (int i = 0; i < s->required; i++) {
        if (out[i]) continue;
        PyErr_Format(PyExc_TypeError, "%s() lacks the argument '%s'", s->function, s->names[i]);
        return false;
    }
    return true;
}

bool py_bind_rest(const char *function, int count, PyObject *const *args, Py_ssize_t nargs,
                  PyObject *kwnames, PyObject **out) {
    if (kwnames && PyTuple_Size(kwnames)) {
        PyErr_Format(PyExc_TypeError, "%s() takes no arguments with a name", function);
        return false;
    }
    if (nargs < count - 1) {
        PyErr_Format(PyExc_TypeError, "%s() needs at least %d arguments", function, count - 1);
        return false;
    }
    for (int i = 0; i < count - 1; i++) out[i] = args[i];
    PyObject *rest = PyTuple_New(nargs - (count - 1));
    if (!rest) return false;
    for (Py_ssize_t i = count - 1; i < nargs; i++)
        PyTuple_SetItem(rest, i - (count - 1), Py_NewRef(args[i]));
    out[count - 1] = rest;
    return true;
}

PyObject *py_takes_nothing(const char *function) {
    PyErr_Format(PyExc_TypeError, "%s() takes no arguments", function);
    return NULL;
}

PyObject *py_usual(PyObject *o, const char *usual) {
    if (o) return Py_NewRef(o);
    if (*usual == '"') return PyUnicode_FromStringAndSize(usual + 1, (Py_ssize_t)strlen(usual) - 2);
    if (strcmp(usual, "False") == 0) return Py_NewRef(Py_False);
    const bool is_real = strchr(usual, '.') || strchr(usual, 'e');
    if (!is_real) return PyLong_FromString(usual, NULL, 10);
    PyObject *text = PyUnicode_FromString(usual);
    PyObject *number = text ? PyFloat_FromString(text) : NULL;
    Py_XDECREF(text);
    return number;
}

/* ---- numbers and texts ---- */

double py_real(PyObject *o) {
    if (!o || PyErr_Occurred()) return 0;
    const double v = PyFloat_AsDouble(o);
    if (v == -1 && PyErr_Occurred() && PyDict_Check(o)) /* PyTorch's Adam(model.parameters()) */
        PyErr_SetString(PyExc_TypeError, "expected a number, got a dict: parameters are not given "
                                         "to a rule, but the model to setup: "
                                         "setup(Adam(1e-3), model)");
    return v;
}
double py_given_real(PyObject *o, double otherwise) {
    return py_is_none(o) ? otherwise : py_real(o);
}

int64_t py_integer(PyObject *o) {
    if (!o || PyErr_Occurred()) return 0;
    PyObject *index = PyNumber_Index(o);
    const int64_t v = index ? PyLong_AsLongLong(index) : 0;
    Py_XDECREF(index);
    return v;
}

int py_int(PyObject *o) {
    const int64_t v = py_integer(o);
    if (v == (int)v) return (int)v;
    PyErr_Format(PyExc_OverflowError, "%lld is too large here", (long long)v);
    return 0;
}

uint64_t py_unsigned(PyObject *o) {
    if (!o || PyErr_Occurred()) return 0;
    PyObject *index = PyNumber_Index(o);
    const uint64_t v = index ? PyLong_AsUnsignedLongLong(index) : 0;
    Py_XDECREF(index);
    return v;
}

bool py_truth(PyObject *o) {
    if (py_is_none(o) || PyErr_Occurred()) return false;
    return PyObject_IsTrue(o) > 0;
}

static const char *utf8_of(PyObject *o) {
    Py_ssize_t bytes;
    const char *text = PyUnicode_AsUTF8AndSize(o, &bytes);
    if (!text || strlen(text) == (size_t)bytes) return text;
    PyErr_SetString(PyExc_ValueError, "the text has a null character");
    return NULL;
}

const char *py_text(PyObject *o) {
    if (py_is_none(o) || PyErr_Occurred()) return NULL;
    if (PyUnicode_Check(o)) return utf8_of(o);
    PyObject *path = PyOS_FSPath(o); /* a pathlib.Path; its text lives as long as the path */
    const char *text = path && PyUnicode_Check(path) ? utf8_of(path) : NULL;
    if (!text && !PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "expected a str, got %R", (PyObject *)Py_TYPE(o));
    if (!text) {
        Py_XDECREF(path);
        return NULL;
    }
    py_do_later((void (*)(void *))Py_DecRef, path);
    return text;
}

/* ---- types ---- */

static const char *const numpy_names[] = {"float32", "float64", "float16", "bfloat16",
                                          "int32",   "int64",   "uint8",   "bool"};
static PyObject *dtype_objects[WB_DTYPE_COUNT]; /* of the package; NULL before it is imported */

PyObject *py_dtype_object(wb_dtype dtype) {
    if (dtype_objects[dtype]) return Py_NewRef(dtype_objects[dtype]);
    return PyUnicode_FromString(numpy_names[dtype]);
}

static PyObject *set_dtypes(PyObject *module, PyObject *list) {
    (void)module;
    for (int i = 0; i < WB_DTYPE_COUNT; i++) {
        PyObject *o = PySequence_GetItem(list, i);
        if (!o) return NULL;
        Py_XDECREF(dtype_objects[i]);
        dtype_objects[i] = o;
    }
    Py_RETURN_NONE;
}

bool py_is_dtype(PyObject *o) {
    for (int i = 0; i < WB_DTYPE_COUNT; i++)
        if (o && o == dtype_objects[i]) return true;
    return false;
}

wb_dtype py_dtype(PyObject *o) {
    if (py_is_none(o) || PyErr_Occurred()) return WB_F32;
    if (o == (PyObject *)&PyFloat_Type) return WB_F32;
    if (o == (PyObject *)&PyLong_Type) return WB_I64;
    if (o == (PyObject *)&PyBool_Type) return WB_BOOL;
    if (PyLong_Check(o)) {
        PyErr_Format(PyExc_TypeError,
                     "expected an element type, got %R; a shape of several axes is one argument, "
                     "zeros((2, 3))",
                     o);
        return WB_F32;
    }
    for (int i = 0; i < WB_DTYPE_COUNT; i++)
        if (o == dtype_objects[i]) return (wb_dtype)i;
    PyObject *s = PyType_Check(o) ? PyObject_GetAttrString(o, "__name__") : PyObject_Str(o);
    const char *text = s ? PyUnicode_AsUTF8AndSize(s, NULL) : NULL;
    if (text && strncmp(text, "torch.", 6) == 0) text += 6;
    for (int i = 0; text && i < WB_DTYPE_COUNT; i++) {
        if (strcmp(text, wb_dtype_name((wb_dtype)i)) == 0 || strcmp(text, numpy_names[i]) == 0) {
            Py_DECREF(s);
            return (wb_dtype)i;
        }
    }
    Py_XDECREF(s);
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError,
                 "there is no element type %R; there are float32, float64, float16, bfloat16, "
                 "int32, int64, uint8 and bool",
                 o);
    return WB_F32;
}

int py_choice(PyObject *o, const char *const *names) {
    if (py_is_none(o) || PyErr_Occurred()) return 0;
    const char *text = PyUnicode_Check(o) ? PyUnicode_AsUTF8AndSize(o, NULL) : NULL;
    PyObject *list = PyList_New(0);
    for (int i = 0; names[i]; i++) {
        if (text && strcmp(text, names[i]) == 0) {
            Py_XDECREF(list);
            return i;
        }
        PyObject *name = PyUnicode_FromString(names[i]);
        if (list && name) (void)PyList_Append(list, name);
        Py_XDECREF(name);
    }
    if (list) PyErr_Format(PyExc_ValueError, "expected one of %R, got %R", list, o);
    Py_XDECREF(list);
    return 0;
}

/* ---- axes and sizes ---- */

int py_axis(PyObject *o) { return ~py_int(o); }

static void check_axis(int64_t dim, const wb_array *x) {
    const int n = wb_ndim(x);
    if (x && !PyErr_Occurred() && (dim < -n || dim >= n))
        (void)wb_fail(WB_ERROR_ARGUMENT, "axis %lld is outside an array of %d axes",
                      (long long)~dim, n);
}
int py_axis_of(PyObject *o, const wb_array *x) {
    const int dim = py_axis(o);
    check_axis(dim, x);
    return dim;
}
py_list py_axes_of(PyObject *o, const wb_array *x) {
    const py_list list = py_axes(o);
    for (int i = 0; i < list.count; i++) check_axis(list.at[i], x);
    return list;
}

int py_new_axis(PyObject *o, int ndim) {
    const int axis = py_int(o);
    return axis < 0 ? ~axis : ndim - axis;
}

/* A number, or a sequence of at most 8. */
static py_list integers(PyObject *o, bool reversed, bool as_axes) {
    py_list list = {0};
    if (!o || PyErr_Occurred()) return list;
    if (PyIndex_Check(o)) {
        list.at[0] = as_axes ? ~py_integer(o) : py_integer(o);
        list.count = 1;
        return list;
    }
    const Py_ssize_t n = PySequence_Size(o);
    if (n < 0) return list;
    if (n > WB_MAX_DIMS) {
        PyErr_Format(PyExc_ValueError, "expected at most %d numbers, got %zd", (int)WB_MAX_DIMS, n);
        return list;
    }
    list.count = (int)n;
    for (Py_ssize_t i = 0; i < n && !PyErr_Occurred(); i++) {
        PyObject *item = PySequence_GetItem(o, i);
        const int64_t v = item ? py_integer(item) : 0;
        Py_XDECREF(item);
        list.at[reversed ? n - 1 - i : i] = as_axes ? ~v : v;
    }
    return list;
}
py_list py_axes(PyObject *o) { return integers(o, true, true); }
py_list py_sizes(PyObject *o) { return integers(o, true, false); }
py_list py_numbers(PyObject *o) { return integers(o, false, false); }

/* ---- objects of Weber ---- */

wb_array *py_array(PyObject *o) {
    if (o && Py_TYPE(o) == Array_type) return ((Array *)o)->x;
    if (py_is_none(o) || PyErr_Occurred()) return NULL;
    if (PyBool_Check(o)) return wb_full_make(WB_BOOL, o == Py_True, 0, NULL);
    if (PyFloat_CheckExact(o)) return wb_number(PyFloat_AsDouble(o));
    if (PyLong_CheckExact(o)) {
        const int64_t v = PyLong_AsLongLong(o);
        return v == -1 && PyErr_Occurred() ? NULL : wb_whole_number(v);
    }
    return py_array_of(o, true, -1);
}

py_array_list py_arrays(PyObject *o) {
    py_array_list list = {0};
    if (PyErr_Occurred()) return list;
    const Py_ssize_t n = PySequence_Size(o);
    if (n < 0) return list;
    list.at = PyMem_Calloc((size_t)n + 1, sizeof *list.at);
    if (!list.at) {
        (void)PyErr_NoMemory();
        return list;
    }
    list.count = (int)n;
    for (Py_ssize_t i = 0; i < n && !PyErr_Occurred(); i++) {
        PyObject *item = PySequence_GetItem(o, i);
        wb_array *x = item ? py_array(item) : NULL;
        /* the scope has it, since a sequence may make its items when they are asked for */
        list.at[i] = x && !PyErr_Occurred() ? wb_give(wb_take(x)) : NULL;
        Py_XDECREF(item);
    }
    return list;
}

static void wrong_type(const char *expected, PyObject *o) {
    PyErr_Format(PyExc_TypeError, "expected %s, got %R", expected, (PyObject *)Py_TYPE(o));
}

wb_layer *py_layer(PyObject *o) {
    if (PyErr_Occurred()) return NULL;
    if (o && PyObject_TypeCheck(o, Layer_type)) return ((Layer *)o)->layer;
    wrong_type("a Layer", o ? o : Py_None);
    return NULL;
}

/* A layer, or a function as one. */
wb_layer *py_layer_reference(PyObject *o) {
    if (PyErr_Occurred()) return NULL;
    if (PyObject_TypeCheck(o, Layer_type)) return wb_keep_layer(((Layer *)o)->layer);
    if (PyCFunction_Check(o) || PyUnicode_Check(o)) {
        wb_activation *f = py_activation(o);
        return f ? wb_fn(f) : NULL;
    }
    if (PyCallable_Check(o)) return py_function_layer(o);
    wrong_type(PyList_Check(o) ? "a Layer or a function, several by a star, Chain(*layers)"
                               : "a Layer or a function",
               o);
    return NULL;
}

py_layer_list py_layers(PyObject *o) {
    py_layer_list list = {0};
    if (!PyErr_Occurred()) {
        const Py_ssize_t n = PySequence_Size(o);
        list.at = PyMem_Calloc((size_t)n + 1, sizeof *list.at);
        list.count = list.at ? n : 0;
        if (!list.at) (void)PyErr_NoMemory();
        for (Py_ssize_t i = 0; i < list.count && !PyErr_Occurred(); i++)
            list.at[i] = py_layer_reference(PyTuple_GetItem(o, i));
        for (Py_ssize_t i = 0; i < list.count && PyErr_Occurred(); i++) wb_free(list.at[i]);
    }
    Py_XDECREF(o);
    return list;
}

void *py_handle(PyObject *o, PyTypeObject *type) {
    if (PyErr_Occurred()) return NULL;
    if (o && PyObject_TypeCheck(o, type)) return ((Handle *)o)->object;
    if (type == Optimiser_type && o && PyObject_TypeCheck(o, Rule_type)) {
        PyErr_SetString(PyExc_TypeError,
                        "expected an Optimiser, got a Rule: setup(rule, model) makes one of it");
        return NULL;
    }
    if (type == Loader_type) {
        PyErr_Format(PyExc_TypeError,
                     "expected a Loader, such as DataLoader(x, y, batchsize=64), got %R",
                     (PyObject *)Py_TYPE(o ? o : Py_None));
        return NULL;
    }
    PyErr_Format(PyExc_TypeError, "expected %R, got %R", (PyObject *)type,
                 (PyObject *)Py_TYPE(o ? o : Py_None));
    return NULL;
}

wb_rule py_rule(PyObject *o) {
    if (!PyErr_Occurred() && o && PyObject_TypeCheck(o, Rule_type)) return ((Rule *)o)->rule;
    if (!PyErr_Occurred()) wrong_type("a Rule, such as Adam()", o ? o : Py_None);
    return (wb_rule){.is_broken = true};
}

const wb_device *py_device(PyObject *o) {
    if (py_is_none(o) || PyErr_Occurred()) return NULL;
    if (PyObject_TypeCheck(o, Device_type)) return ((Device *)o)->device;
    const char *name = py_text(o);
    const wb_device *device = name ? wb_get_device_named(name) : NULL;
    if (!device && !PyErr_Occurred()) (void)py_raise();
    return device;
}

/* ---- functions by name ---- */

/* The row that a text names, or whose function of the module this is. */
static void (*function_of(PyObject *o, const py_function_row *rows, const char *what))(void) {
    if (py_is_none(o) || PyErr_Occurred()) return NULL;
    PyObject *name = NULL;
    if (PyUnicode_Check(o))
        name = Py_NewRef(o);
    else if (PyCFunction_Check(o))
        name = PyObject_GetAttrString(o, "__name__");
    for (; name && rows->name; rows++) {
        if (PyUnicode_CompareWithASCIIString(name, rows->name) == 0) {
            Py_DECREF(name);
            return rows->function;
        }
    }
    Py_XDECREF(name);
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "expected one of Weber's %s, got %R", what, o);
    return NULL;
}

wb_activation *py_activation(PyObject *o) {
    return (wb_activation *)function_of(
        o, py_activations,
        "activations, such as relu (a function of your own is a layer of a Chain)");
}
wb_init *py_init(PyObject *o) {
    return (wb_init *)function_of(o, py_inits, "initialisers, such as 'kaiming_normal'");
}
wb_connection *py_connection(PyObject *o) {
    if (o && PyUnicode_Check(o)) {
        if (PyUnicode_CompareWithASCIIString(o, "+") == 0) return wb_connect_add;
        if (PyUnicode_CompareWithASCIIString(o, "*") == 0) return wb_connect_mul;
    }
    return (wb_connection *)function_of(o, py_connections, "connections: '+', '*', 'connect_vcat'");
}

/* ---- descs ---- */

static void fill_list(void *at, const py_member *m, PyObject *o) {
    const bool reversed = m->kind == PY_SIZES || m->kind == PY_PADDING;
    const py_list list = integers(o, reversed, false);
    if (list.count > m->most) {
        PyErr_Format(PyExc_ValueError, "%s has at most %d numbers, got %d", m->name, m->most,
                     list.count);
        return;
    }
    int64_t *numbers = at;
    for (int i = 0; i < list.count; i++) numbers[i] = list.at[i];
    if (m->kind != PY_PADDING) return;
    for (int i = 0; i < list.count; i++)
        if (numbers[i] == 0 && !PyIndex_Check(o)) numbers[i] = WB_NONE_;
    for (int i = list.count; i < m->most; i++) numbers[i] = WB_SAME_;
}

static void fill_reals(double *numbers, const py_member *m, PyObject *o) {
    if (PyFloat_Check(o) || PyLong_Check(o)) {
        numbers[0] = py_real(o);
        return;
    }
    const Py_ssize_t n = PySequence_Size(o);
    if (n > m->most)
        PyErr_Format(PyExc_ValueError, "%s has at most %d numbers, got %zd", m->name, m->most, n);
    for (Py_ssize_t i = 0; i < n && !PyErr_Occurred(); i++) {
        PyObject *item = PySequence_GetItem(o, i);
        numbers[m->kind == PY_SCALES ? n - 1 - i : i] = py_real(item);
        Py_XDECREF(item);
    }
}

static void fill_texts(const char **texts, const py_member *m, PyObject *o) {
    const bool is_list = PyList_Check(o);
    if (!is_list && !PyTuple_Check(o)) {
        texts[0] = py_text(o);
        return;
    }
    const Py_ssize_t n = is_list ? PyList_Size(o) : PyTuple_Size(o);
    if (n > m->most)
        PyErr_Format(PyExc_ValueError, "%s has at most %d texts, got %zd", m->name, m->most, n);
    for (Py_ssize_t i = 0; i < n && !PyErr_Occurred(); i++)
        texts[i] = py_text(is_list ? PyList_GetItem(o, i) : PyTuple_GetItem(o, i));
}

static unsigned axis_bits(PyObject *o) {
    const py_list list = py_axes(o);
    unsigned bits = 0;
    for (int i = 0; i < list.count; i++) {
        if (list.at[i] < 0 || list.at[i] >= WB_MAX_DIMS)
            PyErr_SetString(PyExc_ValueError, "these axes are counted from the end: -1, -2, ...");
        else
            bits |= 1u << list.at[i];
    }
    return bits;
}

static void fill_many(void *at, const py_member *m, PyObject *o) {
    if (m->kind == PY_TEXTS)
        fill_texts(at, m, o);
    else if (m->kind == PY_AXES)
        *(unsigned *)at = axis_bits(o);
    else if (m->kind == PY_SCALES || m->kind == PY_REALS)
        fill_reals(at, m, o);
    else
        fill_list(at, m, o);
}

static void fill(void *at, const py_member *m, PyObject *o) {
    switch (m->kind) {
    case PY_ARRAY:
        *(wb_array **)at = py_array(o);
        break;
    case PY_LAYER:
        *(wb_layer **)at = py_layer_reference(o);
        break;
    case PY_LAYER_LENT:
        *(wb_layer **)at = py_layer(o);
        break;
    case PY_REAL:
        *(double *)at = py_real(o);
        break;
    case PY_INT64:
        *(int64_t *)at = py_integer(o);
        break;
    case PY_INT:
        *(int *)at = py_int(o);
        break;
    case PY_UINT64:
        *(uint64_t *)at = py_unsigned(o);
        break;
    case PY_BOOL:
        *(bool *)at = py_truth(o);
        break;
    case PY_TEXT:
        *(const char **)at = py_text(o);
        break;
    case PY_DTYPE:
        *(wb_dtype *)at = py_dtype(o);
        break;
    case PY_ACTIVATION:
        *(wb_activation **)at = py_activation(o);
        break;
    case PY_INIT:
        *(wb_init **)at = py_init(o);
        break;
    case PY_DEVICE:
        *(const wb_device **)at = py_device(o);
        break;
    case PY_RULE:
        *(wb_rule *)at = py_rule(o);
        break;
    case PY_CHOICE:
        *(int *)at = py_choice(o, m->choices);
        break;
    case PY_AXIS:
        *(int64_t *)at = py_axis(o);
        break;
    default:
        fill_many(at, m, o);
    }
}

static bool is_list(PyObject *o) { return !py_is_none(o) && !PyIndex_Check(o); }

/* Strides and paddings that are lists have a number for each dimension of the kernel. */
static void check_lists(const py_member *members, int count, PyObject *const *values) {
    Py_ssize_t dims = 0;
    for (int i = 0; i < count; i++)
        if (strcmp(members[i].name, "kernel") == 0 && is_list(values[i]))
            dims = PySequence_Size(values[i]);
    for (int i = 0; i < count && dims; i++) {
        if (members[i].kind != PY_SIZES && members[i].kind != PY_PADDING) continue;
        if (!is_list(values[i]) || PySequence_Size(values[i]) == dims) continue;
        PyErr_Format(PyExc_ValueError,
                     "%s must be one number, or one for each of the kernel's %zd dimensions, "
                     "got %R",
                     members[i].name, dims, values[i]);
        return;
    }
}

void py_fill(void *desc, const py_member *members, int count, PyObject *const *values) {
    for (int i = 0; i < count && !PyErr_Occurred(); i++)
        if (!py_is_none(values[i])) fill((char *)desc + members[i].offset, &members[i], values[i]);
    if (!PyErr_Occurred()) check_lists(members, count, values);
    if (!PyErr_Occurred()) return;
    for (int i = 0; i < count; i++)
        if (members[i].kind == PY_LAYER) wb_free(*(wb_layer **)((char *)desc + members[i].offset));
}

static PyMethodDef functions[] = {{"_set_dtypes", set_dtypes, METH_O, NULL}, {NULL, NULL, 0, NULL}};

bool py_add_arguments(PyObject *module) {
    for (const py_function_row *row = py_inits; row->name; row++) {
        PyObject *name = PyUnicode_FromString(row->name);
        if (!name || PyModule_AddObjectRef(module, row->name, name) < 0) return false;
        Py_DECREF(name);
    }
    for (const py_function_row *row = py_connections; row->name; row++) {
        PyObject *name = PyUnicode_FromString(row->name);
        if (!name || PyModule_AddObjectRef(module, row->name, name) < 0) return false;
        Py_DECREF(name);
    }
    return py_add_functions(module, functions);
}
