/* Loops over sequences, what layers compute, files as trees, devices, memory, groups of processes.
 */
#include <stdio.h>
#include <stdlib.h>

#include "binding.h"

/* ---- tuples of arrays ---- */

static PyObject *tuple_of(Py_ssize_t count, wb_array *const *arrays) {
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t i = 0; tuple && i < count; i++)
        PyTuple_SetItem(tuple, i, py_wrap_array(wb_take(arrays[i])));
    return tuple;
}

/* The arrays of a tuple, given to the scope; false with an exception. */
static bool arrays_from(PyObject *tuple, Py_ssize_t count, wb_array **arrays, const char *what) {
    if (!tuple || !PyTuple_Check(tuple) || PyTuple_Size(tuple) != count) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_ValueError, "scan: the function returned %s that differ from before",
                         what);
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        wb_array *x = py_array(PyTuple_GetItem(tuple, i));
        if (!x || PyErr_Occurred()) return false;
        arrays[i] = wb_give(wb_take(x));
    }
    return true;
}

/* ---- scans ---- */

enum { MOST = 64 };
typedef struct loop {
    PyObject *body;
    Py_ssize_t carries, inputs, outputs;
} loop;

static void on_step(void *context, wb_array **carries, wb_array *const *inputs,
                    wb_array **outputs) {
    const loop *l = context;
    const py_inside inside = py_callback_begin();
    py_now->recording++;
    PyObject *c = tuple_of(l->carries, carries), *x = tuple_of(l->inputs, inputs);
    for (Py_ssize_t i = 0; i < l->carries; i++) carries[i] = NULL;
    PyObject *result = c && x ? PyObject_CallFunctionObjArgs(l->body, c, x, NULL) : NULL;
    if (result && arrays_from(PyTuple_GetItem(result, 0), l->carries, carries, "carries"))
        (void)arrays_from(PyTuple_GetItem(result, 1), l->outputs, outputs, "outputs");
    Py_XDECREF(c), Py_XDECREF(x), Py_XDECREF(result);
    if (PyErr_Occurred()) py_keep_exception();
    py_now->recording--;
    py_callback_end(inside);
}

/* _scan(body, carries, inputs, outputs, steps, reverse): body(carries, inputs) returns a pair of
 * tuples; outputs: how many there are. Returns carries and outputs in one tuple. */
static PyObject *scan(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module, (void)nargs;
    if (!py_open()) return NULL;
    const int64_t outputs = py_integer(args[3]), steps = py_integer(args[4]);
    const bool reverse = py_truth(args[5]);
    const py_array_list carries = py_arrays(args[1]), inputs = py_arrays(args[2]);
    wb_array *all[2 * MOST] = {NULL};
    if (!PyErr_Occurred() && (carries.count > MOST || outputs > MOST))
        PyErr_Format(PyExc_ValueError, "scan: at most %d carries and outputs", (int)MOST);
    for (int i = 0; i < carries.count && !PyErr_Occurred(); i++) all[i] = carries.at[i];
    loop l = {args[0], carries.count, inputs.count, (Py_ssize_t)outputs};
    if (!PyErr_Occurred())
        (void)wb_scan_make(on_step, &l, carries.count, all, inputs.count, inputs.at, (int)outputs,
                           all + carries.count, WB_DESC(scan, .steps = steps, .reverse = reverse));
    const int made = carries.count + (int)outputs;
    PyMem_Free(carries.at), PyMem_Free(inputs.at);
    return PyErr_Occurred() ? py_fail() : py_give_arrays(made, all);
}

/* ---- layers ---- */

static PyObject *activations(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module;
    if (nargs != 2) return PyErr_SetString(PyExc_TypeError, "activations(chain, x)"), NULL;
    if (!py_open()) return NULL;
    wb_layer *chain = py_layer(args[0]);
    wb_array *x = py_array(args[1]);
    const int64_t count = PyErr_Occurred() ? 0 : wb_chain_count(chain);
    wb_array **out = PyMem_Calloc((size_t)count + 1, sizeof *out);
    if (!out || PyErr_Occurred() || wb_failed()) return PyMem_Free(out), py_fail();
    const int64_t made = wb_activations(chain, x, count, out);
    PyObject *tuple = made == count ? py_give_arrays((int)made, out) : py_fail();
    PyMem_Free(out);
    return tuple;
}

