/* Memory that is shared with others: buffers (NumPy, memoryview), DLPack (torch, JAX, CuPy), and
 * arrays from lists of numbers. */
#include <stdlib.h>

#include "binding.h"

/* ---- buffers of others ---- */

/* The element type of a buffer's format, -1: none. */
static int dtype_of_format(const char *format, Py_ssize_t itemsize) {
    if (*format == '@' || *format == '=' || *format == '<') format++;
    if (format[0] == '\0' || format[1] != '\0') return -1;
    switch (format[0]) {
    case 'f':
        return WB_F32;
    case 'd':
        return WB_F64;
    case 'e':
        return WB_F16;
    case '?':
        return WB_BOOL;
    case 'B':
        return WB_U8;
    case 'i':
    case 'l':
    case 'q':
        if (itemsize == 8) return WB_I64;
        return itemsize == 4 ? (int)WB_I32 : -1;
    default:
        return -1;
    }
}

wb_array *py_of_other_integers(const Py_buffer *view, const int64_t *sizes) {
    const char *format = view->format ? view->format : "B";
    if (*format == '@' || *format == '=' || *format == '<') format++;
    const bool is_signed = format[0] == 'b' || format[0] == 'h';
    const bool is_unsigned = format[0] && strchr("HILQ", format[0]);
    if ((!is_signed && !is_unsigned) || format[1] || view->itemsize > 8) return NULL;
    const int64_t count = view->len / view->itemsize;
    int64_t *numbers = PyMem_Calloc((size_t)count + 1, sizeof *numbers);
    if (!numbers) return (void)PyErr_NoMemory(), NULL;
    for (int64_t i = 0; i < count; i++) {
        const char *at = (const char *)view->buf + i * view->itemsize;
        uint64_t word = 0;
        memcpy(&word, at, (size_t)view->itemsize); /* little-endian */
        if (is_signed && view->itemsize == 1)
            numbers[i] = (int8_t)word;
        else if (is_signed)
            numbers[i] = (int16_t)word;
        else
            numbers[i] = (int64_t)word;
        if (numbers[i] < 0 && is_unsigned)
            PyErr_SetString(PyExc_OverflowError, "a number of type uint64 is above int64's");
    }
    wb_array *x = PyErr_Occurred() ? NULL : wb_from_make(WB_I64, numbers, view->ndim, sizes);
    PyMem_Free(numbers);
    return x && view->itemsize < 4 ? wb_cast(x, WB_I32) : x;
}

static void release_view(void *argument) {
    PyBuffer_Release(argument);
    PyMem_Free(argument);
}
static void view_is_unused(void *view, void *data) {
    (void)data;
    py_do_later(release_view, view); /* perhaps on a thread without the interpreter's lock */
}

/* An array over the buffer of o, or a copy. NULL with an exception or Weber's error. */
static wb_array *of_buffer(PyObject *o, bool copies) {
    Py_buffer *view = PyMem_Calloc(1, sizeof *view);
    if (!view) return (void)PyErr_NoMemory(), NULL;
    PyObject *dense = NULL;
    if (PyObject_GetBuffer(o, view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) < 0) {
        PyErr_Clear();
        dense = PyMemoryView_GetContiguous(o, PyBUF_READ, 'C');
        if (!dense || PyObject_GetBuffer(dense, view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) < 0) {
            Py_XDECREF(dense);
            PyMem_Free(view);
            return NULL;
        }
    }
    Py_XDECREF(dense); /* the view has it */
    const int dtype = dtype_of_format(view->format ? view->format : "B", view->itemsize);
    int64_t sizes[WB_MAX_DIMS];
    wb_array *x = NULL;
    if (view->ndim > WB_MAX_DIMS) {
        PyErr_Format(PyExc_ValueError, "at most %d axes, got %d", (int)WB_MAX_DIMS, view->ndim);
        release_view(view);
        return NULL;
    }
    for (int i = 0; i < view->ndim; i++) sizes[i] = view->shape[view->ndim - 1 - i];
    if (dtype >= 0 && !copies)
        return wb_borrow_make((wb_dtype)dtype, view->buf, view_is_unused, view, view->ndim, sizes);
    x = dtype >= 0 ? wb_from_make((wb_dtype)dtype, view->buf, view->ndim, sizes)
                   : py_of_other_integers(view, sizes);
    if (!x && !PyErr_Occurred() && !wb_failed())
        PyErr_Format(PyExc_TypeError,
                     "there is no element type for a buffer of format '%s'; convert it first",
                     view->format);
    release_view(view);
    return x;
}

