/* Weber's errors as exceptions, and exceptions in functions that Weber calls as errors. */
#include "binding.h"

static PyObject *error_type, *types[32];
static PyObject *translator; /* of the package; NULL before it is imported */

static PyObject *set_translator(PyObject *module, PyObject *function) {
    (void)module;
    Py_XDECREF(translator);
    translator = Py_NewRef(function);
    Py_RETURN_NONE;
}

/* The text of an error in Python's words; takes over the text. */
static PyObject *translated(PyObject *text) {
    PyObject *better =
        text && translator ? PyObject_CallFunctionObjArgs(translator, text, NULL) : NULL;
    if (!better) return PyErr_Clear(), text;
    Py_DECREF(text);
    return better;
}

/* The exception of a callback, until the call that it was in fails. */
static _Thread_local PyObject *kept_type, *kept_value, *kept_trace;

void py_keep_exception(void) {
    if (!kept_type) PyErr_Fetch(&kept_type, &kept_value, &kept_trace);
    PyErr_Clear();
    (void)wb_fail(WB_ERROR_ARGUMENT, "a Python function raised an exception");
}

PyObject *py_raise(void) {
    char text[2048];
    PyObject *type = kept_type, *value = kept_value, *trace = kept_trace;
    kept_type = kept_value = kept_trace = NULL;
    const wb_status status = wb_take_error(text, sizeof text);
    if (PyErr_Occurred()) {
        Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(trace);
    } else if (type) {
        PyErr_Restore(type, value, trace);
    } else {
        PyObject *of_status = (size_t)status < sizeof types / sizeof *types ? types[status] : NULL;
        const char *message = status ? text : "a call failed without a message";
        /* names of files may be any bytes, and a long text is cut anywhere */
        PyObject *readable = PyUnicode_DecodeUTF8(message, (Py_ssize_t)strlen(message), "replace");
        readable = translated(readable);
        if (readable) PyErr_SetObject(of_status ? of_status : error_type, readable);
        Py_XDECREF(readable);
    }
    return NULL;
}

PyObject *py_fail(void) {
    py_close();
    return py_raise();
}

static const struct {
    wb_status status;
    const char *name;
    PyObject **base;
} rows[] = {
    {WB_ERROR_ARGUMENT, "ArgumentError", &PyExc_ValueError},
    {WB_ERROR_SHAPE, "ShapeError", &PyExc_ValueError},
    {WB_ERROR_DTYPE, "DTypeError", &PyExc_TypeError},
    {WB_ERROR_MEMORY, "OutOfMemoryError", &PyExc_MemoryError},
    {WB_ERROR_IO, "FileError", NULL}, /* OSError's objects cannot be RuntimeError's, too */
    {WB_ERROR_FORMAT, "FormatError", &PyExc_ValueError},
    {WB_ERROR_DEVICE, "DeviceError", NULL},
    {WB_ERROR_UNSUPPORTED, "UnsupportedError", &PyExc_NotImplementedError},
    {WB_ERROR_GRADIENT, "GradientError", NULL},
    {WB_ERROR_NUMBER, "NumberError", &PyExc_ArithmeticError},
    {WB_ERROR_LOST, "LostError", NULL},
    {WB_ERROR_INTERNAL, "InternalError", NULL},
};

static PyMethodDef functions[] = {{"_set_translator", set_translator, METH_O, NULL},
                                  {NULL, NULL, 0, NULL}};

bool py_add_errors(PyObject *module) {
    if (!py_add_functions(module, functions)) return false;
    error_type = PyErr_NewExceptionWithDoc("weber.Error", "The base of all of Weber's errors.",
                                           PyExc_RuntimeError, NULL);
    if (!error_type || PyModule_AddObjectRef(module, "Error", error_type) < 0) return false;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char name[64];
        snprintf(name, sizeof name, "weber.%s", rows[i].name);
        PyObject *bases =
            rows[i].base ? PyTuple_Pack(2, error_type, *rows[i].base) : PyTuple_Pack(1, error_type);
        PyObject *type =
            bases ? PyErr_NewExceptionWithDoc(name, wb_status_text(rows[i].status), bases, NULL)
                  : NULL;
        Py_XDECREF(bases);
        if (!type || PyModule_AddObjectRef(module, rows[i].name, type) < 0) return false;
        types[rows[i].status] = type;
    }
    return true;
}
