/* Recur: a cell that keeps its states from call to call; Recurrence: a cell over a sequence. */
#include <weber/scan.h>

#include "array/state.h"
#include "layers/layer.h"

enum { MOST_STATES = 2 };

typedef struct wb_recur_layer {
    wb_layer layer;
    wb_layer *cell;
    wb_array *hidden[MOST_STATES]; /* NULL: a sequence begins */
} wb_recur_layer;

static wb_recur_layer *recur_of(wb_layer *layer) { return (wb_recur_layer *)(void *)layer; }

/* Checks the number of the cell's results, which are its next states. */
static int check_states(int count) {
    if (count <= MOST_STATES) return count;
    (void)wb_fail(WB_ERROR_ARGUMENT, "a cell may have at most %d states, this one has %d",
                  MOST_STATES, count);
    return 0;
}

/* One step of the cell: replaces the `count` states by the next ones, and returns their number. */
static int step(wb_layer *cell, wb_array *x, int count, wb_array **states) {
    wb_array *inputs[1 + MOST_STATES] = {x}, *results[WB_MOST_ARRAYS];
    for (int s = 0; s < count; s++) inputs[1 + s] = states[s];
    const int given = check_states(wb_apply_many(cell, 1 + count, inputs, WB_MOST_ARRAYS, results));
    for (int s = 0; s < given; s++) states[s] = results[s];
    return given;
}

/* A layer of one array cannot be given its states. */
static bool check_cell(const wb_layer *layer, const wb_layer *cell) {
    const char *name = layer->class_->name;
    char text[200];
    if (cell && cell->class_->forward_many) return true;
    if (cell) wb_layer_describe(cell, true, text, sizeof text);
    (void)wb_fail(WB_ERROR_ARGUMENT,
                  "%s: the cell must take x and its states, as wb_lstm_cell's does, got %s", name,
                  cell ? text : "NULL");
    return false;
}

typedef struct loop {
    wb_layer *cell;
    int states;
} loop;

static void scan_step(void *context, wb_array **carries, wb_array *const *inputs,
                      wb_array **outputs) {
    const loop *l = context;
    if (!step(l->cell, inputs[0], l->states, carries)) carries[0] = NULL;
    outputs[0] = carries[0];
}

/* inputs[1]: whether the step is before the sequence's length. */
static void scan_known_step(void *context, wb_array **carries, wb_array *const *inputs,
                            wb_array **outputs) {
    const loop *l = context;
    wb_array *before[MOST_STATES] = {carries[0], carries[l->states - 1]};
    if (!step(l->cell, inputs[0], l->states, carries)) carries[0] = NULL;
    outputs[0] = wb_lengths_keep(inputs[1], l->states, carries, before);
}

/* x, and mask: false in the padding of its sequences; NULL: there is none. */
typedef struct steps {
    wb_array *x, *mask;
    int dim; /* the steps' */
} steps;

static wb_array *slice_of(wb_array *x, int dim, int64_t begin, int64_t end) {
    return wb_slice(x, dim, begin, end, 1);
}

/* The steps from `begin` on. */
static wb_array *run_steps(wb_layer *cell, const steps *s, int64_t begin, int states,
                           wb_array **carries) {
    loop l = {cell, states};
    const int64_t end = s->x->sizes[s->dim];
    wb_array *inputs[] = {slice_of(s->x, s->dim, begin, end), NULL}, *y[1];
    if (s->mask) inputs[1] = slice_of(s->mask, s->dim, begin, end);
    const wb_status status = wb_scan(s->mask ? scan_known_step : scan_step, &l, states, carries,
                                     s->mask ? 2 : 1, inputs, 1, y, .dim = s->dim);
    return status == WB_OK ? y[0] : NULL;
}

/* Without states the first step is made separately, because only the cell knows the states that a
 * sequence begins with. For a sequence of length 0 these states are 0. */
static wb_array *run_sequence(wb_layer *cell, const steps *s, int *count, wb_array **states) {
    const int dim = s->dim;
    if (s->x->sizes[dim] == 0)
        return wb_fail_null(WB_ERROR_SHAPE, "input %s has no steps", wb_text_of(s->x));
    if (*count) return run_steps(cell, s, 0, *count, states);
    *count = step(cell, wb_squeeze(slice_of(s->x, dim, 0, 1), dim), 0, states);
    wb_array *is_there = s->mask ? wb_squeeze(slice_of(s->mask, dim, 0, 1), dim) : NULL;
    for (int i = 0; is_there && i < *count; i++)
        states[i] = wb_select(is_there, states[i], wb_constant(0));
    wb_array *first = *count ? wb_unsqueeze(states[0], dim) : NULL;
    if (!first || s->x->sizes[dim] == 1) return first;
    wb_array *rest = run_steps(cell, s, 1, *count, states);
    return rest ? wb_concat(dim, first, rest) : NULL;
}

/* Takes the hidden states for the batch of x, on x's device, and returns their number. -1 with the
 * error recorded. */
static int take_hidden(const wb_recur_layer *r, const wb_array *x, wb_array **states) {
    int count = 0;
    for (; count < MOST_STATES && r->hidden[count]; count++) {
        wb_array *h = r->hidden[count];
        const bool fits = x->ndim == 1 ? h->ndim == 1 : h->ndim == 2 && h->sizes[1] == x->sizes[1];
        if (!fits) {
            (void)wb_fail(WB_ERROR_SHAPE,
                          "the hidden state %s was left by another batch, got input %s: call "
                          "wb_reset before a new sequence",
                          wb_text_of(h), wb_text_of(x));
            return -1;
        }
        const wb_device *device = wb_device_of(x);
        if (device && wb_device_of(h) != device) h = wb_to(device, h, .eltype = WB_ELTYPE_PRESERVE);
        if (!(states[count] = h)) return -1;
    }
    return count;
}

