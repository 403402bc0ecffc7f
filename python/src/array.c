/* The type Array: properties, operators, reductions, reading. */
#include <math.h>

#include "binding.h"

PyTypeObject *Array_type;

PyObject *py_wrap_array(wb_array *x) {
    Array *a = PyObject_New(Array, Array_type);
    if (!a) return py_release(x), NULL;
    a->x = x, a->weak = NULL;
    return (PyObject *)a;
}

static void array_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    if (((Array *)self)->weak) PyObject_ClearWeakRefs(self);
    py_release_array(((Array *)self)->x);
    PyObject_Free(self);
    Py_DECREF(type);
}

static inline wb_array *of(PyObject *self) { return ((Array *)self)->x; }

/* ---- properties ---- */

/* What is asked of an array that may be asked outside a call. */
typedef struct facts {
    int ndim;
    wb_dtype dtype;
    int64_t count, sizes[WB_MAX_DIMS];
} facts;
static facts facts_of(PyObject *self) {
    py_enter();
    const wb_array *x = of(self);
    facts f = {.ndim = wb_ndim(x), .dtype = wb_dtype_of(x), .count = wb_count(x)};
    for (int i = 0; i < f.ndim; i++) f.sizes[i] = wb_size(x, i);
    py_leave();
    return f;
}

static PyObject *get_shape(PyObject *self, void *closure) {
    (void)closure;
    const facts f = facts_of(self);
    PyObject *shape = PyTuple_New(f.ndim);
    for (int i = 0; shape && i < f.ndim; i++)
        PyTuple_SetItem(shape, i, PyLong_FromLongLong(f.sizes[f.ndim - 1 - i]));
    return shape;
}
static PyObject *get_ndim(PyObject *self, void *closure) {
    (void)closure;
    return PyLong_FromLong(facts_of(self).ndim);
}
static PyObject *get_size(PyObject *self, void *closure) {
    (void)closure;
    return PyLong_FromLongLong(facts_of(self).count);
}
static PyObject *get_nbytes(PyObject *self, void *closure) {
    (void)closure;
    const facts f = facts_of(self);
    return PyLong_FromLongLong(f.count * (long long)wb_dtype_size(f.dtype));
}
static PyObject *get_dtype(PyObject *self, void *closure) {
    (void)closure;
    return py_dtype_object(facts_of(self).dtype);
}
static PyObject *get_device(PyObject *self, void *closure) {
    (void)closure;
    if (!py_open()) return NULL;
    return py_give_device(wb_device_of(of(self)));
}
static PyObject *get_transposed(PyObject *self, void *closure) {
    (void)closure;
    if (!py_open()) return NULL;
    const int n = wb_ndim(of(self));
    int64_t dims[WB_MAX_DIMS];
    for (int i = 0; i < n; i++) dims[i] = n - 1 - i;
    return py_give_array(wb_permute_make(of(self), n, dims));
}
static PyObject *get_matrix_transposed(PyObject *self, void *closure) {
    (void)closure;
    if (facts_of(self).ndim < 2)
        return PyErr_SetString(PyExc_ValueError, "mT needs at least two axes"), NULL;
    if (!py_open()) return NULL;
    return py_give_array(wb_transpose(of(self)));
}

/* ---- reading ---- */

static PyObject *item(PyObject *self, PyObject *unused) {
    (void)unused;
    if (!py_open()) return NULL;
    PyThreadState *others = PyEval_SaveThread();
    const double v = wb_item(of(self));
    PyEval_RestoreThread(others);
    py_close();
    if (wb_failed()) return py_raise();
    const wb_dtype dtype = facts_of(self).dtype;
    if (dtype == WB_BOOL) return PyBool_FromLong(v != 0);
    if (wb_dtype_is_float(dtype)) return PyFloat_FromDouble(v);
    if (dtype != WB_I64) return PyLong_FromDouble(v);
    int64_t exact = 0; /* a double has 53 bits */
    if (!py_open()) return NULL;
    const wb_status status = (wb_read)(of(self), &exact, sizeof exact);
    py_close();
    return status == WB_OK ? PyLong_FromLongLong(exact) : py_raise();
}

