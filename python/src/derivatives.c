/* Derivatives of functions of arrays that are written in Python. */
#include "binding.h"

static wb_array *array_of_call(PyObject *function, PyObject *args, bool is_loss) {
    py_now->recording++;
    PyObject *result = args ? PyObject_Call(function, args, NULL) : NULL;
    if (is_loss && result && (PyFloat_Check(result) || PyLong_Check(result)))
        PyErr_Format(PyExc_TypeError,
                     "the loss returned %R, a number that does not depend on the model: return an "
                     "Array (without item() or float())",
                     result);
    if (is_loss && result && PyTuple_Check(result))
        PyErr_SetString(PyExc_TypeError, "the loss returned a tuple: return one Array, and hand "
                                         "out others by aux('name', x)");
    wb_array *x = result ? py_array(result) : NULL;
    if (result && !x && !PyErr_Occurred() && !wb_failed())
        PyErr_SetString(PyExc_TypeError, "the function returned None instead of an Array");
    if (x && !PyErr_Occurred()) x = wb_give(wb_take(x));
    Py_XDECREF(args);
    Py_XDECREF(result);
    if (PyErr_Occurred()) py_keep_exception();
    py_now->recording--;
    return wb_failed() ? NULL : x;
}

wb_array *py_array_of_call(PyObject *function, PyObject *args) {
    return array_of_call(function, args, false);
}
wb_array *py_array_of_loss(PyObject *function, PyObject *args) {
    return array_of_call(function, args, true);
}

/* A function of arrays: each gets a node of its own, so that what was computed from it before is a
 * constant. Models are passed as they are. Returns the result, NULL on failure. */
static wb_array *call_on_nodes(PyObject *function, PyObject *given, wb_array **nodes) {
    PyObject *args = PyTuple_New(PyTuple_Size(given));
    for (Py_ssize_t i = 0; args && i < PyTuple_Size(given); i++) {
        PyObject *o = PyTuple_GetItem(given, i);
        if (!PyObject_TypeCheck(o, Layer_type)) {
            wb_array *x = py_array(o);
            x = x && !PyErr_Occurred() ? wb_reshape_make(x, wb_ndim(x), wb_sizes(x)) : NULL;
            if (!x) {
                if (!PyErr_Occurred() && !wb_failed())
                    PyErr_Format(PyExc_TypeError, "argument %zd is None instead of an array", i);
                break;
            }
            *nodes++ = x;
            PyTuple_SetItem(args, i, py_wrap_array(wb_take(x)));
        } else {
            PyTuple_SetItem(args, i, Py_NewRef(o));
        }
    }
    if (PyErr_Occurred() || wb_failed()) {
        Py_XDECREF(args);
        return NULL;
    }
    return py_array_of_call(function, args);
}

enum { MOST = 64 };

static bool takes(Py_ssize_t count) {
    if (count <= MOST) return true;
    PyErr_Format(PyExc_ValueError, "at most %d arrays, got %zd", (int)MOST, count);
    return false;
}

/* How many of the arguments are arrays; -1 with an exception. */
static int count_arrays(PyObject *given) {
    int count = 0;
    for (Py_ssize_t i = 0; i < PyTuple_Size(given); i++)
        count += !PyObject_TypeCheck(PyTuple_GetItem(given, i), Layer_type);
    return takes(count) ? count : -1;
}

