/* Losses of models, optimisers, and the training loop. */
#include "binding.h"

/* ---- calling a loss ---- */

/* A loss, or another function that Weber calls with a model and a batch. */
typedef struct caller {
    PyObject *function, *model; /* borrowed; model: the object for the layer `layer` */
    const wb_layer *layer;
    PyObject *args; /* what follows the model if there is no batch */
} caller;

static PyObject *model_object(const caller *c, wb_layer *model) {
    return model == c->layer ? Py_NewRef(c->model) : py_wrap_layer(wb_keep_layer(model));
}

/* (model, x, y, ...) */
static PyObject *loss_args(const caller *c, wb_layer *model, const wb_batch *batch) {
    wb_array *arrays[2 + WB_MORE_ARRAYS];
    Py_ssize_t count = 0;
    const bool is_given = batch && batch->x; /* Weber passes an empty batch instead of NULL */
    if (is_given) {
        arrays[count++] = batch->x;
        if (batch->y) arrays[count++] = batch->y;
        for (int i = 0; i < WB_MORE_ARRAYS; i++)
            if (batch->more[i]) arrays[count++] = batch->more[i];
    } else if (c->args) {
        count = PyTuple_Size(c->args);
    }
    PyObject *args = PyTuple_New(count + 1);
    if (!args) return NULL;
    PyTuple_SetItem(args, 0, model_object(c, model));
    for (Py_ssize_t i = 0; i < count; i++)
        PyTuple_SetItem(args, i + 1,
                        is_given ? py_wrap_array(wb_take(arrays[i]))
                                 : Py_NewRef(PyTuple_GetItem(c->args, i)));
    return args;
}

static wb_array *on_loss(wb_layer *model, const wb_batch *batch, void *user) {
    const caller *c = user;
    const py_inside inside = py_callback_begin();
    wb_array *x = py_array_of_loss(c->function, loss_args(c, model, batch));
    py_callback_end(inside);
    return x;
}

/* Arrays after the model make a batch, so that micro-batches can divide it. */
static bool batch_of(PyObject *args, wb_batch *batch) {
    const Py_ssize_t count = PyTuple_Size(args);
    *batch = (wb_batch){0};
    if (count < 1 || count > 2 + WB_MORE_ARRAYS) return false;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *o = PyTuple_GetItem(args, i);
        if (Py_TYPE(o) != Array_type || wb_ndim(((Array *)o)->x) == 0) return false;
        wb_array **const place = i == 0 ? &batch->x : i == 1 ? &batch->y : &batch->more[i - 2];
        *place = ((Array *)o)->x;
        if (wb_numobs(*place) != wb_numobs(batch->x)) return false;
    }
    batch->size = wb_numobs(batch->x);
    return true;
}

static bool begin_loss(caller *c, wb_batch *batch, const wb_batch **given, PyObject *const *args,
                       Py_ssize_t nargs, Py_ssize_t model_at, Py_ssize_t first) {
    *c = (caller){.function = args[0], .model = args[model_at]};
    c->layer = py_layer(c->model);
    c->args = PyErr_Occurred() ? NULL : PyTuple_New(nargs - first);
    if (!c->args) return false;
    for (Py_ssize_t i = first; i < nargs; i++)
        PyTuple_SetItem(c->args, i - first, Py_NewRef(args[i]));
    *given = batch_of(c->args, batch) ? batch : NULL;
    return true;
}

static PyObject *train_step(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module;
    if (nargs < 3)
        return PyErr_SetString(PyExc_TypeError, "train_step(loss, model, optimiser, *args)"), NULL;
    if (!py_open()) return NULL;
    caller c;
    wb_batch batch;
    const wb_batch *given;
    wb_optimiser *optimiser = py_handle(args[2], Optimiser_type);
    if (PyErr_Occurred() || !begin_loss(&c, &batch, &given, args, nargs, 1, 3)) return py_fail();
    PyThreadState *others = PyEval_SaveThread();
    wb_array *l = wb_train_step(on_loss, (wb_layer *)(uintptr_t)c.layer, given, &c, optimiser);
    PyEval_RestoreThread(others);
    Py_DECREF(c.args);
    return py_give_array(l);
}