static PyObject *converted(PyObject *self, PyObject *(*convert)(PyObject *)) {
    PyObject *v = item(self, NULL), *result = v ? convert(v) : NULL;
    Py_XDECREF(v);
    return result;
}
static PyObject *as_float(PyObject *self) { return converted(self, PyNumber_Float); }
static PyObject *as_int(PyObject *self) { return converted(self, PyNumber_Long); }
static PyObject *as_index(PyObject *self) {
    const facts f = facts_of(self);
    if (!wb_dtype_is_float(f.dtype) && f.dtype != WB_BOOL && f.ndim == 0) return as_int(self);
    PyErr_SetString(PyExc_TypeError, "only an array of one integer, without axes, is an index");
    return NULL;
}
static PyObject *as_complex(PyObject *self, PyObject *unused) {
    (void)unused;
    PyObject *v = as_float(self);
    if (!v) return NULL;
    const double real = PyFloat_AsDouble(v);
    Py_DECREF(v);
    return PyComplex_FromDoubles(real, 0);
}
static int as_bool(PyObject *self) {
    if (facts_of(self).count != 1) {
        PyErr_SetString(PyExc_ValueError,
                        "the truth of an array of several elements: write x.any() or x.all()");
        return -1;
    }
    PyObject *v = item(self, NULL);
    const int truth = v ? PyObject_IsTrue(v) : -1;
    Py_XDECREF(v);
    return truth;
}

static Py_ssize_t length(PyObject *self) {
    const facts f = facts_of(self);
    if (f.ndim) return (Py_ssize_t)f.sizes[f.ndim - 1];
    PyErr_SetString(PyExc_TypeError, "an array without axes has no length");
    return -1;
}

static PyObject *element(PyObject *self, Py_ssize_t i) {
    if (facts_of(self).ndim == 0)
        return PyErr_SetString(PyExc_TypeError, "an array without axes has nothing to loop over"),
               NULL;
    PyObject *key = PyLong_FromSsize_t(i), *result = key ? py_subscript(self, key) : NULL;
    Py_XDECREF(key);
    return result;
}

static int no_assignment(PyObject *self, PyObject *key, PyObject *value) {
    (void)self, (void)key, (void)value;
    PyErr_SetString(PyExc_TypeError,
                    "arrays are not changed in place: x = x.at[key].set(value) makes a new one");
    return -1;
}

/* ---- operators ---- */

static bool is_operand(PyObject *o) {
    return Py_TYPE(o) == Array_type || PyFloat_Check(o) || PyLong_Check(o) ||
           PyObject_CheckBuffer(o) || PyObject_HasAttrString(o, "__array__");
}

static PyObject *binary(PyObject *p, PyObject *q, wb_array *(*op)(wb_array *, wb_array *)) {
    if (!is_operand(p) || !is_operand(q)) Py_RETURN_NOTIMPLEMENTED;
    if (!py_open()) return NULL;
    wb_array *x = py_array(p), *y = py_array(q);
    return PyErr_Occurred() ? py_fail() : py_give_array(op(x, y));
}
/* x / y of integers, rounded, as integers; by 0 it is 0, as NumPy's. */
static wb_array *nearest_quotient(wb_array *x, wb_array *y, wb_dtype dtype) {
    wb_array *quotient = wb_round((wb_div)(wb_cast(x, WB_F64), wb_cast(y, WB_F64)));
    wb_array *finite = (wb_select)(wb_isfinite(quotient), quotient, wb_number(0));
    return wb_cast(finite, dtype);
}
/* The greatest integer that is not above x / y. */
static wb_array *floor_divided(wb_array *x, wb_array *y) {
    wb_array *rest = (wb_mod)(x, y);
    const wb_dtype dtype = wb_dtype_of(rest); /* of an integer and a whole number: the integer's */
    if (wb_dtype_is_float(dtype)) return wb_floor((wb_div)(x, y));
    wb_array *whole = (wb_sub)(x, rest);
    wb_array *near =
        nearest_quotient(whole, y, dtype); /* off by some 2^11, as a double has 53 bits */
    return (wb_add)(near, nearest_quotient((wb_sub)(whole, (wb_mul)(near, y)), y, dtype));
}
static wb_array *xor_of(wb_array *x, wb_array *y) { return (wb_ne)(x, y); }