/* _value_and_grad(function, args): (value, [gradient of each argument]). */
static PyObject *value_and_grad(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module, (void)nargs;
    PyObject *given = args[1];
    const Py_ssize_t all = PyTuple_Size(given);
    const int count = count_arrays(given);
    if (count < 0 || !py_open()) return NULL;
    wb_array *nodes[MOST], *gradients[MOST] = {NULL};
    const bool has_layers = count < all;
    const bool before = has_layers ? wb_training(true) : false;
    wb_array *y = call_on_nodes(args[0], given, nodes);
    if (has_layers) (void)wb_training(before);
    if (!y || (count && wb_gradient_of(y, count, nodes, gradients) != WB_OK)) return py_fail();
    PyObject *list = PyList_New(all);
    py_now->recording++; /* the gradients belong to the recipe of y, which is not dropped here */
    for (Py_ssize_t i = 0, k = 0; list && i < all; i++) {
        PyObject *o = PyTuple_GetItem(given, i), *gradient = NULL;
        if (PyObject_TypeCheck(o, Layer_type)) {
            wb_gradients *g = wb_gradient(y, py_layer(o));
            if (g) gradient = py_wrap(Gradients_type, wb_take(g), o);
        } else {
            wb_array *g = gradients[k++];
            if (g && py_now->recording == 1)
                (void)wb_forget_recipe(wb_take(g));
            else if (g)
                (void)wb_take(g);
            gradient = g ? py_wrap_array(g) : Py_NewRef(Py_None);
        }
        if (!gradient)
            Py_CLEAR(list);
        else
            PyList_SetItem(list, i, gradient);
    }
    py_now->recording--;
    if (!list) return py_fail();
    PyObject *value = py_give_array(y);
    return value ? Py_BuildValue("(NN)", value, list) : (Py_DECREF(list), NULL);
}

/* _matrix_of(function, args, name): the Jacobian or Hessian, or the Hessian's diagonal. */
static PyObject *matrix_of(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module, (void)nargs;
    const char *name = py_text(args[2]);
    if (name && count_arrays(args[1]) != 1)
        PyErr_Format(PyExc_TypeError, "%s: the argument is an array, not a model", name);
    if (PyErr_Occurred() || !py_open()) return NULL;
    wb_array *node;
    wb_array *y = call_on_nodes(args[0], args[1], &node);
    if (!y) return py_fail();
    wb_array *m = strcmp(name, "jacobian") == 0  ? wb_jacobian(y, node)
                  : strcmp(name, "hessian") == 0 ? wb_hessian(y, node)
                                                 : wb_hessian_diagonal(y, node);
    if (m && strcmp(name, "jacobian") == 0) m = wb_transpose(m);
    return py_give_array(m);
}

/* _along(function, args, vectors, name): J v, or the Hessian times v for each argument. */
static PyObject *along(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module, (void)nargs;
    const char *name = py_text(args[3]);
    const int count = count_arrays(args[1]);
    if (!name || count < 0 || !py_open()) return NULL;
    const py_array_list vectors = py_arrays(args[2]);
    wb_array *nodes[MOST], *products[MOST] = {NULL};
    wb_array *y = NULL;
    if (!PyErr_Occurred() && vectors.count != count)
        PyErr_SetString(PyExc_ValueError, "there is one vector for each array");
    if (!PyErr_Occurred()) y = call_on_nodes(args[0], args[1], nodes);
    const bool is_jvp = strcmp(name, "jvp") == 0;
    wb_array *v = y && is_jvp ? wb_jvp(y, count, nodes, vectors.at) : NULL;
    if (y && !is_jvp) (void)wb_hvp(y, count, nodes, vectors.at, products);
    PyMem_Free(vectors.at);
    if (PyErr_Occurred() || !y) return py_fail();
    return is_jvp ? py_give_arrays(2, (wb_array *[]){y, v}) : py_give_arrays(count, products);
}

static wb_array *on_arrays(void *function, int count, wb_array *const *arrays) {
    const py_inside inside = py_callback_begin();
    PyObject *args = PyTuple_New(count);
    for (int i = 0; args && i < count; i++)
        PyTuple_SetItem(args, i, py_wrap_array(wb_take(arrays[i])));
    wb_array *y = py_array_of_call(function, args);
    py_callback_end(inside);
    return y;
}

static PyObject *recompute(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module;
    if (nargs < 2) return PyErr_SetString(PyExc_TypeError, "recompute(function, *arrays)"), NULL;
    if (!takes(nargs - 1) || !py_open()) return NULL;
    wb_array *arrays[MOST];
    for (Py_ssize_t i = 1; i < nargs; i++) arrays[i - 1] = py_array(args[i]);
    if (PyErr_Occurred()) return py_fail();
    return py_give_array(wb_recompute(on_arrays, args[0], (int)nargs - 1, arrays));
}

/* ---- gradients of each observation ---- */

typedef struct each {
    PyObject *function, *of; /* a model, or an array's node */
} each;

