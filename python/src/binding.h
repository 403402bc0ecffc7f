/* What the parts of the Python module share.
 *
 * A call of a function of the module: py_open enters the interpreter's context and opens a scope,
 * the arguments are converted, and one of the py_give functions takes the result out of the scope,
 * closes it, and leaves the context. A conversion that fails sets an exception and returns
 * anything; whoever converts asks PyErr_Occurred once, after the last one, and then returns
 * py_fail().
 *
 * Sizes are reversed: Python's first axis is Weber's last dimension, and the memory is the same. */
#ifndef WEBER_PYTHON_BINDING_H
#define WEBER_PYTHON_BINDING_H

#define PY_SSIZE_T_CLEAN
#ifndef Py_GIL_DISABLED
#define Py_LIMITED_API 0x030B0000
#endif
#include <Python.h>
#include <stddef.h>
#include <string.h>
#include <structmember.h>
#include <weber.h>

/* weak: the references of weakref to the object, NULL at first. */
typedef struct Array {
    PyObject_HEAD wb_array *x;
    PyObject *weak;
} Array;

typedef struct Layer {
    PyObject_HEAD wb_layer *layer;
    PyObject *weak;
} Layer;

/* An optimiser, gradients, a schedule, a loader. `also` is what it needs: a Python object. */
typedef struct Handle {
    PyObject_HEAD void *object;
    PyObject *also;
    PyObject *weak;
} Handle;

/* made: ("Adam", the arguments, the names of the last of them), for printing and pickles. */
typedef struct Rule {
    PyObject_HEAD wb_rule rule;
    PyObject *made;
} Rule;

typedef struct Device {
    PyObject_HEAD const wb_device *device;
} Device;

extern PyTypeObject *Array_type, *Layer_type, *Optimiser_type, *Gradients_type, *Schedule_type,
    *Loader_type, *Rule_type, *Device_type;

/* ---- context.c: threads, and when objects are released ---- */

/* Waits until no other thread of the interpreter is in a call, enters the context and opens a
 * scope. False with an exception set. */
bool py_open(void);
/* May compute states that were written, and so leave an error of Weber's pending. */
void py_close(void);
/* The context without a scope, for reading and releasing. */
void py_enter(void);
void py_leave(void);

/* A context, and what holds in it. The interpreter's is for everything but shared models, which
 * have one each (share.c). */
typedef struct py_context {
    wb_context *context;
    struct py_context *next; /* of all */
    const char *holder;      /* __atomic; names the thread that is in it */
    int depth;               /* of that thread's calls */
    int waiting;             /* how many threads wait; changed with the GIL */
    /* while a function of Python's is being differentiated, results keep their recipes */
    int recording;
    /* an array of a model was replaced: the end of the outermost call computes it */
    bool has_written;
    int closes;
    wb_array *released; /* by Python, but not yet here */
    long long pending;  /* how many results were made since one was computed */
    /* what a Module is called with beside arrays (model.c) */
    const wb_layer *given_to;
    PyObject *given_args, *given_kwargs; /* borrowed */
} py_context;
/* The context of this thread's calls. */
extern _Thread_local py_context *py_now __attribute__((tls_model("initial-exec")));
/* Another context than the interpreter's; false with an exception. */
bool py_context_begin(py_context *context);
void py_context_end(py_context *context);
/* Whether this thread is in a call. */
bool py_is_inside(void);

/* Whether another thread is in the context, or this one has a context of its own. */
bool py_is_outside(void);
/* Releases an object of Weber's, at once or, where this thread cannot, in the next call. */
void py_release(void *object);
/* The same for an array, perhaps in the next call: entering a context for it would cost a third of
 * x + y. */
void py_release_array(wb_array *x);
/* Calls done(argument) in the next call, with the interpreter's lock; may be called by any thread
 * without it. */
void py_do_later(void (*done)(void *argument), void *argument);

/* In a function that Weber calls, perhaps on a thread of its own. */
typedef struct py_inside {
    PyGILState_STATE state;
} py_inside;
py_inside py_callback_begin(void);
void py_callback_end(py_inside inside);
/* The same on a thread of a loader, which has a context of its own. */
py_inside py_foreign_begin(void);
void py_foreign_end(py_inside inside);

/* How many results may be pending before one is computed; see weber.pending_limit. */
extern long long py_pending_limit;

bool py_add_context(PyObject *module);

/* ---- errors.c ---- */

/* Closes the call; NULL, with the exception that is set or Weber's pending error as one. */
PyObject *py_fail(void);
/* The pending error as an exception; NULL. */
PyObject *py_raise(void);
/* In a callback: keeps the exception that is set, and records an error of Weber's for it. */
void py_keep_exception(void);
bool py_add_errors(PyObject *module);

