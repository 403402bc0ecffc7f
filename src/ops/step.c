/* Builds the nodes of a step and, when a plan is made, expands them by calling the functions of the
 * rule's rows. Settings that change between steps are late numbers, so that every step uses the
 * same plan. If the watched number is not finite, every result keeps its old value. */
#include "ops/step.h"

#include <math.h>
#include <string.h>

#include "array/thread.h"
#include "array/user_call.h"
#include "ops/build.h"

/* ---- parts ---- */

wb_array *wb_result_of(wb_array *node, int index, wb_dtype dtype, int ndim, const int64_t *sizes) {
    return node ? wb_node_with(WB_OP_result, dtype, ndim, sizes, 1, &node, WB_WORDS(part, index))
                : NULL;
}

/* The cotangent of the first result is the node's; the others have none. */
void wb_vjp_result(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    (void)want;
    if (o->attributes.part.number == 0) out[0] = g;
}

/* ---- numbers ---- */

int wb_rule_settings(const wb_rule_row *row) {
    int count = 0;
    while (count < WB_RULE_SETTINGS && row->settings[count].name) count++;
    return count;
}

int wb_rule_row_states(const wb_rule_row *row) {
    int count = 0;
    while (count < WB_RULE_STATES && row->states[count].name) count++;
    return count;
}

/* Inputs of the bundle, and its attributes: the flags that are set, bit by bit for all settings of
 * the chain; which settings are late numbers; how many rows; these; and the settings that are
 * constants of the plan, as far as there is room. */
enum { WATCHED, COUNT, LATE, MOST_NUMBERS = LATE + 3 * WB_RULE_ALL_SETTINGS };
enum { SET = 0, IS_LATE = 24, LINKS = 48, ROWS = 1 };

/* The inputs of a late setting: its value; for a fraction b also 1 - b and log b. */
static int numbers_of(wb_setting_kind kind) { return kind == WB_SETTING_FRACTION ? 3 : 1; }

/* The first setting, the learning rate, is always late, others when they have been adjusted. */
static bool is_late(const wb_rule *rule, int setting, int n, int constants) {
    return setting == 0 || (rule->late >> n & 1) || constants == WB_ATTRIBUTES;
}

typedef struct bundle {
    wb_array *inputs[MOST_NUMBERS];
    wb_attributes attributes;
    int input_count, attribute_count;
} bundle;

static void add_late(bundle *b, wb_setting_kind kind, double value) {
    b->inputs[b->input_count++] = wb_late(value);
    if (numbers_of(kind) == 1) return;
    b->inputs[b->input_count++] = wb_late(1 - value);
    b->inputs[b->input_count++] = wb_late(log(value));
}

static void add_setting(bundle *b, const wb_rule *rule, wb_setting_kind kind, int setting, int n) {
    const double value = rule->settings[n];
    uint64_t bits = (uint64_t)b->attributes.step.flags;
    if (kind == WB_SETTING_FLAG) {
        if (value != 0) bits |= UINT64_C(1) << (SET + n);
    } else if (is_late(rule, setting, n, b->attribute_count)) {
        bits |= UINT64_C(1) << (IS_LATE + n);
        add_late(b, kind, value);
    } else {
        b->attributes.words[b->attribute_count++] = wb_bits_of(value);
    }
    b->attributes.step.flags = (int64_t)bits;
}

wb_array *wb_step_numbers(const wb_rule *rule, wb_array *watched, wb_array *count) {
    bundle b;
    int64_t links = 0;
    b.inputs[WATCHED] = watched, b.inputs[COUNT] = count, b.input_count = LATE;
    for (; links < WB_RULE_LINKS && rule->links[links]; links++)
        b.attributes.words[ROWS + links] = (int64_t)(intptr_t)rule->links[links];
    b.attributes.step.flags = links << LINKS, b.attribute_count = ROWS + (int)links;
    for (int link = 0, n = 0; link < links; link++) {
        const wb_rule_setting *settings = rule->links[link]->settings;
        for (int i = 0; i < WB_RULE_SETTINGS && settings[i].name; i++, n++)
            add_setting(&b, rule, settings[i].kind, i, n);
    }
    for (int i = 0; i < b.input_count; i++)
        if (!b.inputs[i]) return NULL;
    return wb_node_with(WB_OP_step_numbers, WB_I32, 0, NULL, b.input_count, b.inputs,
                        b.attribute_count, b.attributes.words);
}

wb_array *wb_step_counted(wb_array *numbers) { return wb_result_of(numbers, 0, WB_I32, 0, NULL); }

