/* Connectionist temporal classification. */
#include <math.h>

#include <weber/scan.h>

#include "losses/labels.h"
#include "losses/loss.h"

/* A log-probability so small that nothing is left of it beside any other, but finite, so that
 * neither sums nor slopes meet inf - inf. What comes below HOPELESS is impossible. */
#define NEVER    (-1e30)
#define HOPELESS (-1e29)

/* One loss. K classes, T steps, N columns, U labels; S = 2 U + 1 places of the labels with blanks
 * around each. */
typedef struct ctc {
    wb_loss *loss;
    int64_t K, T, N, U, S;
    int64_t blank;
    wb_array *said;  /* (S, N) i32: the class at each place */
    wb_array *skips; /* (S, N): the place can be reached from the one two before */
    wb_array *steps; /* (1, N), or NULL: of each column */
} ctc;

static wb_array *full(const ctc *c, wb_dtype dtype, double value, int64_t rows) {
    return wb_full_make(dtype, value, 2, (const int64_t[]){rows, c->N});
}

/* x (S, N) moved by places towards the end, with value in front. */
static wb_array *moved(const ctc *c, wb_array *x, int64_t places, double value) {
    if (places > c->S) places = c->S;
    wb_array *parts[] = {full(c, (wb_dtype)x->dtype, value, places),
                         wb_slice(x, 0, 0, c->S - places, 1)};
    return wb_concat_make(0, 2, parts);
}

/* ---- checks ---- */

static bool fail_sizes(const ctc *c) {
    (void)wb_fail(WB_ERROR_SHAPE,
                  "%s: the prediction must be (classes, steps, batch) and the target integers "
                  "(labels, batch), or both without batch; got %s and %s of %s",
                  c->loss->name, wb_text_of(c->loss->p), wb_dtype_name((wb_dtype)c->loss->y->dtype),
                  wb_text_of(c->loss->y));
    return false;
}

static bool take_sizes(ctc *c) {
    const wb_array *p = c->loss->p, *y = c->loss->y;
    const bool fits = (p->ndim == 2 || p->ndim == 3) && y->ndim == p->ndim - 1 && wb_is_integer(y);
    if (!fits || (p->ndim == 3 && p->sizes[2] != y->sizes[1])) return fail_sizes(c);
    c->K = p->sizes[0], c->T = p->sizes[1], c->N = p->ndim == 3 ? p->sizes[2] : 1;
    c->U = y->sizes[0], c->S = 2 * c->U + 1;
    const int64_t blank = c->loss->desc->blank;
    c->blank = blank < 0 ? blank + c->K : blank;
    if (c->blank >= 0 && c->blank < c->K) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT, "%s: blank must be one of %lld classes, 0 to %lld, got %lld",
                  c->loss->name, (long long)c->K, (long long)c->K - 1, (long long)blank);
    return false;
}

/* Lengths as (1, N) i32; those that can be read are 0 to most. */
static wb_array *lengths(const ctc *c, const char *what, wb_array *x, int64_t most) {
    if (!wb_is_integer(x) || x->ndim != 1 || x->sizes[0] != c->N)
        return wb_fail_null(
            WB_ERROR_SHAPE, "%s: %s must be integers, one for each of %lld columns, got %s of %s",
            c->loss->name, what, (long long)c->N, wb_dtype_name((wb_dtype)x->dtype), wb_text_of(x));
    for (int64_t i = 0; wb_is_readable(x) && i < c->N; i++) {
        const int64_t length = wb_whole_at(x, i);
        if (length < 0 || length > most)
            return wb_fail_null(
                WB_ERROR_ARGUMENT, "%s: %s must be 0 to %lld, got %lld at position %lld",
                c->loss->name, what, (long long)most, (long long)length, (long long)i);
    }
    return wb_reshape(wb_cast(x, WB_I32), 1, c->N);
}

/* ---- places ---- */

/* The labels (U, N) i32; beyond a column's length it has a label that is not the blank. */
static wb_array *labels(const ctc *c, wb_array *counts) {
    wb_array *y = wb_reshape(wb_cast(c->loss->y, WB_I32), c->U, c->N);
    if (!counts) return y;
    wb_array *any = wb_scalar(WB_I32, c->blank == 0 && c->K > 1);
    return SELECT(LT(wb_iota(WB_I32, 0, c->U, 1), counts), y, any);
}

static bool fail_label(const ctc *c, int64_t label, int64_t i) {
    (void)wb_fail(WB_ERROR_ARGUMENT,
                  "%s: label %lld at position %lld of column %lld must be one of %lld classes, 0 "
                  "to %lld, and not the blank %lld",
                  c->loss->name, (long long)label, (long long)(i % c->U), (long long)(i / c->U),
                  (long long)c->K, (long long)c->K - 1, (long long)c->blank);
    return false;
}

/* Checks the labels if they can be read without waiting; *seen says whether they could. */
static bool check_labels(const ctc *c, bool *seen) {
    const wb_array *y = c->loss->y, *counts = c->loss->desc->target_lengths;
    *seen = c->U == 0 || (wb_is_readable(y) && (!counts || wb_is_readable(counts)));
    for (int64_t i = 0; *seen && i < c->U * c->N; i++) {
        const int64_t label = wb_whole_at(y, i);
        if (counts && i % c->U >= wb_whole_at(counts, i / c->U)) continue;
        if (label < 0 || label >= c->K || label == c->blank) return fail_label(c, label, i);
    }
    return true;
}