/* ---- results ---- */

PyObject *py_wrap_array(wb_array *x); /* takes over a reference */
PyObject *py_wrap_layer(wb_layer *layer);
PyObject *py_wrap(PyTypeObject *type, void *object, PyObject *also);

PyObject *py_give_array(wb_array *x);
PyObject *py_give_arrays(int count, wb_array *const *arrays); /* a tuple; NULL is None */
PyObject *py_give(PyTypeObject *type, void *object);
PyObject *py_give_status(wb_status status);
PyObject *py_give_rule(wb_rule rule, const char *maker, PyObject *const *args, Py_ssize_t nargs,
                       PyObject *kwnames);
PyObject *py_give_text(const char *text);
PyObject *py_give_texts(const char *const *texts);          /* a list; ended by NULL */
PyObject *py_give_devices(const wb_device *const *devices); /* likewise */
PyObject *py_give_device(const wb_device *device);
PyObject *py_give_object(PyObject *object); /* takes over a reference */

/* ---- arguments.c ---- */

typedef struct py_signature {
    const char *function;
    const char *const *names;
    int count, required, positional;
} py_signature;

/* Puts arguments in the order of the names; those that are not given are NULL. */
bool py_bind(const py_signature *signature, PyObject *const *args, Py_ssize_t nargs,
             PyObject *kwnames, PyObject **out);
/* The same for a function whose last parameter takes all further arguments: a new tuple, released
 * by py_layers. */
bool py_bind_rest(const char *function, int count, PyObject *const *args, Py_ssize_t nargs,
                  PyObject *kwnames, PyObject **out);
PyObject *py_takes_nothing(const char *function);
/* A new reference: the argument, or what this expression of Python's stands for. */
PyObject *py_usual(PyObject *o, const char *usual);

static inline bool py_is_none(PyObject *o) { return !o || o == Py_None; }

typedef struct py_list {
    int count;
    int64_t at[WB_MAX_DIMS];
} py_list;
typedef struct py_array_list {
    int count;
    wb_array **at;
} py_array_list;
typedef struct py_layer_list {
    int64_t count;
    wb_layer **at;
} py_layer_list;

wb_array *py_array(PyObject *o);           /* borrowed, or the scope's */
wb_layer *py_layer(PyObject *o);           /* borrowed */
wb_layer *py_layer_reference(PyObject *o); /* for what takes a layer over; else wb_free */
void *py_handle(PyObject *o, PyTypeObject *type);
wb_rule py_rule(PyObject *o);
const wb_device *py_device(PyObject *o);
double py_real(PyObject *o);
double py_given_real(PyObject *o, double otherwise);
int64_t py_integer(PyObject *o);
uint64_t py_unsigned(PyObject *o);
int py_int(PyObject *o);
bool py_truth(PyObject *o);
const char *py_text(PyObject *o);
wb_dtype py_dtype(PyObject *o);
bool py_is_dtype(PyObject *o);             /* one of the package's types, not only its name */
PyObject *py_dtype_object(wb_dtype dtype); /* a new reference */
int py_choice(PyObject *o, const char *const *names);
wb_activation *py_activation(PyObject *o);
wb_init *py_init(PyObject *o);
wb_connection *py_connection(PyObject *o);

/* Weber's dimension of an axis, of one of x, and the place of a new one among ndim others. */
int py_axis(PyObject *o);
int py_axis_of(PyObject *o, const wb_array *x);
int py_new_axis(PyObject *o, int ndim);
py_list py_axes(PyObject *o); /* reversed, as dimensions */
py_list py_axes_of(PyObject *o, const wb_array *x);
py_list py_sizes(PyObject *o);   /* reversed */
py_list py_numbers(PyObject *o); /* in their order */
py_array_list py_arrays(PyObject *o);
py_layer_list py_layers(PyObject *o); /* with a reference to each */

typedef enum py_kind {
    PY_ARRAY,
    PY_LAYER, /* a reference, which the function takes over */
    PY_LAYER_LENT,
    PY_REAL,
    PY_INT64,
    PY_INT,
    PY_UINT64,
    PY_BOOL,
    PY_TEXT,
    PY_TEXTS, /* one, or a list or tuple, which owns them */
    PY_DTYPE,
    PY_ACTIVATION,
    PY_INIT,
    PY_DEVICE,
    PY_RULE,
    PY_CHOICE,
    PY_AXIS,
    PY_AXES,    /* as bits */
    PY_SIZES,   /* reversed */
    PY_SCALES,  /* reversed */
    PY_NUMBERS, /* int64_t, in their order */
    PY_REALS,
    PY_PADDING,
} py_kind;