static wb_array *loss_of_one(void *context, int count, wb_array *const *inputs) {
    const each *e = context;
    const py_inside inside = py_callback_begin();
    PyObject *args = PyTuple_New(count + 1);
    if (args) PyTuple_SetItem(args, 0, Py_NewRef(e->of));
    for (int i = 0; args && i < count; i++)
        PyTuple_SetItem(args, i + 1, py_wrap_array(wb_take(inputs[i])));
    wb_array *y = py_array_of_loss(e->function, args);
    py_callback_end(inside);
    return y;
}

/* The trainable arrays of a model, and their paths as a list; how many, or -1. */
static int parameters_of(wb_layer *model, wb_array ***arrays, PyObject **paths) {
    int count = 0;
    for (wb_parameter p = {0}; wb_next_parameter(model, &p);) count++;
    *arrays = PyMem_Calloc((size_t)count + 1, sizeof **arrays);
    *paths = PyList_New(0);
    count = 0;
    for (wb_parameter p = {0}; *arrays && *paths && wb_next_parameter(model, &p);) {
        PyObject *path = p.is_trainable ? PyUnicode_FromString(p.path) : NULL;
        if (path && PyList_Append(*paths, path) == 0) (*arrays)[count++] = p.array;
        Py_XDECREF(path);
    }
    return *arrays && *paths && !PyErr_Occurred() ? count : -1;
}

/* _gradient_each(function, model, inputs): {path: gradients}; or of an array, their array. */
static PyObject *gradient_each(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module, (void)nargs;
    const bool is_model = PyObject_TypeCheck(args[1], Layer_type);
    if (!py_open()) return NULL;
    each e = {args[0], Py_NewRef(args[1])};
    wb_array **arrays = NULL, *node = NULL, *one[1];
    PyObject *paths = NULL;
    int count = 1;
    if (is_model) {
        count = parameters_of(py_layer(args[1]), &arrays, &paths);
    } else if ((node = py_array(args[1])) && !PyErr_Occurred()) {
        one[0] = node = wb_reshape_make(node, wb_ndim(node), wb_sizes(node));
        if (node) {
            Py_DECREF(e.of);
            e.of = py_wrap_array(wb_take(node));
        }
    }
    const py_array_list inputs = py_arrays(args[2]);
    wb_array **gradients = PyMem_Calloc((size_t)(count < 0 ? 0 : count) + 1, sizeof *gradients);
    if (!gradients) (void)PyErr_NoMemory();
    if (!PyErr_Occurred() && !wb_failed())
        (void)wb_gradient_each(loss_of_one, &e, inputs.count, inputs.at, count,
                               is_model ? arrays : one, gradients);
    PyObject *result = NULL;
    if (!PyErr_Occurred() && !wb_failed())
        result = is_model ? py_give_arrays(count, gradients) : py_give_array(gradients[0]);
    else
        (void)py_fail();
    PyMem_Free(arrays), PyMem_Free(gradients), PyMem_Free(inputs.at);
    Py_XDECREF(e.of);
    PyObject *pair = result && is_model ? Py_BuildValue("(OO)", paths, result) : Py_XNewRef(result);
    Py_XDECREF(paths), Py_XDECREF(result);
    return pair;
}

static PyObject *gradient_check(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                                PyObject *kwnames) {
    (void)module;
    static const char *const names[] = {"function", "arrays", "order", "tolerance"};
    static const py_signature signature = {"gradient_check", names, 4, 2, 2};
    PyObject *a[4];
    if (!py_bind(&signature, args, nargs, kwnames, a) || !py_open()) return NULL;
    const int order = a[2] ? py_int(a[2]) : 1;
    const double tolerance = py_given_real(a[3], 0);
    const py_array_list arrays = py_arrays(a[1]);
    wb_status status = WB_OK;
    if (!PyErr_Occurred() && takes(arrays.count))
        status = wb_gradient_check(on_arrays, a[0], arrays.count, arrays.at, order, tolerance);
    PyMem_Free(arrays.at);
    return PyErr_Occurred() ? py_fail() : py_give_status(status);
}