/* Weber's product for reals; of integers the sums of products. a (k, n, ...), b (m, k, ...). */
static wb_array *matrix_product(wb_array *b, wb_array *a) {
    const wb_dtype dtype = wb_promote(wb_dtype_of(a), wb_dtype_of(b));
    if (wb_dtype_is_float(dtype)) return wb_matmul(b, a);
    wb_array *products = (wb_mul)(wb_unsqueeze(b, 2), wb_unsqueeze(a, 0));
    return wb_cast(wb_squeeze(wb_sum_make(products, 1, (int64_t[]){1}), 1), dtype);
}

/* a @ b as NumPy's: memory is transposed, so that it is Weber's product of b and a. */
static wb_array *product(wb_array *a, wb_array *b) {
    const int na = wb_ndim(a), nb = wb_ndim(b);
    if (na == 0 || nb == 0) {
        (void)wb_fail(WB_ERROR_SHAPE, "@ needs arrays with axes; a number is multiplied by *");
        return NULL;
    }
    if (wb_size(a, 0) != wb_size(b, nb == 1 ? 0 : 1)) {
        (void)wb_fail(WB_ERROR_SHAPE, "@: the first array has %lld columns, the second %lld rows",
                      (long long)wb_size(a, 0), (long long)wb_size(b, nb == 1 ? 0 : 1));
        return NULL;
    }
    if (na == 1 && nb == 1)
        return wb_reshape_make(
            matrix_product(wb_reshape(b, 1, wb_size(b, 0)), wb_reshape(a, wb_size(a, 0), 1)), 0,
            NULL);
    if (na == 1) { /* (k) @ (..., k, n) */
        wb_array *y = matrix_product(b, wb_reshape(a, wb_size(a, 0), 1));
        return wb_squeeze(y, 1);
    }
    if (nb == 1) { /* (..., m, k) @ (k) */
        wb_array *y = matrix_product(wb_reshape(b, 1, wb_size(b, 0)), a);
        return wb_squeeze(y, 0);
    }
    return matrix_product(b, a);
}

#define BINARY(name, op)                                                                           \
    static PyObject *name(PyObject *p, PyObject *q) { return binary(p, q, op); }
BINARY(add, (wb_add))
BINARY(subtract, (wb_sub))
BINARY(multiply, (wb_mul))
BINARY(divide, (wb_div))
BINARY(remain, (wb_mod))
BINARY(floor_divide, floor_divided)
BINARY(matmul, product)
BINARY(and_, (wb_and))
BINARY(or_, (wb_or))
BINARY(xor_, xor_of)
/* x^y of integers by squares, exact as far as their type reaches; else as C's. */
static wb_array *power_of(wb_array *x, wb_array *y) {
    const wb_dtype dtype = wb_dtype_of((wb_mul)(x, y));
    if (wb_dtype_is_float(dtype) || dtype == WB_BOOL) return (wb_pow)(x, y);
    enum { MOST_BITS = 6 }; /* 2^64 is beyond all types */
    wb_array *result = wb_cast(wb_number(1), dtype), *square = wb_cast(x, dtype);
    y = wb_cast(y, dtype);
    for (int i = 0; i < MOST_BITS; i++) {
        wb_array *is_odd = wb_eq(wb_mod(y, 2), 1);
        result = (wb_select)(is_odd, (wb_mul)(result, square), result);
        square = (wb_mul)(square, square);
        y = nearest_quotient((wb_sub)(y, wb_mod(y, 2)), wb_number(2), dtype);
    }
    return result;
}
static PyObject *power(PyObject *p, PyObject *q, PyObject *modulus) {
    if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
    int overflow = 0;
    const bool is_fraction =
        PyLong_CheckExact(q) && PyLong_AsLongLongAndOverflow(q, &overflow) < 0 && !overflow;
    return binary(p, q, is_fraction ? (wb_pow) : power_of);
}