/* True where a number is neither infinite nor NaN. */
static wb_array *is_good(const wb_array *numbers) {
    wb_array *x = numbers->inputs[WATCHED];
    if (x->ndim > 0) x = wb_reshape_make(x, 0, NULL);
    return x ? EQ(SUB(x, x), NUM(0)) : NULL;
}

static wb_array *next_count(const wb_array *numbers) { return ADD(numbers->inputs[COUNT], NUM(1)); }

bool wb_expand_step_numbers(wb_array *node, wb_array **parts) {
    return (parts[0] = SELECT(is_good(node), next_count(node), node->inputs[COUNT])) != NULL;
}

/* ---- what a row sees ---- */

typedef struct link {
    const wb_rule_row *row;
    const wb_array *numbers;   /* the bundle */
    int first, late, constant; /* of its first setting: its number, input and attribute */
    bool has_f64;
} link;

static bool is_set(const link *l, int n, int which) {
    return (uint64_t)l->numbers->attributes.step.flags >> (which + n) & 1;
}

/* Moves on from setting i of the row. */
static void pass(link *l, int i) {
    const wb_setting_kind kind = l->row->settings[i].kind;
    if (is_set(l, l->first + i, IS_LATE))
        l->late += numbers_of(kind);
    else
        l->constant += kind != WB_SETTING_FLAG;
}

/* The number of the setting in the row, with l, a copy, moved on to it; -1 and an error. */
static int find_setting(link *l, const char *name, const char *wanted, wb_setting_kind kind) {
    for (int i = 0; i < wb_rule_settings(l->row); i++) {
        const wb_setting_kind its = l->row->settings[i].kind;
        if (strcmp(l->row->settings[i].name, name) != 0) {
            pass(l, i);
            continue;
        }
        if (kind == its || (kind == WB_SETTING_NUMBER && its != WB_SETTING_FLAG)) return i;
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: %s is not a %s", l->row->name, name, wanted);
        return -1;
    }
    (void)wb_fail(WB_ERROR_ARGUMENT, "%s: its row has no setting \"%s\"", l->row->name, name);
    return -1;
}

/* NULL with an error if an argument is missing, or the caller made `at` itself. */
static const link *link_of(const wb_rule_at *at, const char *name) {
    if (at && at->link_ && name) return at->link_;
    (void)wb_fail(WB_ERROR_ARGUMENT, "wb_setting: %s",
                  !at    ? "at is NULL"
                  : name ? "at must be the pointer that the rule's function got"
                         : "the name is NULL");
    return NULL;
}

/* f(value) of the setting; a late setting is the step's input `which`. Where there is no f64,
 * nothing is computed in f64 with late numbers. */
static wb_array *number_at(const wb_rule_at *at, const char *name, int which, const char *wanted) {
    const link *whole = link_of(at, name);
    if (!whole) return NULL;
    link l = *whole;
    const int i = find_setting(&l, name, wanted, which ? WB_SETTING_FRACTION : WB_SETTING_NUMBER);
    if (i < 0) return NULL;
    if (is_set(&l, l.first + i, IS_LATE)) {
        wb_array *late = l.numbers->inputs[l.late + which];
        return l.has_f64 ? late : wb_cast(late, WB_F32);
    }
    const double value = wb_value_of(l.numbers->attributes.words[l.constant]);
    return wb_constant(which == 0 ? value : which == 1 ? 1 - value : log(value));
}

wb_array *wb_setting(const wb_rule_at *at, const char *name) {
    return number_at(at, name, 0, "number");
}

wb_array *wb_setting_rest(const wb_rule_at *at, const char *name) {
    return number_at(at, name, 1, "fraction");
}

/* 1 - b^t; in f32 as -expm1(t log b), which keeps its digits where b is almost 1. */
wb_array *wb_setting_unbiased(const wb_rule_at *at, const char *name) {
    wb_array *log_b = number_at(at, name, 2, "fraction");
    if (!log_b) return NULL;
    wb_array *power = MUL(at->t, log_b);
    return link_of(at, name)->has_f64 ? SUB(NUM(1), EXP(power)) : NEG(EXPM1(power));
}

bool wb_setting_is(const wb_rule_at *at, const char *name) {
    const link *whole = link_of(at, name);
    if (!whole) return false;
    link l = *whole;
    const int i = find_setting(&l, name, "flag", WB_SETTING_FLAG);
    return i >= 0 && is_set(&l, l.first + i, SET);
}

/* ---- the step ---- */