static void on_watch(void *user, const char *path, wb_array *x, bool is_gradient) {
    const py_inside inside = py_callback_begin();
    PyObject *result = PyObject_CallFunction(user, "sNO", path, py_wrap_array(wb_take(x)),
                                             is_gradient ? Py_True : Py_False);
    Py_XDECREF(result);
    if (PyErr_Occurred()) py_keep_exception();
    py_callback_end(inside);
}
/* _watch(function or None): the caller keeps the function until the next call. */
static PyObject *watch(PyObject *module, PyObject *function) {
    (void)module;
    if (!py_open()) return NULL;
    wb_watch_layers(py_is_none(function) ? NULL : on_watch, function);
    return py_give_status(WB_OK);
}

/* apply_tree(model, x, ps, st): (y, the next st) */
static PyObject *apply_tree(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module;
    if (nargs != 4) return PyErr_SetString(PyExc_TypeError, "apply_tree(model, x, ps, st)"), NULL;
    if (!py_open()) return NULL;
    wb_layer *model = py_layer(args[0]), *ps = py_layer(args[2]), *st = py_layer(args[3]);
    wb_array *x = py_array(args[1]);
    if (PyErr_Occurred()) return py_fail();
    wb_layer *next = NULL;
    wb_array *y = wb_apply_tree(model, x, ps, st, &next);
    if (!y || wb_failed()) return wb_free(next), py_fail();
    PyObject *states = py_wrap_layer(next), *result = py_give_array(y);
    return states && result ? Py_BuildValue("(NN)", result, states)
                            : (Py_XDECREF(states), Py_XDECREF(result), NULL);
}

/* The sizes of inputs: args from `first` on are shapes. */
static wb_outputsize_desc inputs_of(PyObject *const *args, Py_ssize_t nargs, Py_ssize_t first) {
    wb_outputsize_desc desc = WB_DESC(outputsize, WB_NO_MORE);
    if (nargs - first > WB_MOST_ARRAYS)
        PyErr_Format(PyExc_ValueError, "at most %d shapes", (int)WB_MOST_ARRAYS);
    for (Py_ssize_t i = first; i < nargs && !PyErr_Occurred(); i++) {
        const py_list sizes = py_sizes(args[i]);
        memcpy(desc.inputs[i - first], sizes.at, sizeof(int64_t) * (size_t)sizes.count);
    }
    return desc;
}

/* summary(model, *shapes) */
static PyObject *summary(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module;
    if (nargs < 2) return PyErr_SetString(PyExc_TypeError, "summary(model, *shapes)"), NULL;
    if (!py_open()) return NULL;
    wb_layer *model = py_layer(args[0]);
    const wb_outputsize_desc desc = inputs_of(args, nargs, 1);
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = PyErr_Occurred() ? NULL : open_memstream(&text, &bytes);
    if (!file) return PyErr_Occurred() ? py_fail() : (PyErr_NoMemory(), py_fail());
    const wb_status status = wb_show_sizes_make(file, model, desc);
    (void)fclose(file);
    while (bytes && text[bytes - 1] == '\n') bytes--;
    PyObject *result = status != WB_OK || !text
                           ? py_fail()
                           : py_give_object(PyUnicode_DecodeUTF8(text, (Py_ssize_t)bytes, NULL));
    free(text);
    return result;
}

/* draw_model(path, model, *shapes) */
static PyObject *draw_model(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module;
    if (nargs < 3)
        return PyErr_SetString(PyExc_TypeError, "draw_model(path, model, *shapes)"), NULL;
    if (!py_open()) return NULL;
    const char *path = py_text(args[0]);
    wb_layer *model = py_layer(args[1]);
    const wb_outputsize_desc desc = inputs_of(args, nargs, 2);
    return PyErr_Occurred() ? py_fail() : py_give_status(wb_draw_model_make(path, model, desc));
}