static PyObject *unary(PyObject *p, wb_array *(*op)(wb_array *)) {
    return py_open() ? py_give_array(op(of(p))) : NULL;
}
static PyObject *negative(PyObject *p) { return unary(p, wb_neg); }
static PyObject *absolute(PyObject *p) { return unary(p, wb_abs); }
static PyObject *invert(PyObject *p) { return unary(p, wb_not); }
static PyObject *positive(PyObject *p) { return Py_NewRef(p); }

static PyObject *compare(PyObject *p, PyObject *q, int op) {
    static wb_array *(*const ops[])(wb_array *, wb_array *) = {
        [Py_LT] = (wb_lt), [Py_LE] = (wb_le), [Py_EQ] = (wb_eq),
        [Py_NE] = (wb_ne), [Py_GT] = (wb_gt), [Py_GE] = (wb_ge)};
    return binary(p, q, ops[op]);
}

/* ---- reductions ---- */

py_reduced py_reduce(wb_array *x, PyObject *axis, PyObject *keepdims) {
    py_reduced r = {.drops = !py_truth(keepdims)};
    if (PyErr_Occurred() || !x) return r;
    const int n = wb_ndim(x);
    bool is_reduced[WB_MAX_DIMS] = {false};
    r.dims = py_is_none(axis) ? (py_list){.count = n} : py_axes_of(axis, x);
    for (int i = 0; i < r.dims.count; i++) {
        if (py_is_none(axis)) r.dims.at[i] = i;
        const int64_t dim = r.dims.at[i] < 0 ? r.dims.at[i] + n : r.dims.at[i];
        if (dim >= 0 && dim < n) is_reduced[dim] = true; /* else C refuses it */
    }
    for (int i = 0; i < n; i++)
        if (!is_reduced[i]) r.left.at[r.left.count++] = wb_size(x, i);
    return r;
}

wb_array *py_drop(wb_array *y, const py_reduced *r) {
    return y && r->drops ? wb_reshape_make(y, r->left.count, r->left.at) : y;
}

wb_array *py_corrected(wb_array *y, const py_reduced *r, wb_array *x, double correction,
                       bool is_deviation) {
    if (!y || correction == 0) return y;
    double n = 1;
    for (int i = 0; i < r->dims.count; i++) {
        const int64_t dim = r->dims.at[i];
        n *= (double)wb_size(x, (int)(dim < 0 ? dim + wb_ndim(x) : dim));
    }
    const double factor = n > correction ? n / (n - correction) : NAN; /* as NumPy's: 0 / 0 */
    return (wb_mul)(y, wb_number(is_deviation ? sqrt(factor) : factor));
}

wb_array *py_of_type(wb_array *x, PyObject *dtype) {
    return py_is_none(dtype) ? x : (wb_cast)(x, py_dtype(dtype));
}

static PyObject *place_of(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
                          const char *name, wb_array *(*find)(wb_array *, int)) {
    static const char *const names[] = {"x", "axis", "keepdims"};
    const py_signature signature = {name, names, 3, 1, 3};
    PyObject *a[3];
    if (!py_bind(&signature, args, nargs, kwnames, a)) return NULL;
    if (!py_open()) return NULL;
    wb_array *x = py_array(a[0]);
    const bool keeps = py_truth(a[2]), is_whole = py_is_none(a[1]);
    const int dim = is_whole ? 0 : py_axis_of(a[1], x);
    if (PyErr_Occurred()) return py_fail();
    const int n = wb_ndim(x);
    wb_array *y = find(is_whole ? wb_reshape(x, -1) : x, dim);
    if (y && is_whole) {
        const int64_t ones[WB_MAX_DIMS] = {1, 1, 1, 1, 1, 1, 1, 1};
        y = wb_reshape_make(y, keeps ? n : 0, ones);
    } else if (y && !keeps) {
        y = wb_squeeze(y, dim);
    }
    return py_give_array(y);
}
static PyObject *argmax(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                        PyObject *kwnames) {
    (void)module;
    return place_of(args, nargs, kwnames, "argmax", wb_argmax);
}
static PyObject *argmin(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                        PyObject *kwnames) {
    (void)module;
    return place_of(args, nargs, kwnames, "argmin", wb_argmin);
}