enum { X, GRADIENT, NUMBERS, STATES, MOST_INPUTS = STATES + WB_RULE_ALL_STATES };

wb_status wb_step_make(wb_array *numbers, wb_array *x, wb_array *g, int count,
                       wb_array *const *states, wb_array **out) {
    wb_array *inputs[MOST_INPUTS] = {x, g, numbers};
    for (int k = 0; k < count; k++) inputs[STATES + k] = states[k];
    if (!wb_same_sizes(x, g))
        return wb_fail(WB_ERROR_SHAPE, "step: the gradient is %s, the parameter %s", wb_text_of(g),
                       wb_text_of(x));
    wb_array *node = wb_node_with(WB_OP_step, (wb_dtype)x->dtype, x->ndim, x->sizes, STATES + count,
                                  inputs, 0, NULL);
    out[0] = wb_result_of(node, 0, (wb_dtype)x->dtype, x->ndim, x->sizes);
    for (int k = 0; node && k < count; k++)
        out[1 + k] = wb_result_of(node, 1 + k, (wb_dtype)states[k]->dtype, x->ndim, x->sizes);
    return wb_failed() ? wb_error_status() : WB_OK;
}

/* f32 for the two halves: steps are computed there and rounded once. */
static wb_array *wide(wb_array *x) { return x && wb_is_half(x->dtype) ? wb_cast(x, WB_F32) : x; }

static wb_array *guarded(wb_array *good, wb_array *fresh, wb_array *old) {
    wb_array *value = fresh && good ? SELECT(good, fresh, old) : NULL;
    return value ? wb_cast(value, (wb_dtype)old->dtype) : NULL;
}

/* The step's number: a weak number, whose type is that of the other operand; but not on devices
 * without f64. */
static wb_array *step_number(const wb_array *numbers, bool has_f64) {
    wb_array *t = wb_cast(next_count(numbers), has_f64 ? WB_F64 : WB_F32);
    if (t && has_f64) t->flags |= WB_NODE_WEAK;
    return t;
}

/* What a backend needs that has the rule as one loop: the row's numbers, and whether the step is
 * good. */
static void tell(const wb_rule_at *at, wb_array **parts) {
    for (int k = 0; k < WB_RULE_TOLD && at->told[k]; k++) *parts++ = at->told[k];
    *parts = at->good;
}

/* Calls the row's function, which must not read values, and must close the scopes that it opens. */
static bool take_step(wb_rule_at *at, const wb_rule_row *row) {
    wb_thread *thread = wb_thread_get();
    wb_user_call call;
    wb_user_call_begin(&call, "its step");
    thread->depth++;
    at->g = row->step(at);
    thread->depth--;
    return wb_user_call_end(&call, row->name);
}

/* The results of a row's function have the sizes of its arguments, or are one number, which counts
 * for all elements. */
static bool check_left(const wb_rule_row *row, const char *what, const wb_array *x,
                       const wb_array *like) {
    if (!x && !wb_failed())
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: its step returned NULL for %s, without an error",
                      row->name, what);
    if (!x) return false;
    if (x->ndim > 0 && !wb_same_sizes(x, like))
        (void)wb_fail(WB_ERROR_SHAPE, "%s: %s must be %s, but its step left %s", row->name, what,
                      wb_text_of(like), wb_text_of(x));
    else if (wb_dtype_is_float((wb_dtype)like->dtype) != wb_dtype_is_float((wb_dtype)x->dtype))
        (void)wb_fail(WB_ERROR_DTYPE, "%s: %s must be %s, but its step left %s", row->name, what,
                      wb_dtype_name((wb_dtype)like->dtype), wb_dtype_name((wb_dtype)x->dtype));
    else
        return true;
    return false;
}

static bool check_all_left(const wb_rule_at *at, const wb_rule_at *before, const wb_rule_row *row) {
    bool fine = check_left(row, "what it returns", at->g, before->x) &&
                check_left(row, "x", at->x, before->x) && check_left(row, "t", at->t, before->t) &&
                check_left(row, "good", at->good, before->good);
    for (int k = 0; k < WB_RULE_STATES && fine; k++) {
        if (before->state[k])
            fine = check_left(row, row->states[k].name, at->state[k], before->state[k]);
        else if (at->state[k])
            fine = wb_fail_null(WB_ERROR_ARGUMENT,
                                "%s: its step set state %d, which the rule does not have",
                                row->name, k) != NULL;
    }
    return fine;
}