static wb_array *forward(wb_layer *layer, wb_array *x) {
    wb_recur_layer *r = recur_of(layer);
    wb_array *states[MOST_STATES] = {NULL};
    if (x->ndim < 1 || x->ndim > 3)
        return wb_fail_null(
            WB_ERROR_SHAPE,
            "input must be (features), (features, batch) or (features, batch, time), got %s",
            wb_text_of(x));
    /* a batch of no sequences neither uses nor changes the hidden states */
    const bool has_any = x->ndim == 1 || x->sizes[1] > 0;
    int count = has_any ? take_hidden(r, x, states) : 0;
    if (count < 0) return NULL;
    wb_array *y;
    if (x->ndim == 3)
        y = run_sequence(r->cell, &(steps){.x = x, .dim = 2}, &count, states);
    else
        y = (count = step(r->cell, x, count, states)) > 0 ? states[0] : NULL;
    for (int s = 0; y && has_any && s < count; s++)
        if (wb_state_write(&r->hidden[s], states[s]) != WB_OK) return NULL;
    return y;
}

#define HIDDEN(name_, i)                                                                           \
    {                                                                                              \
        .name = name_, .offset = offsetof(wb_recur_layer, hidden) + (i) * sizeof(wb_array *),      \
        .kind = WB_FIELD_HIDDEN, .text_only = true                                                 \
    }

/* Flux 0.11 had init, too, the arrays that its cell has. */
static const wb_field fields[] = {
    WB_SETTING(wb_recur_layer, cell, WB_FIELD_CHILD, .trainable = true, .positional = true,
               .counted = true),
    {.name = "init", .kind = WB_FIELD_OTHER, .since = 3},
    {.name = "state", .kind = WB_FIELD_OTHER},
    HIDDEN("hidden", 0),
    HIDDEN("hidden2", 1),
};

static bool complete(wb_layer *layer) { return check_cell(layer, recur_of(layer)->cell); }

const wb_layer_class wb_recur_class = {.name = "Recur",
                                       WB_LAYER_ROWS(wb_recur_layer, fields),
                                       .forward = forward,
                                       .complete = complete};

wb_layer *wb_recur(wb_layer *cell) {
    const wb_contents contents = {.count = 1, .layers = &cell};
    return wb_layer_complete(wb_wrapper_new("wb_recur", &wb_recur_class, &contents));
}

/* ---- Recurrence ---- */

typedef struct wb_recurrence_layer {
    wb_layer layer;
    wb_layer *cell;
    bool return_state, lengths;
} wb_recurrence_layer;

static int forward_recurrence(wb_layer *layer, int count, wb_array *const *inputs,
                              wb_array **results) {
    const wb_recurrence_layer *r = (const wb_recurrence_layer *)(const void *)layer;
    wb_array *states[MOST_STATES] = {NULL};
    steps s = {.x = inputs[0], .dim = 1};
    int given = count - 1 - r->lengths;
    if (given < 0 || given > MOST_STATES || s.x->ndim < 2 || s.x->ndim > 3) {
        (void)wb_fail(WB_ERROR_SHAPE,
                      "expected (features, time) or (features, time, batch), then %sat most %d "
                      "states, got %d arrays, the first one %s",
                      r->lengths ? "lengths and " : "", MOST_STATES, count, wb_text_of(s.x));
        return 0;
    }
    if (r->lengths && !(s.mask = wb_lengths_mask(&s.x, inputs[1]))) return 0;
    for (int i = 0; i < given; i++) states[i] = inputs[1 + r->lengths + i];
    if (!(results[0] = run_sequence(r->cell, &s, &given, states))) return 0;
    int made = 1;
    if (r->lengths) results[made++] = inputs[1];
    for (int i = 0; r->return_state && i < given; i++) results[made++] = states[i];
    return made;
}

static const wb_field recurrence_fields[] = {
    WB_SETTING(wb_recurrence_layer, cell, WB_FIELD_CHILD, .trainable = true, .positional = true,
               .counted = true),
    WB_SETTING(wb_recurrence_layer, return_state, WB_FIELD_BOOL, .text_only = true,
               .parameter = true),
    WB_SETTING(wb_recurrence_layer, lengths, WB_FIELD_BOOL, .text_only = true),
};

static bool complete_recurrence(wb_layer *layer) {
    return check_cell(layer, ((const wb_recurrence_layer *)(const void *)layer)->cell);
}

const wb_layer_class wb_recurrence_class = {.name = "Recurrence",
                                            WB_LAYER_ROWS(wb_recurrence_layer, recurrence_fields),
                                            .forward_many = forward_recurrence,
                                            .complete = complete_recurrence};

wb_layer *wb_recurrence_make(wb_recurrence_desc desc) {
    const wb_contents contents = {.count = 1, .layers = &desc.cell};
    wb_layer *layer = wb_wrapper_new("wb_recurrence", &wb_recurrence_class, &contents);
    wb_recurrence_layer *r = (wb_recurrence_layer *)(void *)layer;
    if (r) r->return_state = desc.return_state, r->lengths = desc.lengths;
    return wb_layer_complete(layer);
}