static PyObject *squeeze(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                         PyObject *kwnames) {
    (void)module;
    static const char *const names[] = {"x", "axis"};
    static const py_signature signature = {"squeeze", names, 2, 1, 2};
    PyObject *a[2];
    if (!py_bind(&signature, args, nargs, kwnames, a)) return NULL;
    if (!py_open()) return NULL;
    wb_array *x = py_array(a[0]);
    const py_list axes = py_is_none(a[1]) ? (py_list){0} : py_axes(a[1]);
    if (PyErr_Occurred()) return py_fail();
    const int n = wb_ndim(x);
    py_list left = {0};
    for (int i = 0; i < axes.count; i++) {
        if (axes.at[i] >= -n && axes.at[i] < n) continue;
        (void)wb_fail(WB_ERROR_SHAPE, "squeeze: axis %lld of an array of %d axes",
                      (long long)~axes.at[i], n);
        return py_fail();
    }
    for (int dim = 0; dim < n; dim++) {
        bool goes = py_is_none(a[1]) && wb_size(x, dim) == 1;
        for (int i = 0; i < axes.count; i++) goes |= axes.at[i] == dim || axes.at[i] + n == dim;
        if (goes && wb_size(x, dim) != 1) {
            (void)wb_fail(WB_ERROR_SHAPE, "squeeze: axis %d has size %lld", n - 1 - dim,
                          (long long)wb_size(x, dim));
            return py_fail();
        }
        if (!goes) left.at[left.count++] = wb_size(x, dim);
    }
    return py_give_array(wb_reshape_make(x, left.count, left.at));
}

/* ---- making, types ---- */

static PyObject *array(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                       PyObject *kwnames) {
    (void)module;
    static const char *const names[] = {"object", "dtype", "copy"};
    static const py_signature signature = {"array", names, 3, 1, 3};
    PyObject *a[3];
    if (!py_bind(&signature, args, nargs, kwnames, a)) return NULL;
    if (!py_open()) return NULL;
    const wb_dtype dtype = py_dtype(a[1]);
    wb_array *x = py_array_of(a[0], !a[2] || py_truth(a[2]), py_is_none(a[1]) ? -1 : (int)dtype);
    if (PyErr_Occurred()) return py_fail();
    return py_give_array(py_is_none(a[1]) || !x ? x : (wb_cast)(x, dtype));
}

static PyObject *astype(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                        PyObject *kwnames) {
    (void)module;
    static const char *const names[] = {"x", "dtype", "copy", "device"};
    static const py_signature signature = {"astype", names, 4, 2, 3};
    PyObject *a[4];
    if (!py_bind(&signature, args, nargs, kwnames, a)) return NULL;
    if (!py_open()) return NULL;
    wb_array *x = py_array(a[0]);
    const wb_dtype dtype = py_dtype(a[1]);
    const wb_device *device = py_device(a[3]);
    if (PyErr_Occurred()) return py_fail();
    x = (wb_cast)(x, dtype);
    return py_give_array(device ? wb_to(device, x) : x);
}

/* Computes arrays in one plan. */
static PyObject *eval(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module;
    if (!py_open()) return NULL;
    wb_array **x = PyMem_Calloc((size_t)nargs + 1, sizeof *x);
    for (Py_ssize_t i = 0; x && i < nargs; i++) x[i] = py_array(args[i]);
    if (!x || PyErr_Occurred()) {
        PyMem_Free(x);
        return py_fail();
    }
    PyThreadState *others = PyEval_SaveThread();
    const wb_status status = wb_eval_make((int)nargs, x);
    PyEval_RestoreThread(others);
    PyMem_Free(x);
    py_now->has_written = true; /* what states held before is released, too */
    return py_give_status(status);
}