static bool expand_link(wb_rule_at *at, link *l, wb_array *const *states, wb_array **fresh) {
    const int count = wb_rule_row_states(l->row);
    at->link_ = l;
    for (int k = 0; k < WB_RULE_STATES; k++) at->state[k] = k < count ? states[k] : NULL;
    const wb_rule_at before = *at;
    if (!take_step(at, l->row) || !check_all_left(at, &before, l->row)) return false;
    for (int k = 0; k < count; k++)
        if (!(fresh[k] = guarded(before.good, at->state[k], states[k]))) return false;
    return true;
}

static wb_array *see_master(wb_rule_at *at) {
    at->x = at->state[0];
    return at->g;
}

const wb_rule_row wb_mixed_precision_row = {.name = "MixedPrecision",
                                            .states = {{"master", WB_START_X, NULL}},
                                            .step = see_master,
                                            .is_elementwise = true};

/* Results, then what describe_step tells. */
bool wb_expand_step(wb_array *node, wb_array **parts) {
    wb_array **in = node->inputs, *numbers = in[NUMBERS];
    const int links = (int)(numbers->attributes.step.flags >> LINKS);
    link l = {.numbers = numbers,
              .late = LATE,
              .constant = ROWS + links,
              .has_f64 = wb_device_has_f64(wb_node_device(in[X]))};
    wb_rule_at at = {.x = wide(in[X]),
                     .g = wide(in[GRADIENT]),
                     .t = step_number(numbers, l.has_f64),
                     .good = is_good(numbers)};
    int state = 0;
    for (int i = 0; i < links; i++) {
        l.row = (const wb_rule_row *)(intptr_t)numbers->attributes.words[ROWS + i];
        if (!expand_link(&at, &l, in + STATES + state, parts + 1 + state)) return false;
        state += wb_rule_row_states(l.row);
        const int settings = wb_rule_settings(l.row);
        for (int k = 0; k < settings; k++) pass(&l, k);
        l.first += settings;
    }
    if (links == 1) tell(&at, parts + 1 + state);
    wb_array *fresh = SUB(at.x, at.g);
    if ((const void *)(intptr_t)numbers->attributes.words[ROWS] == &wb_mixed_precision_row &&
        !(parts[1] = guarded(at.good, fresh, in[STATES])))
        return false;
    return (parts[0] = guarded(at.good, fresh, in[X])) != NULL;
}

/* ---- names ---- */

/* A step of one row whose settings, but for the first, are constants: x, g, states, what the row
 * tells, whether the step is good; and these settings. */
static bool describe_step(wb_array *node, wb_array *const *parts, wb_offer *offer) {
    const wb_array *numbers = node->inputs[NUMBERS];
    const uint64_t bits = (uint64_t)numbers->attributes.step.flags;
    const int states = node->ninputs - STATES;
    const uint64_t late = bits >> IS_LATE & 0xffffff;
    if (bits >> LINKS != 1 || late > 1 || 1 + states > WB_OFFER_RESULTS) return false;
    offer->name = ((const wb_rule_row *)(intptr_t)numbers->attributes.words[ROWS])->name;
    offer->in[offer->input_count++] = node->inputs[X];
    offer->in[offer->input_count++] = node->inputs[GRADIENT];
    for (int k = 0; k < states; k++) offer->in[offer->input_count++] = node->inputs[STATES + k];
    for (int k = 1 + states; parts[k] && offer->input_count < WB_OFFER_INPUTS; k++)
        offer->in[offer->input_count++] = parts[k];
    for (int k = ROWS + 1; k < numbers->nattributes; k++)
        offer->numbers[k - ROWS - 1] = wb_value_of(numbers->attributes.words[k]);
    offer->result_count = 1 + states;
    return true;
}

bool wb_describe_callable(wb_array *node, wb_array *const *parts, wb_offer *offer) {
    *offer = (wb_offer){.name = wb_op_rows[node->op].name};
    if (wb_op_rows[node->op].kind != WB_KIND_CALLABLE) return false;
    if (node->op == WB_OP_step) return describe_step(node, parts, offer);
    if (node->ninputs > WB_OFFER_INPUTS || node->nattributes > WB_OFFER_NUMBERS) return false;
    for (; offer->input_count < node->ninputs; offer->input_count++)
        offer->in[offer->input_count] = node->inputs[offer->input_count];
    for (int i = 0; i < node->nattributes; i++)
        offer->numbers[i] = wb_value_of(node->attributes.words[i]);
    while (offer->result_count < WB_OFFER_RESULTS && parts[offer->result_count])
        offer->result_count++;
    return true;
}