/* ---- files as trees ---- */

static PyObject *value_of(const wb_file *file, const wb_record *record);

static PyObject *list_of(const wb_file *file, const wb_record *record) {
    PyObject *list = PyList_New(0);
    for (int64_t i = 0; list && i < wb_record_count(record); i++) {
        PyObject *value = value_of(file, wb_record_at(record, i));
        if (!value || PyList_Append(list, value) < 0) Py_CLEAR(list);
        Py_XDECREF(value);
    }
    return list;
}
static PyObject *dict_of(const wb_file *file, const wb_record *record) {
    PyObject *dict = PyDict_New();
    for (int64_t i = 0; dict && i < wb_record_count(record); i++) {
        const char *name = wb_record_name(record, i);
        PyObject *key = name ? PyUnicode_DecodeUTF8(name, (Py_ssize_t)strlen(name), "replace")
                             : PyUnicode_FromFormat("%lld", (long long)(i + 1));
        PyObject *value = key ? value_of(file, wb_record_at(record, i)) : NULL;
        if (!value || PyDict_SetItem(dict, key, value) < 0) Py_CLEAR(dict);
        Py_XDECREF(key), Py_XDECREF(value);
    }
    return dict;
}
static PyObject *value_within(const wb_file *file, const wb_record *record) {
    wb_array *x;
    switch (wb_record_kind_of(record)) {
    case WB_RECORD_BOOL:
        return PyBool_FromLong(wb_record_bool(record));
    case WB_RECORD_INTEGER:
        return PyLong_FromLongLong((long long)wb_record_integer(record));
    case WB_RECORD_REAL:
        return PyFloat_FromDouble(wb_record_real(record));
    case WB_RECORD_TEXT:
        return PyUnicode_FromString(wb_record_text(record));
    case WB_RECORD_ARRAY:
        x = wb_record_array(file, record);
        return x ? py_wrap_array(wb_take(x)) : NULL;
    case WB_RECORD_LIST:
        return list_of(file, record);
    case WB_RECORD_MAP:
    case WB_RECORD_STRUCT:
        return dict_of(file, record);
    default:
        return Py_NewRef(Py_None);
    }
}
static PyObject *value_of(const wb_file *file, const wb_record *record) {
    if (Py_EnterRecursiveCall(" in load_tree")) return NULL;
    PyObject *value = value_within(file, record);
    Py_LeaveRecursiveCall();
    return value;
}
static PyObject *load_tree(PyObject *module, PyObject *o) {
    (void)module;
    if (!py_open()) return NULL;
    const char *path = py_text(o);
    if (!path && !PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "load_tree needs a path");
    wb_file *file = path ? wb_open(path) : NULL;
    if (!file) return py_fail();
    PyObject *value = value_of(file, wb_file_root(file));
    wb_free(file);
    return py_give_object(value);
}

/* ---- devices and memory ---- */

static const wb_device *device_or_current(PyObject *o) {
    return py_is_none(o) ? wb_default_device() : py_device(o);
}
static bool device_argument(const char *name, PyObject *const *args, Py_ssize_t nargs,
                            PyObject *kwnames, PyObject **o) {
    static const char *const names[] = {"device"};
    const py_signature signature = {name, names, 1, 0, 1};
    return py_bind(&signature, args, nargs, kwnames, o);
}

static PyObject *memory_status(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                               PyObject *kwnames) {
    (void)module;
    PyObject *o;
    if (!device_argument("memory_status", args, nargs, kwnames, &o) || !py_open()) return NULL;
    const wb_device *device = device_or_current(o);
    if (PyErr_Occurred()) return py_fail();
    const wb_memory_info i = wb_memory_status(device);
    return py_give_object(Py_BuildValue(
        "{s:L,s:L,s:L,s:L,s:L}", "live", (long long)i.live, "cached", (long long)i.cached, "peak",
        (long long)i.peak, "workspace", (long long)i.workspace, "limit", (long long)i.limit));
}