/* ---- lists of numbers ---- */

/* Both forms of each number, since only the last one says which is wanted. */
typedef struct number {
    double real;
    int64_t whole;
} number;
typedef struct numbers {
    int ndim;
    int64_t sizes[WB_MAX_DIMS];             /* Python's order */
    bool has_float, has_integer, is_beyond; /* of what int64 holds */
    number *at;
    int64_t count, capacity;
} numbers;

static void add_number(numbers *n, PyObject *o) {
    if (n->count == n->capacity) {
        n->capacity = n->capacity ? 2 * n->capacity : 64;
        number *more = PyMem_Realloc(n->at, (size_t)n->capacity * sizeof *more);
        if (!more) {
            (void)PyErr_NoMemory();
            return;
        }
        n->at = more;
    }
    number *const v = &n->at[n->count++];
    v->real = PyFloat_AsDouble(o);
    if (!PyLong_Check(o)) {
        n->has_float = true;
        return;
    }
    int overflow = 0;
    v->whole = PyLong_AsLongLongAndOverflow(o, &overflow);
    n->is_beyond |= overflow != 0;
    n->has_integer |= !PyBool_Check(o);
}

static bool is_list(PyObject *o) { return PyList_Check(o) || PyTuple_Check(o); }

/* The numbers of nested lists; level: how deep. */
static void add_list(numbers *n, PyObject *o, int level) {
    if (!is_list(o)) {
        if (level == n->ndim)
            add_number(n, o);
        else
            PyErr_SetString(PyExc_ValueError, "the lists have different depths");
        return;
    }
    const Py_ssize_t count = PySequence_Size(o);
    if (level >= n->ndim || n->sizes[level] != count) {
        PyErr_SetString(PyExc_ValueError, "the lists have different lengths");
        return;
    }
    for (Py_ssize_t i = 0; i < count && !PyErr_Occurred(); i++) {
        PyObject *item = PySequence_GetItem(o, i);
        if (item) add_list(n, item, level + 1);
        Py_XDECREF(item);
    }
}

/* The numbers as an array; what a type is not given for gets Python's usual one. */
static wb_array *of_numbers(numbers *n, int dtype) {
    int64_t sizes[WB_MAX_DIMS];
    for (int i = 0; i < n->ndim; i++) sizes[i] = n->sizes[n->ndim - 1 - i];
    const bool is_whole = n->count && !n->has_float;
    if (dtype < 0) dtype = !is_whole ? WB_F32 : n->has_integer ? WB_I64 : WB_BOOL;
    const bool as_integers = is_whole && !wb_dtype_is_float((wb_dtype)dtype);
    if (as_integers && n->is_beyond) {
        PyErr_SetString(PyExc_OverflowError, "an integer is beyond those of int64");
        return NULL;
    }
    double *reals = (void *)n->at; /* in the same memory: each is written behind what is read */
    int64_t *integers = (void *)n->at;
    for (int64_t i = 0; i < n->count; i++) {
        const number v = n->at[i];
        if (as_integers)
            integers[i] = v.whole;
        else
            reals[i] = v.real;
    }
    const double nothing = 0;
    const void *data = n->at ? (const void *)n->at : &nothing;
    wb_array *x = wb_from_make(as_integers ? WB_I64 : WB_F64, data, n->ndim, sizes);
    return x ? (wb_cast)(x, (wb_dtype)dtype) : NULL;
}

static wb_array *of_list(PyObject *o, int dtype) {
    numbers n = {0};
    PyObject *first = Py_NewRef(o);
    while (first && is_list(first)) {
        if (n.ndim == WB_MAX_DIMS) {
            Py_DECREF(first);
            return PyErr_SetString(PyExc_ValueError, "lists are nested more than 8 deep"), NULL;
        }
        n.sizes[n.ndim++] = PySequence_Size(first);
        PyObject *next = n.sizes[n.ndim - 1] ? PySequence_GetItem(first, 0) : NULL;
        Py_DECREF(first);
        first = next;
    }
    Py_XDECREF(first);
    add_list(&n, o, 0);
    wb_array *x = PyErr_Occurred() ? NULL : of_numbers(&n, dtype);
    PyMem_Free(n.at);
    return x;
}