/* ---- gradients ---- */

static PyObject *withgradient(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module;
    if (nargs < 2)
        return PyErr_SetString(PyExc_TypeError, "withgradient(loss, model, *args)"), NULL;
    if (!py_open()) return NULL;
    caller c;
    wb_batch batch;
    const wb_batch *given;
    if (!begin_loss(&c, &batch, &given, args, nargs, 1, 2)) return py_fail();
    wb_gradients *gradients = NULL;
    wb_array *l = wb_withgradient(on_loss, (wb_layer *)(uintptr_t)c.layer, given, &c, &gradients);
    Py_DECREF(c.args);
    if (!l || wb_failed()) return py_fail();
    PyObject *all = py_wrap(Gradients_type, wb_take(gradients), c.model);
    PyObject *loss = py_give_array(l);
    return loss && all ? Py_BuildValue("(NN)", loss, all)
                       : (Py_XDECREF(loss), Py_XDECREF(all), NULL);
}

static PyObject *update(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module;
    if (nargs != 3)
        return PyErr_SetString(PyExc_TypeError, "update(optimiser, model, gradients)"), NULL;
    if (!py_open()) return NULL;
    wb_optimiser *optimiser = py_handle(args[0], Optimiser_type);
    wb_layer *model = py_layer(args[1]);
    wb_gradients *gradients = py_handle(args[2], Gradients_type);
    if (PyErr_Occurred()) return py_fail();
    PyThreadState *others = PyEval_SaveThread();
    const wb_status status = wb_update(optimiser, model, gradients);
    PyEval_RestoreThread(others);
    return py_give_status(status);
}

/* ---- gradients and optimisers ---- */