/* A member of a desc. */
typedef struct py_member {
    py_kind kind;
    int most; /* of lists */
    size_t offset;
    const char *name;
    const char *const *choices;
} py_member;
/* With an exception the desc has no references to layers any more. */
void py_fill(void *desc, const py_member *members, int count, PyObject *const *values);

typedef struct py_function_row {
    const char *name;
    void (*function)(void);
} py_function_row;
extern const py_function_row py_activations[], py_inits[], py_connections[];
bool py_add_arguments(PyObject *module);

/* ---- array.c, index.c, exchange.c, arrow.c ---- */

extern PyMethodDef py_generated[], py_array_methods[];
PyObject *py_method(PyObject *(*function)(PyObject *, PyObject *const *, Py_ssize_t, PyObject *),
                    PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);

/* A reduction over axes: the dimensions, and the sizes of the result without them. */
typedef struct py_reduced {
    py_list dims, left;
    bool drops;
} py_reduced;
py_reduced py_reduce(wb_array *x, PyObject *axis, PyObject *keepdims);
wb_array *py_drop(wb_array *y, const py_reduced *r);
/* y, the variances of x divided by n, or deviations, as if divided by n - correction. */
wb_array *py_corrected(wb_array *y, const py_reduced *r, wb_array *x, double correction,
                       bool is_deviation);
/* x in the type dtype; of sums, None. */
wb_array *py_of_type(wb_array *x, PyObject *dtype);

bool py_add_array(PyObject *module);

PyObject *py_subscript(PyObject *self, PyObject *key);
/* x with the elements at the key replaced. */
wb_array *py_replaced(wb_array *x, PyObject *key, wb_array *y);

/* Integers of types that Weber lacks, in the next one that holds them: int8, int16 and uint16 in
 * int32; uint32 and uint64 in int64. NULL: another format, or, with an exception, numbers above. */
wb_array *py_of_other_integers(const Py_buffer *view, const int64_t *sizes);
/* An array of anything: what exports a buffer, __array__ or Arrow's interface, a number, a list.
 * dtype: of numbers and lists, -1 for the usual one; arrays and buffers keep theirs. */
wb_array *py_array_of(PyObject *o, bool copies, int dtype);
int py_array_getbuffer(PyObject *self, Py_buffer *view, int flags);
void py_array_releasebuffer(PyObject *self, Py_buffer *view);
extern PyMethodDef py_exchange_methods[];
PyObject *py_from_dlpack(PyObject *module, PyObject *o);
/* Whether it has Arrow's interface, and its column without a copy, in the current scope. */
bool py_is_arrow(PyObject *o);
wb_array *py_of_arrow(PyObject *o);
PyObject *py_from_arrow(PyObject *module, PyObject *o);

/* ---- model.c, share.c, log.c, derivatives.c, train.c, data.c, files.c, tools.c, text.c, images.c
 * ---- */

/* The array that a function returns, given to the scope; NULL with the exception kept. Takes over
 * args. */
wb_array *py_array_of_call(PyObject *function, PyObject *args);
/* The same, but a number of Python's is an error: it does not depend on the model. */
wb_array *py_array_of_loss(PyObject *function, PyObject *args);

bool py_add_model(PyObject *module);
bool py_add_derivatives(PyObject *module);
bool py_add_train(PyObject *module);
bool py_add_data(PyObject *module);
bool py_add_share(PyObject *module);
bool py_add_log(PyObject *module);
/* Tells a function of Python's what was logged; may run any code. */
void py_tell_log(void);
bool py_add_files(PyObject *module);
bool py_add_tools(PyObject *module);
bool py_add_text(PyObject *module);
extern PyTypeObject *ImageFolder_type;
bool py_add_images(PyObject *module);

/* A Layer for a function of Python's: Chain(Dense(2, 3), lambda x: 2 * x). */
wb_layer *py_function_layer(PyObject *function);

/* ---- module.c ---- */

/* Adds the functions to the module, with the examples of weber/_examples.py. */
bool py_add_functions(PyObject *module, PyMethodDef *functions);
typedef struct py_example {
    const char *name, *text;
} py_example;
extern const py_example py_examples[];

PyTypeObject *py_new_type(PyObject *module, const char *name, size_t bytes, unsigned flags,
                          PyType_Slot *slots);
/* The type's weakrefs are at this offset of its objects; for Py_tp_members. */
#define PY_WEAK_AT(type)                                                                           \
    { "__weaklistoffset__", T_PYSSIZET, offsetof(type, weak), READONLY, NULL }
void py_handle_dealloc(PyObject *self);
void py_plain_dealloc(PyObject *self);

#endif
