/* x[key] as NumPy's: integers, slices, ..., None, arrays of integers or bool. */
#include "binding.h"

/* What a key is for the axes of x. */
typedef struct part {
    enum { ONE, SLICE, NEW, LIST } kind;
    int dim;                   /* Weber's dimension of x that it is for; of NEW: none */
    int64_t start, stop, step; /* of a slice; start of a number */
    wb_array *list;            /* of a LIST: places, an integer array */
    bool is_whole;             /* a slice that takes everything */
} part;
enum { MOST_PARTS = 3 * WB_MAX_DIMS };
typedef struct key {
    part parts[MOST_PARTS];
    int count, lists;
} key;

static bool is_mask(PyObject *o) {
    return Py_TYPE(o) == Array_type && wb_dtype_of(((Array *)o)->x) == WB_BOOL;
}

/* The array that an entry of a key is, NULL: none. */
static wb_array *list_of(PyObject *o) {
    if (Py_TYPE(o) == Array_type && wb_ndim(((Array *)o)->x) == 0 &&
        wb_dtype_of(((Array *)o)->x) != WB_BOOL)
        return NULL;
    if (PyBool_Check(o)) {
        PyErr_SetString(PyExc_IndexError, "one bool is not an index: write None, or 0:0");
        return NULL;
    }
    if (PyIndex_Check(o) && Py_TYPE(o) != Array_type && !PyObject_CheckBuffer(o)) return NULL;
    wb_array *x = py_array(o);
    if (x && wb_dtype_is_float(wb_dtype_of(x))) {
        if (wb_count(x) == 0) return wb_cast(x, WB_I64); /* x[[]] */
        PyErr_SetString(PyExc_IndexError, "arrays in an index have integers or bool");
    }
    return x;
}

static int axes_of(PyObject *o) {
    if (o == Py_None || o == Py_Ellipsis) return 0;
    return is_mask(o) ? wb_ndim(((Array *)o)->x) : 1;
}

static void add_slice(key *k, int dim, int64_t size, PyObject *o) {
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(o, &start, &stop, &step) < 0) return;
    const Py_ssize_t count = PySlice_AdjustIndices((Py_ssize_t)size, &start, &stop, step);
    part *p = &k->parts[k->count++];
    *p = (part){.kind = SLICE, .dim = dim, .start = start, .stop = stop, .step = step};
    if (count == 0)
        p->start = p->stop = 0, p->step = 1;
    else if (step < 0 && stop < 0)
        p->stop = -1;
    p->is_whole = count == size && step == 1;
}

static void add_number(key *k, int dim, int64_t size, PyObject *o, int axis) {
    const int64_t given = py_integer(o), at = given < 0 ? given + size : given;
    if (PyErr_Occurred()) return;
    if (at < 0 || at >= size)
        PyErr_Format(PyExc_IndexError, "index %lld is out of range for axis %d of size %lld",
                     (long long)given, axis, (long long)size);
    k->parts[k->count++] = (part){.kind = ONE, .dim = dim, .start = at};
}

/* A mask of several axes becomes one list of places for each. */
static void add_mask(key *k, const wb_array *x, int dim, wb_array *mask) {
    const int n = wb_ndim(mask);
    for (int i = 0; i < n; i++) /* as in NumPy, an empty mask is for any axes */
        if (wb_size(mask, n - 1 - i) && wb_size(mask, n - 1 - i) != wb_size(x, dim - i))
            PyErr_SetString(PyExc_IndexError, "a mask has the sizes of the axes that it is for");
    if (PyErr_Occurred()) return;
    wb_array *places = wb_where(mask); /* (ndim, count), Weber's first dimension first */
    for (int i = 0; places && i < n; i++) {
        wb_array *one = wb_reshape(wb_slice(places, 0, n - 1 - i, n - i, 1), -1);
        k->parts[k->count++] = (part){.kind = LIST, .dim = dim - i, .list = one};
        k->lists++;
    }
}

static void add_list(key *k, const wb_array *x, int dim, wb_array *list) {
    if (wb_dtype_of(list) == WB_BOOL) {
        add_mask(k, x, dim, list);
        return;
    }
    const double size = (double)wb_size(x, dim);
    wb_array *places = wb_cast(list, WB_I64);
    places = (wb_select)((wb_lt)(places, wb_number(0)), (wb_add)(places, wb_number(size)), places);
    k->parts[k->count++] = (part){.kind = LIST, .dim = dim, .list = places};
    k->lists++;
}