/* A list that holds arrays is stacked. */
static bool has_arrays(PyObject *o) {
    if (!is_list(o) || PySequence_Size(o) == 0) return false;
    PyObject *first = PySequence_GetItem(o, 0);
    const bool found = first && !is_list(first) && !PyFloat_Check(first) && !PyLong_Check(first) &&
                       (Py_TYPE(first) == Array_type || PyObject_CheckBuffer(first));
    Py_XDECREF(first);
    return found;
}
static wb_array *stacked(PyObject *o) {
    const py_array_list list = py_arrays(o);
    wb_array *x = NULL;
    bool is_even = true;
    for (int i = 1; i < list.count && !PyErr_Occurred(); i++)
        is_even = is_even && wb_ndim(list.at[i]) == wb_ndim(list.at[0]);
    if (!is_even) PyErr_SetString(PyExc_ValueError, "the arrays of a list have different axes");
    if (!PyErr_Occurred() && list.count)
        x = wb_stack_make(wb_ndim(list.at[0]), list.count, list.at);
    PyMem_Free(list.at);
    return x;
}

wb_array *py_array_of(PyObject *o, bool copies, int dtype) {
    if (PyErr_Occurred()) return NULL;
    if (Py_TYPE(o) == Array_type) return ((Array *)o)->x;
    if (PyObject_CheckBuffer(o)) return of_buffer(o, copies);
    if (has_arrays(o)) return stacked(o);
    if (is_list(o) || PyFloat_Check(o) || PyLong_Check(o)) return of_list(o, dtype);
    PyObject *a = NULL;
    if (Py_TYPE(o) == &PyRange_Type) {
        a = PySequence_List(o);
    } else if (PyObject_HasAttrString(o, "__array__")) {
        a = PyObject_CallMethod(o, "__array__", NULL);
    } else if (py_is_arrow(o)) {
        wb_array *x = py_of_arrow(o);
        return x && copies ? wb_copy(x) : x;
    } else if (PyIndex_Check(o)) {
        a = PyNumber_Index(o);
    } else if (PyObject_HasAttrString(o, "__float__")) {
        a = PyNumber_Float(o);
    } else {
        PyErr_Format(PyExc_TypeError, "%R is not an array, a number or a list of numbers",
                     (PyObject *)Py_TYPE(o));
    }
    wb_array *x = NULL;
    if (a) x = PyObject_CheckBuffer(a) ? of_buffer(a, true) : of_list(a, dtype);
    Py_XDECREF(a);
    return x;
}

/* ---- Weber's memory for others ---- */

/* The numbers of an array in the CPU's memory, until wb_read_end. NULL with an exception. */
static const void *begin_reading(wb_array *x) {
    if (!py_open()) return NULL;
    PyThreadState *others = PyEval_SaveThread();
    const void *data = wb_read_begin(x);
    PyEval_RestoreThread(others);
    py_close(); /* of a view a copy was made */
    return data ? data : (py_raise(), NULL);
}
static void end_reading(wb_array *x) {
    py_enter();
    wb_read_end(x);
    py_leave();
}

static const char *const formats[] = {"f", "d", "e", NULL, "i", "q", "B", "?"};
typedef struct dims {
    Py_ssize_t shape[WB_MAX_DIMS], strides[WB_MAX_DIMS];
} dims;

int py_array_getbuffer(PyObject *self, Py_buffer *view, int flags) {
    wb_array *x = ((Array *)self)->x;
    py_enter();
    const wb_dtype dtype = wb_dtype_of(x);
    const int n = wb_ndim(x);
    py_leave();
    view->obj = NULL;
    if (flags & PyBUF_WRITABLE) {
        PyErr_SetString(PyExc_BufferError, "arrays are read only; numpy.array(x) copies");
        return -1;
    }
    if (!formats[dtype]) {
        PyErr_SetString(PyExc_BufferError,
                        "buffers have no format for bfloat16: x.astype('float32')");
        return -1;
    }
    if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && n > 1) {
        PyErr_SetString(PyExc_BufferError, "the last axis is the fastest in memory");
        return -1;
    }
    dims *d = PyMem_Calloc(1, sizeof *d);
    if (!d) return (void)PyErr_NoMemory(), -1;
    const void *data = begin_reading(x);
    if (!data) {
        PyMem_Free(d);
        return -1;
    }
    Py_ssize_t stride = (Py_ssize_t)wb_dtype_size(dtype);
    *view = (Py_buffer){.buf = (void *)(uintptr_t)data,
                        .obj = Py_NewRef(self),
                        .itemsize = stride,
                        .readonly = 1,
                        .ndim = n,
                        .format = flags & PyBUF_FORMAT ? (char *)(uintptr_t)formats[dtype] : NULL,
                        .shape = flags & PyBUF_ND ? d->shape : NULL,
                        .strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? d->strides : NULL,
                        .internal = d};
    py_enter();
    for (int i = n - 1; i >= 0; i--) {
        d->shape[i] = (Py_ssize_t)wb_size(x, n - 1 - i);
        d->strides[i] = stride;
        stride *= d->shape[i];
    }
    py_leave();
    view->len = stride;
    return 0;
}