/* The labels; computing them is an error where one is not a class, or is the blank. */
static wb_array *guarded(const ctc *c, wb_array *y) {
    const double K = (double)c->K;
    wb_array *looked_at = SELECT(EQ(y, NUM((double)c->blank)), NUM(K), y);
    return ADD(y, wb_labels_guard(c->loss->name, looked_at, c->K));
}

/* blank y1 blank y2 ... blank, and which places can be skipped to. */
static bool take_places(ctc *c, wb_array *counts) {
    bool seen;
    if (!check_labels(c, &seen)) return false;
    wb_array *blanks = full(c, WB_I32, (double)c->blank, 1);
    c->said = blanks;
    if (c->U > 0) {
        wb_array *y = labels(c, counts);
        if (!seen) y = guarded(c, y);
        wb_array *pairs[] = {full(c, WB_I32, (double)c->blank, c->U), y};
        wb_array *all = wb_permute(wb_stack_make(2, 2, pairs), 2, 0, 1);
        wb_array *parts[] = {wb_reshape(all, 2 * c->U, c->N), blanks};
        c->said = wb_concat_make(0, 2, parts);
    }
    if (!c->said) return false;
    wb_array *before = moved(c, c->said, 2, (double)c->blank);
    c->skips = AND(NE(c->said, NUM((double)c->blank)), NE(c->said, before));
    return c->skips != NULL;
}

/* ---- the recursion ---- */

/* (S, N, T): the logarithm of the probability of each place's class at each step. */
static wb_array *chances(const ctc *c) {
    const int64_t sizes[] = {c->K, c->T, c->N};
    wb_array *logs = wb_permute(wb_logsoftmax(wb_reshape_make(c->loss->p, 3, sizes)), 0, 2, 1);
    wb_array *first = MUL(wb_iota(WB_I32, 1, 1, c->N), wb_scalar(WB_I32, (double)c->K));
    wb_array *flat = wb_reshape(logs, c->K * c->N, c->T);
    return MAX(wb_gather(flat, ADD(c->said, first), 0), NUM(NEVER));
}

/* log(exp a + exp b + exp c) */
static wb_array *log_sum(wb_array *a, wb_array *b, wb_array *c) {
    wb_array *top = wb_stop_gradient(MAX(MAX(a, b), c));
    wb_array *sum = ADD(ADD(EXP(SUB(a, top)), EXP(SUB(b, top))), EXP(SUB(c, top)));
    return ADD(LOG(sum), top);
}

/* carry: the logarithm of the chance to be at each place; inputs: chances and, with lengths, the
 * number of the step. */
static void step(void *context, wb_array **carries, wb_array *const *inputs, wb_array **outputs) {
    const ctc *c = context;
    wb_array *here = carries[0];
    (void)outputs;
    wb_array *from_two = SELECT(c->skips, moved(c, here, 2, NEVER), NUM(NEVER));
    wb_array *next = ADD(log_sum(here, moved(c, here, 1, NEVER), from_two), inputs[0]);
    carries[0] = c->steps ? SELECT(LT(inputs[1], c->steps), next, here) : next;
}

/* At the place before the first one with certainty: the first step goes to blank or label 1. */
static wb_array *start(const ctc *c, wb_dtype dtype) {
    wb_array *at_first = EQ(wb_iota_make(WB_I32, 0, 2, (const int64_t[]){c->S, c->N}), NUM(0));
    return SELECT(at_first, wb_scalar(dtype, 0), wb_scalar(dtype, NEVER));
}

/* (1, N): the chance to end at the last label or the blank after it. */
static wb_array *at_the_end(const ctc *c, wb_array *chance, wb_array *counts) {
    wb_array *place = wb_iota(WB_I32, 0, c->S, 1);
    wb_array *last = counts ? ADD(counts, counts) : wb_scalar(WB_I32, (double)(c->S - 1));
    wb_array *is_end = OR(EQ(place, last), EQ(place, SUB(last, wb_scalar(WB_I32, 1))));
    return wb_logsumexp(SELECT(is_end, chance, NUM(NEVER)));
}

static wb_array *terms(const ctc *c, wb_array *counts) {
    wb_array *emissions = chances(c);
    if (!emissions) return NULL;
    wb_array *carry = start(c, (wb_dtype)emissions->dtype);
    wb_array *inputs[] = {emissions, wb_iota(WB_I32, 0, c->T)};
    if (wb_scan(step, (void *)(uintptr_t)c, 1, &carry, c->steps ? 2 : 1, inputs, 0, NULL) != WB_OK)
        return NULL;
    wb_array *l = NEG(at_the_end(c, carry, counts));
    const double impossible = c->loss->desc->zero_infinity ? 0 : (double)INFINITY;
    return SELECT(GT(l, NUM(-HOPELESS)), NUM(impossible), l);
}

static wb_array *of_sequences(wb_loss *loss) {
    ctc c = {.loss = loss};
    const wb_loss_desc *d = loss->desc;
    wb_array *counts = NULL;
    if (!take_sizes(&c)) return NULL;
    if (d->input_lengths && !(c.steps = lengths(&c, "input_lengths", d->input_lengths, c.T)))
        return NULL;
    if (d->target_lengths && !(counts = lengths(&c, "target_lengths", d->target_lengths, c.U)))
        return NULL;
    if (!take_places(&c, counts)) return NULL;
    return wb_loss_aggregate(loss, terms(&c, counts), NULL);
}
WB_LOSS_FUNCTIONS(ctc_loss, WB_LOSS_TERMS | WB_LOSS_CTC, of_sequences)