static PyObject *memory_holders(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                                PyObject *kwnames) {
    (void)module;
    enum { CAPACITY = 256 };
    wb_memory_holder holders[CAPACITY];
    PyObject *o;
    if (!device_argument("memory_holders", args, nargs, kwnames, &o) || !py_open()) return NULL;
    const wb_device *device = device_or_current(o);
    if (PyErr_Occurred()) return py_fail();
    const int kinds = wb_memory_holders(device, CAPACITY, holders);
    PyObject *dict = PyDict_New();
    for (int i = 0; dict && i < kinds && i < CAPACITY; i++) {
        PyObject *pair =
            Py_BuildValue("(LL)", (long long)holders[i].arrays, (long long)holders[i].bytes);
        if (!pair || PyDict_SetItemString(dict, holders[i].tag, pair) < 0) Py_CLEAR(dict);
        Py_XDECREF(pair);
    }
    return py_give_object(dict);
}

static PyObject *device_properties(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                                   PyObject *kwnames) {
    (void)module;
    PyObject *o;
    if (!device_argument("device_properties", args, nargs, kwnames, &o) || !py_open()) return NULL;
    const wb_device *device = device_or_current(o);
    if (PyErr_Occurred()) return py_fail();
    const wb_properties p = wb_device_properties(device);
    return py_give_object(Py_BuildValue("{s:s,s:s,s:s,s:s,s:L,s:i,s:N,s:N}", "name", p.name,
                                        "driver", p.driver, "address", p.address, "uuid", p.uuid,
                                        "memory_bytes", (long long)p.memory_bytes, "compute_units",
                                        p.compute_units, "is_gpu", PyBool_FromLong(p.is_gpu),
                                        "has_f64", PyBool_FromLong(p.has_f64)));
}

/* ---- groups of processes ---- */

static PyObject *distributed_initialize(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                                        PyObject *kwnames) {
    (void)module;
    static const char *const names[] = {"transport", "devices", "choose_device"};
    static const py_signature signature = {"distributed_initialize", names, 3, 0, 1};
    PyObject *a[3];
    if (!py_bind(&signature, args, nargs, kwnames, a) || !py_open()) return NULL;
    wb_distributed_desc desc = WB_DESC(distributed, .transport = py_text(a[0]));
    int devices[MOST] = {0};
    const Py_ssize_t count = py_is_none(a[1]) ? 0 : PySequence_Size(a[1]);
    if (count > MOST) PyErr_Format(PyExc_ValueError, "at most %d devices", (int)MOST);
    for (Py_ssize_t i = 0; i < count && !PyErr_Occurred(); i++) {
        PyObject *item = PySequence_GetItem(a[1], i);
        devices[i] = item ? py_int(item) : 0;
        Py_XDECREF(item);
    }
    if (count > 0) desc.devices = devices, desc.device_count = (int)count;
    if (a[2]) desc.choose_device = py_truth(a[2]);
    if (PyErr_Occurred()) return py_fail();
    PyThreadState *others = PyEval_SaveThread();
    const wb_status status = wb_distributed_initialize_make(desc);
    PyEval_RestoreThread(others);
    return py_give_status(status);
}

static PyObject *synchronize(PyObject *module, PyObject *o) {
    (void)module;
    if (!py_open()) return NULL;
    const bool is_optimiser = PyObject_TypeCheck(o, Optimiser_type);
    void *object = is_optimiser ? ((Handle *)o)->object : (void *)py_layer(o);
    if (PyErr_Occurred()) return py_fail();
    PyThreadState *others = PyEval_SaveThread();
    const wb_status status = wb_synchronize(object);
    PyEval_RestoreThread(others);
    return py_give_status(status);
}

/* ---- a schedule that follows a score ---- */