static PyObject *to(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    (void)module;
    static const char *const names[] = {"x", "device"};
    static const py_signature signature = {"to", names, 2, 2, 2};
    PyObject *a[2];
    if (!py_bind(&signature, args, nargs, kwnames, a)) return NULL;
    if (!py_open()) return NULL;
    const bool is_layer = PyObject_TypeCheck(a[0], Layer_type);
    if (py_is_dtype(a[1])) { /* as PyTorch's to */
        const wb_dtype dtype = py_dtype(a[1]);
        if (is_layer) return py_give(Layer_type, wb_model_as(py_layer(a[0]), dtype));
        wb_array *x = py_array(a[0]);
        return PyErr_Occurred() ? py_fail() : py_give_array((wb_cast)(x, dtype));
    }
    wb_to_desc desc = WB_DESC(to, .device = py_device(a[1]));
    desc.x = is_layer ? (void *)py_layer(a[0]) : (void *)py_array(a[0]);
    if (PyErr_Occurred()) return py_fail();
    PyThreadState *others = PyEval_SaveThread();
    void *moved = wb_to_make(desc);
    PyEval_RestoreThread(others);
    return is_layer ? py_give(Layer_type, moved) : py_give_array(moved);
}

/* x.at[key].set(value), in Python: _set(x, key, value). */
static PyObject *set(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module, (void)nargs;
    if (!py_open()) return NULL;
    wb_array *x = py_array(args[0]), *y = py_array(args[2]);
    if (!y && !PyErr_Occurred() && !wb_failed())
        PyErr_SetString(PyExc_TypeError, "set needs a value, got None");
    if (PyErr_Occurred()) return py_fail();
    wb_array *result = py_replaced(x, args[1], y);
    return PyErr_Occurred() ? py_fail() : py_give_array(result);
}

/* ---- the type ---- */

PyObject *py_method(PyObject *(*function)(PyObject *, PyObject *const *, Py_ssize_t, PyObject *),
                    PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *all[16];
    const Py_ssize_t total = nargs + (kwnames ? PyTuple_Size(kwnames) : 0);
    if (total > 15) return PyErr_SetString(PyExc_TypeError, "too many arguments"), NULL;
    all[0] = self;
    for (Py_ssize_t i = 0; i < total; i++) all[i + 1] = args[i];
    return function(NULL, all, nargs + 1, kwnames);
}

#define METHOD(name)                                                                               \
    static PyObject *method_##name(PyObject *self, PyObject *const *args, Py_ssize_t nargs,        \
                                   PyObject *kwnames) {                                            \
        return py_method(name, self, args, nargs, kwnames);                                        \
    }
METHOD(argmax)
METHOD(argmin)
METHOD(squeeze)
METHOD(astype)
METHOD(to)

#define WITH_NAMES(name) (PyCFunction)(void *) name, METH_FASTCALL | METH_KEYWORDS
static PyMethodDef functions[] = {
    {"array", WITH_NAMES(array),
     "array($module, object, dtype=None, copy=True)\n--\n\nAn array of what exports a buffer or "
     "DLPack, of numbers and of lists of numbers. Python's floats become float32, its integers "
     "int64. With copy=False memory is shared where it can be, and must not change."},
    {"astype", WITH_NAMES(astype),
     "astype($module, x, dtype, copy=True, *, device=None)\n--\n\nx in another type, and on this "
     "device."},
    {"argmax", WITH_NAMES(argmax),
     "argmax($module, x, axis=None, keepdims=False)\n--\n\nThe place of the first largest "
     "element (int64)."},
    {"argmin", WITH_NAMES(argmin),
     "argmin($module, x, axis=None, keepdims=False)\n--\n\nThe place of the first smallest "
     "element (int64)."},
    {"squeeze", WITH_NAMES(squeeze),
     "squeeze($module, x, axis=None)\n--\n\nx without these axes of size 1 (None: all)."},
    {"eval", (PyCFunction)(void *)eval, METH_FASTCALL,
     "eval($module, *arrays)\n--\n\nComputes the arrays, in one plan, and what layers have "
     "written."},
    {"to", WITH_NAMES(to),
     "to($module, x, device)\n--\n\nAn array or a model on the device, a Device or its name; or, "
     "for wb.float64 and others, in this type."},
    {"_set", (PyCFunction)(void *)set, METH_FASTCALL, NULL},
    {"_from_dlpack", py_from_dlpack, METH_O, NULL},
    {"from_arrow", py_from_arrow, METH_O,
     "from_arrow($module, column)\n--\n\nA column of pandas, polars, pyarrow or DuckDB (an object "
     "with __arrow_c_array__ or __arrow_c_stream__) as an Array; a table is a dict of Arrays. "
     "Numbers without nulls share their memory if they lie in one piece; several chunks, bools and "
     "integers of types that Weber lacks are copied."},
    {NULL, NULL, 0, NULL}};