/* ---- functions with a derivative of their own ---- */

static wb_array *on_value(void *context, int count, wb_array *const *arrays) {
    const py_inside inside = py_callback_begin();
    wb_array *y = on_arrays(PyTuple_GetItem(context, 0), count, arrays);
    py_callback_end(inside);
    return y;
}

static wb_status on_pullback(void *context, wb_array *result, wb_array *cotangent, int count,
                             wb_array *const *arrays, wb_array **cotangents) {
    const py_inside inside = py_callback_begin();
    py_now->recording++;
    PyObject *args = PyTuple_New(count + 2), *made = NULL;
    if (args) {
        PyTuple_SetItem(args, 0, py_wrap_array(wb_take(result)));
        PyTuple_SetItem(args, 1, py_wrap_array(wb_take(cotangent)));
        for (int i = 0; i < count; i++)
            PyTuple_SetItem(args, i + 2, py_wrap_array(wb_take(arrays[i])));
        made = PyObject_Call(PyTuple_GetItem(context, 1), args, NULL);
    }
    PyObject *list = made && !PyTuple_Check(made) ? PyTuple_Pack(1, made) : Py_XNewRef(made);
    if (list && PyTuple_Size(list) != count)
        PyErr_Format(PyExc_ValueError, "the pullback returned %zd cotangents for %d arrays",
                     PyTuple_Size(list), count);
    for (int i = 0; list && i < count && !PyErr_Occurred(); i++) {
        wb_array *c = py_array(PyTuple_GetItem(list, i));
        cotangents[i] = c && !PyErr_Occurred() ? wb_give(wb_take(c)) : NULL;
    }
    Py_XDECREF(args), Py_XDECREF(made), Py_XDECREF(list);
    if (PyErr_Occurred()) py_keep_exception();
    py_now->recording--;
    const wb_status status = wb_error_status();
    py_callback_end(inside);
    return status;
}
static void release_functions(void *context) { py_do_later((void (*)(void *))Py_DecRef, context); }

static PyObject *function(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module;
    if (nargs < 3)
        return PyErr_SetString(PyExc_TypeError, "function(value, pullback, *arrays)"), NULL;
    if (!takes(nargs - 2) || !py_open()) return NULL;
    wb_array *arrays[MOST];
    for (Py_ssize_t i = 2; i < nargs; i++) arrays[i - 2] = py_array(args[i]);
    if (PyErr_Occurred()) return py_fail();
    PyObject *functions = PyTuple_Pack(2, args[0], args[1]);
    if (!functions) return py_fail();
    const wb_function_desc desc =
        WB_DESC(function, .value = on_value, .pullback = on_pullback, .context = functions,
                .release = release_functions, .name = "function");
    return py_give_array(wb_function_make((int)nargs - 2, arrays, desc));
}

#define FAST(name, function, doc)                                                                  \
    { name, (PyCFunction)(void *)function, METH_FASTCALL, doc }
static PyMethodDef functions[] = {
    FAST("recompute", recompute,
         "recompute($module, function, *arrays)\n--\n\nfunction(*arrays); what is computed between "
         "is computed again for the gradient instead of kept."),
    FAST("function", function,
         "function($module, value, pullback, *arrays)\n--\n\nvalue(*arrays), with the derivative "
         "pullback(result, cotangent, *arrays), which returns a cotangent, or None, for each "
         "array."),
    {"gradient_check", (PyCFunction)(void *)gradient_check, METH_FASTCALL | METH_KEYWORDS,
     "gradient_check($module, function, arrays, *, order=1, tolerance=0)\n--\n\nCompares the "
     "gradient of function(*arrays) with central differences (order 2: that of the gradient, too). "
     "The arrays are float64. A GradientError names the first element that differs by more than "
     "tolerance, 0: 1e-6, relative to the largest."},
    FAST("_gradient_each", gradient_each, NULL),
    FAST("_value_and_grad", value_and_grad, NULL),
    FAST("_matrix_of", matrix_of, NULL),
    FAST("_along", along, NULL),
    {NULL, NULL, 0, NULL}};

bool py_add_derivatives(PyObject *module) { return py_add_functions(module, functions); }
