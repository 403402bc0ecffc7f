/* The lines of the log for a function of Python's.
 *
 * Weber logs from any thread and in the midst of any call, where Python's code cannot run: lines
 * wait until a call ends. */
#include <stdlib.h>

#include "binding.h"

typedef struct line {
    struct line *next;
    wb_log_level level;
    char text[];
} line;
static line *lines; /* __atomic; the last one first */
static PyObject *receiver;

static void keep_line(void *context, wb_log_level level, const char *text) {
    (void)context;
    const size_t bytes = strlen(text) + 1;
    line *l = malloc(sizeof *l + bytes);
    if (!l) return;
    l->level = level;
    memcpy(l->text, text, bytes);
    l->next = __atomic_load_n(&lines, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&lines, &l->next, l, false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED)) {
    }
}

static line *taken_in_order(void) {
    line *l = __atomic_exchange_n(&lines, NULL, __ATOMIC_ACQUIRE), *first = NULL;
    while (l) {
        line *next = l->next;
        l->next = first, first = l;
        l = next;
    }
    return first;
}

void py_tell_log(void) {
    if (!__atomic_load_n(&lines, __ATOMIC_RELAXED)) return;
    static const char *const levels[] = {"error", "warn", "info", "debug"};
    PyObject *type, *value, *trace, *function = Py_XNewRef(receiver);
    PyErr_Fetch(&type, &value, &trace);
    for (line *l = taken_in_order(), *next; l; l = next) {
        next = l->next;
        PyObject *text = PyUnicode_DecodeUTF8(l->text, (Py_ssize_t)strlen(l->text), "replace");
        PyObject *args = text ? Py_BuildValue("(sN)", levels[l->level], text) : NULL;
        PyObject *done = args && function ? PyObject_Call(function, args, NULL) : NULL;
        if (PyErr_Occurred()) PyErr_WriteUnraisable(function);
        Py_XDECREF(args), Py_XDECREF(done);
        free(l);
    }
    Py_XDECREF(function);
    PyErr_Restore(type, value, trace);
}

/* _log_to(function): None is standard error. */
static PyObject *log_to(PyObject *module, PyObject *function) {
    (void)module;
    py_enter();
    py_leave(); /* earlier lines are for the receiver before */
    PyObject *before = receiver;
    receiver = function == Py_None ? NULL : Py_NewRef(function);
    wb_log_to(receiver ? keep_line : NULL, NULL);
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"_log_to", log_to, METH_O, NULL}, {NULL, NULL, 0, NULL}};

bool py_add_log(PyObject *module) { return py_add_functions(module, functions); }