static void end_view(void *array) {
    end_reading(((Array *)array)->x);
    Py_DECREF((PyObject *)array);
}

/* A finaliser, which must not wait for another thread's training. */
void py_array_releasebuffer(PyObject *self, Py_buffer *view) {
    PyMem_Free(view->internal);
    if (py_is_outside())
        py_do_later(end_view, Py_NewRef(self));
    else
        end_reading(((Array *)self)->x);
}

/* ---- DLPack (dmlc.github.io/dlpack, version 1) ---- */

typedef struct dl_tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    struct {
        uint8_t code, bits;
        uint16_t lanes;
    } dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} dl_tensor;
typedef struct dl_managed {
    dl_tensor tensor;
    void *manager;
    void (*deleter)(struct dl_managed *);
} dl_managed;
typedef struct dl_versioned {
    struct {
        uint32_t major, minor;
    } version;
    void *manager;
    void (*deleter)(struct dl_versioned *);
    uint64_t flags;
    dl_tensor tensor;
} dl_versioned;
enum { DL_CPU = 1, DL_CUDA_HOST = 3, DL_READ_ONLY = 1 };

static const struct {
    uint8_t code, bits;
} dl_types[WB_DTYPE_COUNT] = {{2, 32}, {2, 64}, {2, 16}, {4, 16}, {0, 32}, {0, 64}, {1, 8}, {6, 8}};

/* What an exported array needs until its user has done with it. */
typedef struct exported {
    dl_versioned versioned;
    dl_managed managed;
    int64_t shape[WB_MAX_DIMS], strides[WB_MAX_DIMS];
    PyObject *array;
} exported;

static void end_export(void *argument) {
    exported *e = argument;
    end_view(e->array);
    free(e);
}
static void versioned_unused(dl_versioned *v) { py_do_later(end_export, v->manager); }
static void managed_unused(dl_managed *m) { py_do_later(end_export, m->manager); }

/* Nobody has taken the capsule's array. */
static void versioned_capsule_ends(PyObject *capsule) {
    dl_versioned *v = PyCapsule_IsValid(capsule, "dltensor_versioned")
                          ? PyCapsule_GetPointer(capsule, "dltensor_versioned")
                          : NULL;
    if (v) v->deleter(v);
}
static void managed_capsule_ends(PyObject *capsule) {
    dl_managed *m =
        PyCapsule_IsValid(capsule, "dltensor") ? PyCapsule_GetPointer(capsule, "dltensor") : NULL;
    if (m) m->deleter(m);
}

static PyObject *dlpack(PyObject *self, PyObject *args, PyObject *kwargs) {
    (void)args;
    wb_array *x = ((Array *)self)->x;
    PyObject *version = kwargs ? PyDict_GetItemString(kwargs, "max_version") : NULL;
    PyObject *major = py_is_none(version) ? NULL : PySequence_GetItem(version, 0);
    const bool is_versioned = major && PyLong_AsLong(major) >= 1;
    Py_XDECREF(major);
    if (PyErr_Occurred()) return NULL;
    exported *e = calloc(1, sizeof *e);
    if (!e) return PyErr_NoMemory();
    const void *data = begin_reading(x);
    if (!data) {
        free(e);
        return NULL;
    }
    py_enter();
    const int n = wb_ndim(x);
    const wb_dtype dtype = wb_dtype_of(x);
    int64_t stride = 1;
    for (int i = n - 1; i >= 0; i--) {
        e->shape[i] = wb_size(x, n - 1 - i);
        e->strides[i] = stride;
        stride *= e->shape[i];
    }
    py_leave();
    e->array = Py_NewRef(self);
    const dl_tensor tensor = {.data = (void *)(uintptr_t)data,
                              .device_type = DL_CPU,
                              .ndim = n,
                              .dtype = {dl_types[dtype].code, dl_types[dtype].bits, 1},
                              .shape = e->shape,
                              .strides = e->strides};
    e->versioned = (dl_versioned){.version = {1, 0},
                                  .manager = e,
                                  .deleter = versioned_unused,
                                  .flags = DL_READ_ONLY,
                                  .tensor = tensor};
    e->managed = (dl_managed){.tensor = tensor, .manager = e, .deleter = managed_unused};
    return is_versioned ? PyCapsule_New(&e->versioned, "dltensor_versioned", versioned_capsule_ends)
                        : PyCapsule_New(&e->managed, "dltensor", managed_capsule_ends);
}