static key read_key(wb_array *x, PyObject *keys) {
    key k = {0};
    const int n = wb_ndim(x);
    const Py_ssize_t given = PyTuple_Size(keys);
    int used = 0, added = 0, dots = 0, axis = 0;
    wb_array *lists[MOST_PARTS] = {NULL};
    if (given > MOST_PARTS) return PyErr_SetString(PyExc_IndexError, "too many indices"), k;
    for (Py_ssize_t i = 0; i < given; i++) {
        PyObject *o = PyTuple_GetItem(keys, i);
        dots += o == Py_Ellipsis, added += o == Py_None;
        if (o == Py_Ellipsis || o == Py_None) continue;
        if (!PySlice_Check(o)) lists[i] = list_of(o);
        if (PyErr_Occurred()) return k;
        used += lists[i] && wb_dtype_of(lists[i]) == WB_BOOL ? wb_ndim(lists[i]) : axes_of(o);
    }
    if (dots > 1) return PyErr_SetString(PyExc_IndexError, "an index has one ... at most"), k;
    if (added > WB_MAX_DIMS) /* a mask may become a part for each axis: they fit MOST_PARTS */
        return PyErr_Format(PyExc_IndexError, "more than %d axes", (int)WB_MAX_DIMS), k;
    if (used > n) {
        PyErr_Format(PyExc_IndexError, "%d indices for an array of %d axes", used, n);
        return k;
    }
    for (Py_ssize_t i = 0; i < given && !PyErr_Occurred() && !wb_failed(); i++) {
        PyObject *o = PyTuple_GetItem(keys, i);
        const int dim = n - 1 - axis;
        if (o == Py_Ellipsis) {
            axis += n - used;
        } else if (o == Py_None) {
            k.parts[k.count++] = (part){.kind = NEW, .dim = dim + 1};
        } else if (PySlice_Check(o)) {
            add_slice(&k, dim, wb_size(x, dim), o), axis++;
        } else if (lists[i]) {
            add_list(&k, x, dim, lists[i]);
            axis += wb_dtype_of(lists[i]) == WB_BOOL ? wb_ndim(lists[i]) : 1;
        } else {
            add_number(&k, dim, wb_size(x, dim), o, axis), axis++;
        }
    }
    return k;
}

/* ---- reading ---- */

static wb_array *sliced(wb_array *x, const key *k) {
    for (int i = 0; i < k->count && x; i++) {
        const part *p = &k->parts[i];
        if (p->kind == SLICE && !p->is_whole)
            x = wb_slice(x, p->dim, p->start, p->stop == -1 && p->step > 0 ? 0 : p->stop, p->step);
        else if (p->kind == ONE)
            x = wb_slice(x, p->dim, p->start, p->start + 1, 1);
    }
    return x;
}

/* Drops the dimensions of numbers, and adds the new ones. */
static wb_array *shaped(wb_array *x, const key *k) {
    if (!x) return NULL;
    bool drops[WB_MAX_DIMS + 1] = {false};
    int added[WB_MAX_DIMS + 1] = {0};
    for (int i = 0; i < k->count; i++) {
        if (k->parts[i].kind == ONE) drops[k->parts[i].dim] = true;
        if (k->parts[i].kind == NEW) added[k->parts[i].dim]++;
    }
    int64_t sizes[MOST_PARTS + WB_MAX_DIMS];
    int count = 0;
    for (int dim = 0; dim <= wb_ndim(x); dim++) {
        for (int j = 0; j < added[dim]; j++) sizes[count++] = 1;
        if (dim < wb_ndim(x) && !drops[dim]) sizes[count++] = wb_size(x, dim);
    }
    if (count > WB_MAX_DIMS) return (void)wb_fail(WB_ERROR_SHAPE, "more than 8 axes"), NULL;
    return wb_reshape_make(x, count, sizes);
}

/* Several lists: their dimensions become one, the last; a list of places in it is gathered. The
 * result's dimensions of the list stand where the lists stood if these stood side by side, else
 * first (of Python's axes), as in NumPy. */