/* _plateau(state, optimiser, score): state is a bytearray of a wb_plateau. */
static PyObject *plateau_step(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module, (void)nargs;
    if (!py_open()) return NULL;
    wb_optimiser *optimiser = py_handle(args[1], Optimiser_type);
    const double score = py_real(args[2]);
    if (PyErr_Occurred()) return py_fail();
    return py_give_status(
        wb_plateau_step((wb_plateau *)(void *)PyByteArray_AsString(args[0]), optimiser, score));
}
/* _plateau_state(factor, patience, threshold, cooldown, least) */
static PyObject *plateau_state(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module, (void)nargs;
    const wb_plateau p = WB_PLATEAU(.factor = py_real(args[0]), .patience = py_integer(args[1]),
                                    .threshold = py_real(args[2]), .cooldown = py_integer(args[3]),
                                    .least = py_real(args[4]));
    return PyErr_Occurred() ? NULL
                            : PyByteArray_FromStringAndSize((const char *)&p, (Py_ssize_t)sizeof p);
}

#define FAST(name, function, doc)                                                                  \
    { name, (PyCFunction)(void *)function, METH_FASTCALL, doc }
#define NAMED(name, function, doc)                                                                 \
    { name, (PyCFunction)(void *)function, METH_FASTCALL | METH_KEYWORDS, doc }
static PyMethodDef functions[] = {
    FAST("_scan", scan, NULL),
    {"_watch", watch, METH_O, NULL},
    FAST("_plateau", plateau_step, NULL),
    FAST("_plateau_state", plateau_state, NULL),
    FAST("activations", activations,
         "activations($module, chain, x)\n--\n\nThe results of a chain's layers, one after "
         "another."),
    FAST("apply_tree", apply_tree,
         "apply_tree($module, model, x, ps, st)\n--\n\n(model(x) with the arrays of the trees ps "
         "and st instead of its own, the states after the call): the model as a pure function, as "
         "in Lux. parameter_tree(model) and state_tree(model) make the first trees."),
    FAST("summary", summary,
         "summary($module, model, *shapes)\n--\n\nA text with a line for each layer: the shape of "
         "its result for inputs of these shapes, parameters, multiply-adds. Nothing is computed."),
    FAST("draw_model", draw_model,
         "draw_model($module, path, model, *shapes)\n--\n\nDraws the model as it is applied to "
         "inputs of these shapes: a .dot file, or .svg, .png and .pdf by the program dot."),
    {"load_tree", load_tree, METH_O,
     "load_tree($module, path)\n--\n\nWhat a file has, without a model: dicts, lists, arrays, "
     "numbers and texts. Of .bson, .safetensors, .npz and .npy."},
    NAMED("memory_status", memory_status,
          "memory_status($module, device=None)\n--\n\nBytes of a device's memory: live in arrays, "
          "cached for the next ones, workspace, the peak of live and workspace, and the limit (0: "
          "none)."),
    NAMED("memory_holders", memory_holders,
          "memory_holders($module, device=None)\n--\n\nWhich operations made the arrays that are "
          "alive: {name: (arrays, bytes)}."),
    NAMED("device_properties", device_properties,
          "device_properties($module, device=None)\n--\n\nName, driver, memory and others, as the "
          "driver reports them."),
    NAMED("distributed_initialize", distributed_initialize,
          "distributed_initialize($module, transport=None, *, devices=None, "
          "choose_device=True)\n--\n\nJoins the group of processes that `weber run` or mpiexec "
          "started. transport: 'local', 'MPI', 'NCCL', 'RCCL', or None for any that works. "
          "Without this call the first function that needs the group joins it; a process that "
          "was started alone is a group of one."),
    {"synchronize", synchronize, METH_O,
     "synchronize($module, object)\n--\n\nCopies to all ranks what a model or an optimiser has on "
     "rank 0."},
    {NULL, NULL, 0, NULL}};

bool py_add_tools(PyObject *module) { return py_add_functions(module, functions); }