static PyObject *dlpack_device(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    return Py_BuildValue("(ii)", DL_CPU, 0);
}

static void release_versioned(void *v) {
    if (((dl_versioned *)v)->deleter) ((dl_versioned *)v)->deleter(v);
}
static void release_managed(void *m) {
    if (((dl_managed *)m)->deleter) ((dl_managed *)m)->deleter(m);
}
static void versioned_is_unused(void *v, void *data) {
    (void)data;
    py_do_later(release_versioned, v);
}
static void managed_is_unused(void *m, void *data) {
    (void)data;
    py_do_later(release_managed, m);
}

static PyObject *capsule_of(PyObject *o) {
    PyObject *f = PyObject_GetAttrString(o, "__dlpack__");
    if (!f) return NULL;
    PyObject *none = PyTuple_New(0), *named = Py_BuildValue("{s:(ii)}", "max_version", 1, 0);
    PyObject *capsule = PyObject_Call(f, none, named);
    if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear(); /* it is older than max_version */
        capsule = PyObject_Call(f, none, NULL);
    }
    Py_XDECREF(none), Py_XDECREF(named), Py_DECREF(f);
    return capsule;
}

static bool is_dense(const dl_tensor *t) {
    int64_t stride = 1;
    for (int i = 0; i < t->ndim; i++)
        if (t->shape[i] == 0) return true;
    for (int i = t->ndim - 1; i >= 0; i--) {
        if (t->strides && t->shape[i] > 1 && t->strides[i] != stride) return false;
        stride *= t->shape[i];
    }
    return true;
}

PyObject *py_from_dlpack(PyObject *module, PyObject *o) {
    (void)module;
    PyObject *capsule = capsule_of(o);
    if (!capsule) return NULL;
    const bool is_versioned = PyCapsule_IsValid(capsule, "dltensor_versioned");
    void *managed = PyCapsule_GetPointer(capsule, is_versioned ? "dltensor_versioned" : "dltensor");
    if (!managed) return Py_DECREF(capsule), NULL;
    const dl_tensor *t =
        is_versioned ? &((dl_versioned *)managed)->tensor : &((dl_managed *)managed)->tensor;
    int dtype = WB_DTYPE_COUNT - 1;
    while (dtype >= 0 && (dl_types[dtype].code != t->dtype.code ||
                          dl_types[dtype].bits != t->dtype.bits || t->dtype.lanes != 1))
        dtype--;
    const char *why = t->device_type != DL_CPU && t->device_type != DL_CUDA_HOST
                          ? "the array is on another device than the CPU: copy it there first"
                      : t->ndim > WB_MAX_DIMS ? "at most 8 axes"
                      : dtype < 0             ? "there is no such element type"
                      : !is_dense(t)          ? "only arrays that are contiguous in memory"
                                              : NULL;
    if (why) {
        Py_DECREF(capsule);
        return PyErr_Format(PyExc_BufferError, "from_dlpack: %s", why);
    }
    int64_t sizes[WB_MAX_DIMS];
    for (int i = 0; i < t->ndim; i++) sizes[i] = t->shape[t->ndim - 1 - i];
    if (!py_open()) return Py_DECREF(capsule), NULL;
    (void)PyCapsule_SetName(capsule, is_versioned ? "used_dltensor_versioned" : "used_dltensor");
    Py_DECREF(capsule);
    wb_array *x = wb_borrow_make((wb_dtype)dtype, (char *)t->data + t->byte_offset,
                                 is_versioned ? versioned_is_unused : managed_is_unused, managed,
                                 t->ndim, sizes);
    return py_give_array(x);
}

PyMethodDef py_exchange_methods[] = {
    {"__dlpack__", (PyCFunction)(void *)dlpack, METH_VARARGS | METH_KEYWORDS, NULL},
    {"__dlpack_device__", dlpack_device, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};
