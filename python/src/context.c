/* One context for all threads of the interpreter, and one for each shared model: which thread is in
 * a call, and what is released when.
 *
 * A thread is in a context from the beginning of a call to its end, also while it computes
 * without the interpreter's lock (the GIL) and in functions of Python's that Weber calls. Others
 * wait. */
#include <pthread.h>
#include <stdlib.h>

#include "binding.h"

long long py_pending_limit = 1000;

static py_context interpreter;
static py_context *all = &interpreter;
_Thread_local py_context *py_now = &interpreter;
#define OF_A_THREAD static _Thread_local __attribute__((tls_model("initial-exec")))
OF_A_THREAD char here;   /* its address names the thread */
OF_A_THREAD int foreign; /* in a function that a thread of Weber's own calls */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t is_free = PTHREAD_COND_INITIALIZER;

/* ---- what is released later ---- */

typedef struct task {
    struct task *next;
    void (*done)(void *argument);
    void *argument;
} task;
static task *tasks; /* __atomic */

void py_do_later(void (*done)(void *argument), void *argument) {
    task *t = malloc(sizeof *t);
    if (!t) return; /* lost: nothing else can be done in a finaliser */
    *t = (task){.done = done, .argument = argument};
    t->next = __atomic_load_n(&tasks, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&tasks, &t->next, t, false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED)) {
    }
}

static void do_tasks(void) {
    task *t = __atomic_exchange_n(&tasks, NULL, __ATOMIC_ACQUIRE);
    while (t) {
        task *next = t->next;
        t->done(t->argument);
        free(t);
        t = next;
    }
}

/* ---- who is in the context ---- */

static void wait_until_free(py_context *c) {
    c->waiting++;
    PyThreadState *state = PyEval_SaveThread();
    pthread_mutex_lock(&lock);
    while (__atomic_load_n(&c->holder, __ATOMIC_ACQUIRE)) pthread_cond_wait(&is_free, &lock);
    pthread_mutex_unlock(&lock);
    PyEval_RestoreThread(state);
    c->waiting--;
}

static void free_released(py_context *c) {
    wb_array *x = c->released;
    c->released = NULL;
    wb_free(x);
}

void py_enter(void) {
    if (foreign) return;
    py_context *c = py_now;
    if (c->holder == &here) {
        c->depth++;
        return;
    }
    while (c->holder) wait_until_free(c);
    __atomic_store_n(&c->holder, &here, __ATOMIC_RELAXED);
    c->depth = 1;
    (void)wb_context_enter(c->context);
    if (c->released) free_released(c); /* which may leave a task: memory of another library's */
    if (__atomic_load_n(&tasks, __ATOMIC_RELAXED)) do_tasks();
}

void py_leave(void) {
    py_context *c = py_now;
    if (foreign || --c->depth > 0) return;
    (void)wb_context_leave();
    if (c->waiting) {
        pthread_mutex_lock(&lock);
        __atomic_store_n(&c->holder, NULL, __ATOMIC_RELEASE);
        pthread_cond_broadcast(&is_free);
        pthread_mutex_unlock(&lock);
    } else {
        __atomic_store_n(&c->holder, NULL, __ATOMIC_RELEASE);
    }
    py_tell_log();
}

bool py_open(void) {
    py_enter();
    if (wb_scope_open() == WB_OK) return true;
    (void)py_raise();
    py_leave();
    return false;
}

void py_close(void) {
    /* Writes of states are settled when a scope closes; between, they hold what they replace. */
    enum { CLOSES = 256 };
    py_context *c = py_now;
    const bool is_last = c->depth == 1 && !foreign;
    const bool settles = is_last && !c->recording && (c->has_written || ++c->closes % CLOSES == 0);
    if (settles) c->has_written = false;
    (void)(settles ? wb_scope_close() : wb_scope_leave());
    py_leave();
}

bool py_is_outside(void) { return foreign || (py_now->holder && py_now->holder != &here); }

bool py_is_inside(void) { return foreign || py_now->holder == &here; }

bool py_context_begin(py_context *c) {
    c->context = wb_context_new();
    if (!c->context) return (void)py_raise(), false;
    c->next = all, all = c;
    return true;
}

void py_context_end(py_context *c) {
    py_context **at = &all;
    while (*at != c) at = &(*at)->next;
    *at = c->next;
    wb_free(c->context);
}

void py_release(void *object) {
    if (!object) return;
    if (foreign || !py_is_outside()) { /* what is not the foreign thread's goes back to its owner */
        py_enter();
        wb_free(object);
        py_leave();
    } else {
        py_do_later(wb_free, object);
    }
}

void py_release_array(wb_array *x) {
    py_context *c = py_now;
    if (x && !foreign && !c->holder && !c->released)
        c->released = x;
    else
        py_release(x);
}

/* A child has the thread that forked alone. If another one was in a call, the child's calls fail:
 * that call has not ended, so that the context's objects may be in any state. */
static void after_fork(void) {
    for (py_context *c = all; c; c = c->next) {
        if (c->holder && c->holder != &here) c->holder = NULL, c->depth = 0;
        c->waiting = 0;
    }
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&is_free, NULL);
}

/* ---- functions that Weber calls ---- */

py_inside py_callback_begin(void) { return (py_inside){PyGILState_Ensure()}; }
void py_callback_end(py_inside inside) { PyGILState_Release(inside.state); }

py_inside py_foreign_begin(void) {
    py_inside inside = {PyGILState_Ensure()};
    foreign++;
    return inside;
}
void py_foreign_end(py_inside inside) {
    foreign--;
    PyGILState_Release(inside.state);
}

/* ---- functions of the module ---- */

static PyObject *live(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    py_enter();
    const wb_live_counts c = wb_live();
    py_leave();
    return Py_BuildValue("{s:L,s:L,s:L}", "arrays", (long long)c.arrays, "buffers",
                         (long long)c.buffers, "objects", (long long)c.objects);
}

static PyObject *plans(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    py_enter();
    const wb_plan_counts c = wb_plan_status();
    py_leave();
    return Py_BuildValue("{s:L,s:L,s:L}", "evaluations", (long long)c.evaluations, "misses",
                         (long long)c.misses, "kernels", (long long)c.kernels);
}

static PyObject *pending_limit(PyObject *module, PyObject *limit) {
    (void)module;
    const long long before = py_pending_limit, now = py_integer(limit);
    if (PyErr_Occurred()) return NULL;
    if (now < 1) return PyErr_SetString(PyExc_ValueError, "the limit must be at least 1"), NULL;
    py_pending_limit = now;
    return PyLong_FromLongLong(before);
}

static PyMethodDef functions[] = {
    {"live", live, METH_NOARGS,
     "live()\n--\n\nHow many arrays, buffers and objects are alive, for tests."},
    {"plans", plans, METH_NOARGS,
     "plans()\n--\n\nHow many evaluations, plans that had to be made, and kernels there were."},
    {"pending_limit", pending_limit, METH_O,
     "pending_limit(limit)\n--\n\nHow many results may be pending, 1000 at first: then the next "
     "one "
     "is computed, so that the recipes of a program that never reads do not grow without end. "
     "Returns the former limit."},
    {NULL, NULL, 0, NULL}};

bool py_add_context(PyObject *module) {
    interpreter.context = wb_context_new();
    if (!interpreter.context) return py_raise();
    (void)pthread_atfork(NULL, NULL, after_fork);
    return py_add_functions(module, functions);
}