static wb_array *gathered(wb_array *x, const key *k) {
    const int n = wb_ndim(x);
    int64_t order[WB_MAX_DIMS], sizes[WB_MAX_DIMS];
    bool is_listed[WB_MAX_DIMS] = {false};
    int kept = 0, listed = 0, first = -1, last = -1;
    for (int i = 0; i < k->count; i++) {
        if (k->parts[i].kind != LIST) continue;
        is_listed[k->parts[i].dim] = true;
        if (first < 0) first = i;
        last = i;
    }
    bool is_adjacent = true;
    for (int i = first; i <= last; i++) is_adjacent = is_adjacent && k->parts[i].kind == LIST;
    int below = 0; /* dimensions that stay, after the lists in Python's order */
    for (int dim = 0; dim < n; dim++)
        if (!is_listed[dim]) order[kept++] = dim, below += dim < k->parts[last].dim;
    for (int dim = 0; dim < n; dim++)
        if (is_listed[dim]) order[kept + listed++] = dim;
    wb_array *places = NULL;
    double stride = 1;
    for (int i = last; i >= first; i--) { /* fastest dimension first */
        if (k->parts[i].kind != LIST) continue;
        wb_array *part = (wb_mul)(k->parts[i].list, wb_number(stride));
        places = places ? (wb_add)(places, part) : part;
        stride *= (double)wb_size(x, k->parts[i].dim);
    }
    if (!places) return NULL;
    for (int i = 0; i < kept; i++) sizes[i] = wb_size(x, (int)order[i]);
    sizes[kept] = -1;
    if (wb_count(x) == 0) sizes[kept] = (int64_t)stride;
    x = wb_permute_make(x, n, order);
    x = x ? wb_reshape_make(x, kept + 1, sizes) : NULL;
    wb_array *y = wb_gather(x, places, kept);
    if (!y || !is_adjacent || below == kept) return y;
    const int m = wb_ndim(places);
    for (int i = 0; i < below; i++) order[i] = i;
    for (int i = 0; i < m; i++) order[below + i] = kept + i;
    for (int i = below; i < kept; i++) order[m + i] = i;
    return wb_permute_make(y, kept + m, order);
}

static wb_array *indexed(wb_array *x, const key *given) {
    if (!given->lists) return shaped(sliced(x, given), given);
    key k = *given; /* beside lists numbers are lists, too */
    for (int i = 0; i < k.count; i++) {
        if (k.parts[i].kind == NEW) {
            (void)wb_fail(WB_ERROR_UNSUPPORTED, "None beside an array in an index: index twice");
            return NULL;
        }
        if (k.parts[i].kind != ONE) continue;
        k.parts[i].kind = LIST;
        k.parts[i].list = wb_full_make(WB_I64, (double)k.parts[i].start, 0, NULL);
    }
    return gathered(sliced(x, &k), &k);
}

static PyObject *as_tuple(PyObject *o) {
    return PyTuple_Check(o) ? Py_NewRef(o) : PyTuple_Pack(1, o);
}

/* x[mask] of a mask without axes: x with a new first axis, of size 1 or 0. */
static PyObject *masked_whole(wb_array *x, wb_array *mask) {
    wb_array *y = wb_unsqueeze(x, wb_ndim(x));
    const double count = wb_item(mask);
    return py_give_array(y ? wb_slice(y, wb_ndim(x), 0, (int64_t)count, 1) : NULL);
}

PyObject *py_subscript(PyObject *self, PyObject *o) {
    if (!py_open()) return NULL;
    wb_array *x = ((Array *)self)->x;
    if (is_mask(o) && wb_ndim(((Array *)o)->x) == 0) return masked_whole(x, ((Array *)o)->x);
    PyObject *keys = as_tuple(o);
    if (!keys) return py_fail();
    const key k = read_key(x, keys);
    wb_array *y = PyErr_Occurred() || wb_failed() ? NULL : indexed(x, &k);
    Py_DECREF(keys);
    return PyErr_Occurred() ? py_fail() : py_give_array(y);
}

/* ---- replacing ---- */

/* The places of x's elements in memory that the key names. */
static wb_array *places_of(const wb_array *x, const key *k) {
    const int n = wb_ndim(x);
    wb_array *all = wb_reshape_make(wb_iota(WB_I64, 0, wb_count(x)), n, wb_sizes(x));
    return all ? indexed(all, k) : NULL;
}

wb_array *py_replaced(wb_array *x, PyObject *o, wb_array *y) {
    PyObject *keys = as_tuple(o);
    if (!keys || !x || !y) return Py_XDECREF(keys), NULL;
    const key k = read_key(x, keys);
    Py_DECREF(keys);
    if (PyErr_Occurred() || wb_failed()) return NULL;
    wb_array *places = places_of(x, &k);
    if (!places) return NULL;
    y = wb_expand_make(wb_cast(y, wb_dtype_of(x)), wb_ndim(places), wb_sizes(places));
    if (!y) return NULL;
    const int64_t count = wb_count(x), given = wb_count(places);
    if (given == 0) return x;
    /* which new element, from 1, comes to each place: the last one where several do; 0: none */
    wb_array *none = wb_full_make(WB_I64, 0, 1, &count);
    wb_array *order = (wb_add)(wb_iota_make(WB_I64, 0, 1, &given), wb_number(1));
    wb_array *which = wb_scatter_max(none, wb_reshape(places, -1), order, 0);
    if (!which) return NULL;
    wb_array *row = (wb_max)((wb_sub)(which, wb_number(1)), wb_number(0));
    wb_array *put = wb_gather(wb_reshape(y, -1), row, 0);
    wb_array *flat = (wb_select)((wb_gt)(which, wb_number(0)), put, wb_reshape(x, count));
    return flat ? wb_reshape_make(flat, wb_ndim(x), wb_sizes(x)) : NULL;
}