static PyMethodDef own_methods[] = {
    {"item", item, METH_NOARGS, "item($self)\n--\n\nThe one element as a number of Python's."},
    {"__complex__", as_complex, METH_NOARGS, NULL},
    {"argmax", WITH_NAMES(method_argmax), NULL},
    {"argmin", WITH_NAMES(method_argmin), NULL},
    {"squeeze", WITH_NAMES(method_squeeze), NULL},
    {"astype", WITH_NAMES(method_astype), NULL},
    {"to", WITH_NAMES(method_to), NULL},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef properties[] = {
    {"shape", get_shape, NULL, "The sizes of the axes.", NULL},
    {"ndim", get_ndim, NULL, "How many axes there are.", NULL},
    {"size", get_size, NULL, "How many elements there are.", NULL},
    {"nbytes", get_nbytes, NULL, "Bytes of all elements.", NULL},
    {"dtype", get_dtype, NULL, "The type of the elements.", NULL},
    {"device", get_device, NULL, "Where it is.", NULL},
    {"T", get_transposed, NULL, "All axes in reverse.", NULL},
    {"mT", get_matrix_transposed, NULL, "The last two axes exchanged.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

enum { MOST_METHODS = 512 };
static PyMethodDef methods[MOST_METHODS];

static PyMemberDef members[] = {PY_WEAK_AT(Array), {NULL, 0, 0, 0, NULL}};

bool py_add_array(PyObject *module) {
    int count = 0;
    PyMethodDef *const lists[] = {own_methods, py_exchange_methods, py_array_methods};
    for (int k = 0; k < 3; k++)
        for (PyMethodDef *m = lists[k]; m->ml_name && count < MOST_METHODS - 1; m++)
            methods[count++] = *m;
    PyType_Slot slots[] = {
        {Py_tp_dealloc, array_dealloc},
        {Py_tp_doc, "Numbers of one type; array(), zeros() and others make one."},
        {Py_tp_getset, properties},
        {Py_tp_methods, methods},
        {Py_tp_members, members},
        {Py_tp_richcompare, compare},
        {Py_tp_hash, PyObject_HashNotImplemented},
        {Py_bf_getbuffer, py_array_getbuffer},
        {Py_bf_releasebuffer, py_array_releasebuffer},
        {Py_nb_add, add},
        {Py_nb_subtract, subtract},
        {Py_nb_multiply, multiply},
        {Py_nb_true_divide, divide},
        {Py_nb_floor_divide, floor_divide},
        {Py_nb_remainder, remain},
        {Py_nb_power, power},
        {Py_nb_matrix_multiply, matmul},
        {Py_nb_and, and_},
        {Py_nb_or, or_},
        {Py_nb_xor, xor_},
        {Py_nb_negative, negative},
        {Py_nb_positive, positive},
        {Py_nb_absolute, absolute},
        {Py_nb_invert, invert},
        {Py_nb_float, as_float},
        {Py_nb_int, as_int},
        {Py_nb_index, as_index},
        {Py_nb_bool, as_bool},
        {Py_mp_subscript, py_subscript},
        {Py_mp_ass_subscript, no_assignment},
        {Py_mp_length, length},
        {Py_sq_length, length},
        {Py_sq_item, element},
        {0, NULL}};
    Array_type =
        py_new_type(module, "weber.Array", sizeof(Array), Py_TPFLAGS_DISALLOW_INSTANTIATION, slots);
    return Array_type && py_add_functions(module, functions);
}