static PyObject *gradients_items(PyObject *self, PyObject *unused) {
    (void)unused;
    if (!py_open()) return NULL;
    PyObject *dict = PyDict_New();
    for (wb_parameter p = {0}; dict && wb_next_gradient(((Handle *)self)->object, &p);) {
        PyObject *x = p.gradient ? py_wrap_array(wb_take(p.gradient)) : Py_NewRef(Py_None);
        if (!x || PyDict_SetItemString(dict, p.path, x) < 0) Py_CLEAR(dict);
        Py_XDECREF(x);
    }
    return py_give_object(dict);
}
static const char *path_of(PyObject *key) {
    if (key == Py_None) PyErr_SetString(PyExc_TypeError, "a path is a str, got None");
    return py_text(key);
}
static PyObject *gradients_get(PyObject *self, PyObject *key) {
    if (!py_open()) return NULL;
    const char *path = path_of(key);
    if (!path) return py_fail();
    wb_array *g = wb_gradients_get(((Handle *)self)->object, path);
    if (!g && !wb_failed()) return py_give_object(Py_NewRef(Py_None));
    return py_give_array(g);
}
static int gradients_set(PyObject *self, PyObject *key, PyObject *value) {
    if (!py_open()) return -1;
    const char *path = path_of(key);
    wb_array *g = value ? py_array(value) : NULL;
    PyObject *done = PyErr_Occurred()
                         ? py_fail()
                         : py_give_status(wb_gradients_set(((Handle *)self)->object, path, g));
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static const py_member setup_members[] = {
    {PY_RULE, 0, offsetof(wb_setup_desc, rule), "rule", NULL},
    {PY_ARRAY, 0, 0, "model", NULL}, /* below */
    {PY_DTYPE, 0, offsetof(wb_setup_desc, compute), "compute", NULL},
    {PY_REAL, 0, offsetof(wb_setup_desc, loss_scale), "loss_scale", NULL},
    {PY_INT64, 0, offsetof(wb_setup_desc, loss_scale_interval), "loss_scale_interval", NULL},
    {PY_REAL, 0, offsetof(wb_setup_desc, clip_total_norm), "clip_total_norm", NULL},
    {PY_INT64, 0, offsetof(wb_setup_desc, micro_batches), "micro_batches", NULL},
    {PY_BOOL, 0, offsetof(wb_setup_desc, distributed), "distributed", NULL},
    {PY_DTYPE, 0, offsetof(wb_setup_desc, send), "send", NULL},
    {PY_INT, 0, offsetof(wb_setup_desc, zero), "zero", NULL},
    {PY_BOOL, 0, offsetof(wb_setup_desc, may_miss), "may_miss", NULL},
    {PY_INT64, 0, offsetof(wb_setup_desc, compare_every), "compare_every", NULL},
};
enum { SETUP_MEMBERS = (int)(sizeof setup_members / sizeof *setup_members), RULE_AND_MODEL = 2 };

/* {"*.bias": Descent(0.1)} */
static void fill_paths(PyObject *paths, wb_path_rule *rows) {
    if (py_is_none(paths)) return;
    PyObject *key, *value;
    Py_ssize_t at = 0;
    for (int i = 0; PyDict_Check(paths) && PyDict_Next(paths, &at, &key, &value); i++) {
        if (i == WB_PATH_RULES) {
            PyErr_Format(PyExc_ValueError, "at most %d paths", (int)WB_PATH_RULES);
            return;
        }
        rows[i] = (wb_path_rule){py_text(key), py_rule(value)};
    }
    if (!PyDict_Check(paths)) PyErr_SetString(PyExc_TypeError, "paths is a dict of rules");
}

/* (rule, model, the settings that were given): another optimiser can be made of them. */
static PyObject *made_of(PyObject *const *a, const char *const *names, int count) {
    PyObject *settings = PyDict_New();
    for (int i = RULE_AND_MODEL; settings && i < count; i++)
        if (a[i] && PyDict_SetItemString(settings, names[i], a[i]) < 0) Py_CLEAR(settings);
    return settings ? Py_BuildValue("(OON)", a[0], a[1], settings) : NULL;
}

static PyObject *setup(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                       PyObject *kwnames) {
    (void)module;
    const char *names[SETUP_MEMBERS + 1];
    for (int i = 0; i < SETUP_MEMBERS; i++) names[i] = setup_members[i].name;
    names[SETUP_MEMBERS] = "paths";
    const py_signature signature = {"setup", names, SETUP_MEMBERS + 1, 2, 2};
    PyObject *a[SETUP_MEMBERS + 1];
    if (!py_bind(&signature, args, nargs, kwnames, a)) return NULL;
    if (PyObject_TypeCheck(a[1], Layer_type)) {
        PyObject *checked = PyObject_CallMethod(a[1], "_check_lists", NULL);
        if (!checked) return NULL;
        Py_DECREF(checked);
    }
    if (!py_open()) return NULL;
    wb_setup_desc desc = WB_DESC(setup, WB_NO_MORE);
    desc.rule = py_rule(a[0]);
    desc.model = py_layer(a[1]);
    py_fill(&desc, setup_members + RULE_AND_MODEL, SETUP_MEMBERS - RULE_AND_MODEL,
            a + RULE_AND_MODEL);
    fill_paths(a[SETUP_MEMBERS], desc.paths);
    if (PyErr_Occurred()) return py_fail();
    PyObject *also = made_of(a, names, SETUP_MEMBERS + 1);
    if (!also) return py_fail();
    PyThreadState *others = PyEval_SaveThread(); /* ranks may exchange their parameters */
    wb_optimiser *optimiser = wb_setup_make(desc);
    PyEval_RestoreThread(others);
    PyObject *result = py_give(Optimiser_type, optimiser);
    if (result) ((Handle *)result)->also = Py_NewRef(also);
    Py_DECREF(also);
    return result;
}

static PyObject *optimiser_part(PyObject *self, void *place) {
    return Py_NewRef(PyTuple_GetItem(((Handle *)self)->also, (Py_ssize_t)(intptr_t)place));
}
static PyGetSetDef optimiser_properties[] = {
    {"rule", optimiser_part, NULL, "The rule that setup was given.", (void *)0},
    {"model", optimiser_part, NULL, "The model that setup was given.", (void *)1},
    {"_settings", optimiser_part, NULL, NULL, (void *)2},
    {NULL, NULL, NULL, NULL, NULL}};

/* ---- schedules from functions and from schedules ---- */

/* A schedule that calls `also`, a function or schedules. */
static PyObject *give_schedule(wb_schedule *schedule, PyObject *also) {
    if (PyErr_Occurred() || !schedule || wb_failed()) return wb_free(schedule), py_fail();
    py_close();
    if (wb_failed()) return py_release(schedule), py_raise();
    return py_wrap(Schedule_type, schedule, also);
}

static double on_schedule(int64_t t, void *user) {
    const py_inside inside = py_callback_begin();
    PyObject *result = PyObject_CallFunction(user, "L", (long long)t);
    const double v = result ? PyFloat_AsDouble(result) : 0;
    Py_XDECREF(result);
    if (PyErr_Occurred()) py_keep_exception();
    py_callback_end(inside);
    return v;
}
static PyObject *schedule_of(PyObject *module, PyObject *f) {
    (void)module;
    return py_open() ? give_schedule(wb_schedule_of(on_schedule, f), f) : NULL;
}

/* A maker takes over the schedules that it is given; here it gets one that asks the object's own,
 * which stays the object's. */
static double on_borrowed(int64_t t, void *schedule) { return wb_schedule_at(schedule, t); }
static wb_schedule *borrowed(PyObject *o) {
    wb_schedule *own = py_handle(o, Schedule_type);
    return own ? wb_schedule_of(on_borrowed, own) : NULL;
}

static PyObject *changed(PyObject *const *args, Py_ssize_t nargs, const char *usage,
                         wb_schedule *(*make)(wb_schedule *, int64_t)) {
    if (nargs != 2) return PyErr_SetString(PyExc_TypeError, usage), NULL;
    if (!py_open()) return NULL;
    const int64_t n = py_integer(args[1]);
    wb_schedule *own = PyErr_Occurred() ? NULL : borrowed(args[0]);
    return give_schedule(own ? make(own, n) : NULL, args[0]);
}
static PyObject *schedule_loop(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module;
    return changed(args, nargs, "schedule_loop(schedule, n)", wb_schedule_loop);
}
static PyObject *schedule_stretch(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module;
    return changed(args, nargs, "schedule_stretch(schedule, n)", wb_schedule_stretch);
}
static PyObject *schedule_shift(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module;
    return changed(args, nargs, "schedule_shift(schedule, n)", wb_schedule_shift);
}

/* schedule_sequence(parts): a list of (schedule, steps) */
static PyObject *schedule_sequence(PyObject *module, PyObject *list) {
    (void)module;
    PyObject *pairs = PySequence_Tuple(list);
    const Py_ssize_t count = pairs ? PyTuple_Size(pairs) : 0;
    PyObject *also = pairs ? PyTuple_New(count) : NULL; /* the schedules: a pair may change */
    wb_schedule_part *parts = also ? PyMem_Calloc((size_t)count + 1, sizeof *parts) : NULL;
    if (!parts || !py_open()) {
        PyMem_Free(parts);
        Py_XDECREF(pairs), Py_XDECREF(also);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    Py_ssize_t made = 0;
    for (; made < count && !PyErr_Occurred(); made++) {
        PyObject *pair = PyTuple_GetItem(pairs, made), *schedule = PySequence_GetItem(pair, 0);
        PyObject *steps = schedule ? PySequence_GetItem(pair, 1) : NULL;
        if (steps) parts[made].steps = py_integer(steps);
        if (steps && !PyErr_Occurred()) parts[made].schedule = borrowed(schedule);
        PyTuple_SetItem(also, made, schedule);
        Py_XDECREF(steps);
    }
    Py_DECREF(pairs);
    wb_schedule *sequence = NULL;
    if (!PyErr_Occurred()) sequence = wb_schedule_sequence_make(count, parts);
    for (Py_ssize_t i = 0; i < made && PyErr_Occurred(); i++) wb_free(parts[i].schedule);
    PyMem_Free(parts);
    PyObject *result = give_schedule(sequence, also);
    Py_DECREF(also);
    return result;
}

/* RuleChain(rules) */
static PyObject *rule_chain(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module;
    wb_rule rules[WB_RULE_LINKS];
    if (nargs > WB_RULE_LINKS)
        return PyErr_Format(PyExc_ValueError, "at most %d rules", (int)WB_RULE_LINKS);
    if (!py_open()) return NULL;
    for (Py_ssize_t i = 0; i < nargs; i++) rules[i] = py_rule(args[i]);
    return PyErr_Occurred()
               ? py_fail()
               : py_give_rule(wb_rule_chain_make(nargs, rules), "RuleChain", args, nargs, NULL);
}

/* ---- the loop, and evaluation ---- */

static const char *const task_names[] = {"by_target", "classes", "yes_or_no", "numbers", NULL};

static PyObject *number(double v) {
    return v == v ? PyFloat_FromDouble(v) : Py_NewRef(Py_None); /* NaN: the task has it not */
}

static PyObject *evaluation_object(const wb_evaluation *e) {
    PyObject *confusion = e->confusion ? py_wrap_array(wb_take(e->confusion)) : Py_NewRef(Py_None);
    return Py_BuildValue("{s:s,s:L,s:L,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N}", "task",
                         task_names[e->task], "observations", (long long)e->observations, "count",
                         (long long)e->count, "loss", number(e->loss), "perplexity",
                         number(e->perplexity), "accuracy", number(e->accuracy), "top_k",
                         number(e->top_k), "precision", number(e->precision), "recall",
                         number(e->recall), "f1", number(e->f1), "auc", number(e->auc), "mse",
                         number(e->mse), "mae", number(e->mae), "r2", number(e->r2), "confusion",
                         confusion);
}

/* What the callbacks of one call need. */
typedef struct loop {
    caller loss, predict;
    PyObject *optimiser, *on_step, *on_epoch, *score, *event_type;
} loop;

static wb_array *on_loop_loss(wb_layer *model, const wb_batch *batch, void *user) {
    return on_loss(model, batch, &((loop *)user)->loss);
}
static wb_array *on_predict(wb_layer *model, const wb_batch *batch, void *user) {
    return on_loss(model, batch, &((loop *)user)->predict);
}

static PyObject *event_object(const loop *l, const wb_train_event *e) {
    PyObject *aux = PyDict_New();
    for (int i = 0; aux && i < e->aux_count; i++) {
        PyObject *v = PyFloat_FromDouble(e->aux[i].mean);
        if (v) (void)PyDict_SetItemString(aux, e->aux[i].name, v);
        Py_XDECREF(v);
    }
    PyObject *loss = e->loss ? py_wrap_array(wb_take(e->loss)) : Py_NewRef(Py_None);
    PyObject *validation = e->validation ? evaluation_object(e->validation) : Py_NewRef(Py_None);
    PyObject *named = Py_BuildValue(
        "{s:N,s:O,s:N,s:d,s:L,s:L,s:N,s:d,s:L,s:N}", "model", model_object(&l->loss, e->model),
        "optimiser", l->optimiser, "loss", loss, "mean_loss", e->mean_loss, "epoch",
        (long long)e->epoch, "step", (long long)e->step, "validation", validation, "score",
        e->score, "best_epoch", (long long)e->best_epoch, "aux", aux);
    PyObject *none = PyTuple_New(0);
    PyObject *event = named && none ? PyObject_Call(l->event_type, none, named) : NULL;
    Py_XDECREF(named), Py_XDECREF(none);
    return event;
}

static bool on_event(PyObject *function, const wb_train_event *e) {
    const py_inside inside = py_callback_begin();
    PyObject *event = event_object(e->user, e);
    PyObject *result = event ? PyObject_CallFunctionObjArgs(function, event, NULL) : NULL;
    const bool goes_on = result && result != Py_False;
    Py_XDECREF(event), Py_XDECREF(result);
    if (PyErr_Occurred()) py_keep_exception();
    py_callback_end(inside);
    return goes_on;
}
static bool on_step(const wb_train_event *e) { return on_event(((loop *)e->user)->on_step, e); }
static bool on_epoch(const wb_train_event *e) { return on_event(((loop *)e->user)->on_epoch, e); }
static double on_score(const wb_train_event *e) {
    const py_inside inside = py_callback_begin();
    PyObject *event = event_object(e->user, e);
    PyObject *result =
        event ? PyObject_CallFunctionObjArgs(((loop *)e->user)->score, event, NULL) : NULL;
    const double score = result ? PyFloat_AsDouble(result) : 0;
    Py_XDECREF(event), Py_XDECREF(result);
    if (PyErr_Occurred()) py_keep_exception();
    py_callback_end(inside);
    return score;
}

static void fill_schedules(PyObject *schedules, wb_scheduled *rows) {
    if (py_is_none(schedules)) return;
    PyObject *key, *value;
    Py_ssize_t at = 0;
    if (!PyDict_Check(schedules)) PyErr_SetString(PyExc_TypeError, "schedules is a dict");
    for (int i = 0; !PyErr_Occurred() && PyDict_Next(schedules, &at, &key, &value); i++) {
        if (i == WB_SCHEDULES) {
            PyErr_Format(PyExc_ValueError, "at most %d schedules", (int)WB_SCHEDULES);
            return;
        }
        rows[i] =
            (wb_scheduled){.setting = py_text(key), .schedule = py_handle(value, Schedule_type)};
    }
}

static const py_member train_members[] = {
    {PY_INT64, 0, offsetof(wb_train_desc, epochs), "epochs", NULL},
    {PY_BOOL, 0, offsetof(wb_train_desc, progress), "progress", NULL},
    {PY_REAL, 0, offsetof(wb_train_desc, throttle), "throttle", NULL},
    {PY_TEXT, 0, offsetof(wb_train_desc, checkpoint), "checkpoint", NULL},
    {PY_BOOL, 0, offsetof(wb_train_desc, share_checkpoint), "share_checkpoint", NULL},
    {PY_INT64, 0, offsetof(wb_train_desc, every), "every", NULL},
    {PY_INT64, 0, offsetof(wb_train_desc, keep), "keep", NULL},
    {PY_BOOL, 0, offsetof(wb_train_desc, keep_best), "keep_best", NULL},
    {PY_INT64, 0, offsetof(wb_train_desc, early_stopping.patience), "patience", NULL},
    {PY_REAL, 0, offsetof(wb_train_desc, early_stopping.min_delta), "min_delta", NULL},
};
enum { TRAIN_MEMBERS = (int)(sizeof train_members / sizeof *train_members) };

static PyObject *train(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                       PyObject *kwnames) {
    (void)module;
    enum { LOSS, MODEL, DATA, OPTIMISER, FIRST };
    enum { ON_STEP = FIRST + TRAIN_MEMBERS, ON_EPOCH, SCORE, SCHEDULES, VALIDATION, COUNT };
    const char *names[COUNT] = {"loss", "model", "data", "optimiser"};
    for (int i = 0; i < TRAIN_MEMBERS; i++) names[FIRST + i] = train_members[i].name;
    names[ON_STEP] = "on_step", names[ON_EPOCH] = "on_epoch", names[SCORE] = "score";
    names[SCHEDULES] = "schedules", names[VALIDATION] = "validation";
    const py_signature signature = {"train", names, COUNT, FIRST, FIRST};
    PyObject *a[COUNT];
    if (!py_bind(&signature, args, nargs, kwnames, a)) return NULL;
    PyObject *types = PyImport_ImportModule("types");
    PyObject *event_type = types ? PyObject_GetAttrString(types, "SimpleNamespace") : NULL;
    Py_XDECREF(types);
    if (!event_type || !py_open()) return Py_XDECREF(event_type), NULL;
    loop l = {.loss = {.function = a[LOSS], .model = a[MODEL]},
              .optimiser = a[OPTIMISER],
              .on_step = a[ON_STEP],
              .on_epoch = a[ON_EPOCH],
              .score = a[SCORE],
              .event_type = event_type};
    wb_train_desc desc = WB_DESC(train, .loss = on_loop_loss, .user = &l);
    desc.model = py_layer(a[MODEL]);
    l.loss.layer = desc.model;
    desc.loader = py_handle(a[DATA], Loader_type);
    desc.optimiser = py_handle(a[OPTIMISER], Optimiser_type);
    if (!py_is_none(a[VALIDATION])) desc.validation = py_handle(a[VALIDATION], Loader_type);
    if (!py_is_none(a[ON_STEP])) desc.on_step = on_step;
    if (!py_is_none(a[ON_EPOCH])) desc.on_epoch = on_epoch;
    if (!py_is_none(a[SCORE])) desc.score = on_score;
    py_fill(&desc, train_members, TRAIN_MEMBERS, a + FIRST);
    fill_schedules(a[SCHEDULES], desc.schedules);
    if (PyErr_Occurred()) {
        Py_DECREF(event_type);
        return py_fail();
    }
    PyThreadState *others = PyEval_SaveThread();
    const wb_status status = wb_train_make(desc);
    PyEval_RestoreThread(others);
    Py_DECREF(event_type);
    return py_give_status(status);
}

static PyObject *evaluate(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                          PyObject *kwnames) {
    (void)module;
    static const char *const names[] = {"model", "data", "loss",      "predict",
                                        "task",  "k",    "threshold", "ignore"};
    static const py_signature signature = {"evaluate", names, 8, 2, 3};
    PyObject *a[8];
    if (!py_bind(&signature, args, nargs, kwnames, a)) return NULL;
    if (!py_open()) return NULL;
    loop l = {.loss = {.function = a[2], .model = a[0]},
              .predict = {.function = a[3], .model = a[0]}};
    wb_evaluate_desc desc = WB_DESC(evaluate, .user = &l);
    desc.model = py_layer(a[0]);
    l.loss.layer = l.predict.layer = desc.model;
    desc.loader = py_handle(a[1], Loader_type);
    if (!py_is_none(a[2])) desc.loss = on_loop_loss;
    if (!py_is_none(a[3])) desc.predict = on_predict;
    desc.task = (wb_task)py_choice(a[4], task_names);
    if (!py_is_none(a[5])) desc.k = py_integer(a[5]);
    desc.threshold = py_given_real(a[6], desc.threshold);
    if (!py_is_none(a[7])) desc.ignore = py_integer(a[7]);
    if (PyErr_Occurred()) return py_fail();
    PyThreadState *others = PyEval_SaveThread();
    const wb_evaluation e = wb_evaluate_make(desc);
    PyEval_RestoreThread(others);
    return e.status == WB_OK ? py_give_object(evaluation_object(&e)) : py_fail();
}

#define FAST(name, function, doc)                                                                  \
    { name, (PyCFunction)(void *)function, METH_FASTCALL, doc }
#define NAMED(name, function, doc)                                                                 \
    { name, (PyCFunction)(void *)function, METH_FASTCALL | METH_KEYWORDS, doc }
static PyMethodDef functions[] = {
    FAST("train_step", train_step,
         "train_step($module, loss, model, optimiser, *args)\n--\n\nOne step with the loss "
         "loss(model, *args), which it returns."),
    FAST(
        "withgradient", withgradient,
        "withgradient($module, loss, model, *args)\n--\n\n(loss(model, *args), its gradients): the "
        "gradients are for update(), and have the parameters' paths: "
        "gradients['layers.1.weight']."),
    FAST("update", update,
         "update($module, optimiser, model, gradients)\n--\n\nOne step of the optimiser."),
    NAMED("setup", setup,
          "setup($module, rule, model, *, compute='float32', loss_scale=0, "
          "loss_scale_interval=2000, clip_total_norm=0, micro_batches=1, distributed=False, "
          "send='float32', zero=0, may_miss=False, compare_every=1000, paths=None)\n--\n\nAn "
          "optimiser: the rule with its states for the model. paths: {'*.bias': Descent(0.1)}."),
    {"schedule_of", schedule_of, METH_O,
     "schedule_of($module, function)\n--\n\nA schedule of function(t), t from 1."},
    {"schedule_sequence", schedule_sequence, METH_O,
     "schedule_sequence($module, parts)\n--\n\nSchedules one after another: a list of (schedule, "
     "steps)."},
    FAST("schedule_loop", schedule_loop,
         "schedule_loop($module, schedule, n)\n--\n\nThe first n steps, repeated."),
    FAST("schedule_stretch", schedule_stretch,
         "schedule_stretch($module, schedule, n)\n--\n\nEach value for n steps."),
    FAST("schedule_shift", schedule_shift,
         "schedule_shift($module, schedule, n)\n--\n\nBegins at the schedule's step n + 1."),
    FAST("RuleChain", rule_chain,
         "RuleChain($module, *rules)\n--\n\nRules one after another: RuleChain(ClipNorm(1), "
         "Adam())."),
    NAMED("train", train,
          "train($module, loss, model, data, optimiser, *, epochs=1, progress=False, throttle=0, "
          "checkpoint=None, share_checkpoint=False, every=0, keep=3, keep_best=False, patience=0, "
          "min_delta=0, on_step=None, on_epoch=None, score=None, schedules=None, "
          "validation=None)\n--\n\nTrains with loss(model, x, y, ...) on each batch of the loader. "
          "Callbacks get an event with model, optimiser, loss, mean_loss, epoch, step, validation, "
          "score, best_epoch and aux; one that returns False ends the training. schedules: "
          "{'eta': schedule}. patience: epochs without a better score until it stops."),
    NAMED("evaluate", evaluate,
          "evaluate($module, model, data, loss=None, *, predict=None, task='by_target', k=5, "
          "threshold=0.5, ignore=None)\n--\n\nOne pass over the loader: a dict with accuracy, f1, "
          "mse and so on; None for what the task does not have."),
    {NULL, NULL, 0, NULL}};

static PyMethodDef gradients_methods[] = {
    {"dict", gradients_items, METH_NOARGS,
     "dict($self)\n--\n\n{path: gradient}; None where the loss does not depend on the array."},
    {NULL, NULL, 0, NULL}};

static PyMemberDef weak[] = {PY_WEAK_AT(Handle), {NULL, 0, 0, 0, NULL}};

bool py_add_train(PyObject *module) {
    PyType_Slot optimiser[] = {{Py_tp_dealloc, py_handle_dealloc},
                               {Py_tp_doc, "A rule with its states for one model, by setup()."},
                               {Py_tp_getset, optimiser_properties},
                               {Py_tp_members, weak},
                               {0, NULL}};
    PyType_Slot gradients[] = {{Py_tp_dealloc, py_handle_dealloc},
                               {Py_tp_doc, "The gradients of a model, by paths."},
                               {Py_tp_methods, gradients_methods},
                               {Py_tp_members, weak},
                               {Py_mp_subscript, gradients_get},
                               {Py_mp_ass_subscript, gradients_set},
                               {0, NULL}};
    const unsigned flags = Py_TPFLAGS_DISALLOW_INSTANTIATION;
    Optimiser_type = py_new_type(module, "weber.Optimiser", sizeof(Handle), flags, optimiser);
    Gradients_type = py_new_type(module, "weber.Gradients", sizeof(Handle), flags, gradients);
    return Optimiser_type && Gradients_type && py_add_functions(module, functions);
}
