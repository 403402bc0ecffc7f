/* The sums of which metrics are made. */
#include "train/sums.h"

#include <math.h>
#include <stdlib.h>

#include <weber/device.h>
#include <weber/distributed.h>

#include "base/memory.h"
#include "data/loader.h"
#include "losses/labels.h"
#include "ops/build.h"

/* ---- sums ---- */

static bool add(wb_sums *s, wb_sum_name name, wb_array *term) {
    wb_array *old = s->of[name];
    wb_array *fresh = wb_keep(old ? ADD(old, term) : term);
    if (!fresh) return false;
    wb_free(old);
    s->of[name] = fresh;
    return true;
}

/* In double precision where the device has it. */
static wb_array *sum_of(wb_array *x) {
    const bool has_f64 = wb_device_has_f64(wb_node_device(x));
    return wb_sum(wb_cast(x, has_f64 ? WB_F64 : WB_F32));
}

static wb_array *count_of(wb_array *is_so) { return wb_sum(wb_cast(is_so, WB_BOOL)); } /* i64 */

bool wb_sums_add_loss(wb_sums *s, wb_array *loss, wb_array *divisor, int64_t observations) {
    if (!loss && !wb_failed()) (void)wb_fail_argument_null("wb_evaluate", "the loss");
    if (loss && wb_count(loss) != 1)
        (void)wb_fail(WB_ERROR_SHAPE, "wb_evaluate: the loss is %s, not one number",
                      wb_text_of(loss));
    if (wb_failed()) return false;
    loss = sum_of(loss); /* so that both are in one type */
    wb_array *weight = divisor ? sum_of(divisor) : wb_late((double)observations);
    weight = loss && weight ? wb_cast(weight, (wb_dtype)loss->dtype) : NULL;
    return add(s, WB_SUM_LOSS, MUL(loss, weight)) && add(s, WB_SUM_WEIGHT, weight);
}

double wb_sums_loss(const wb_sums *s) {
    const double loss = wb_item(s->of[WB_SUM_LOSS]), weight = wb_item(s->of[WB_SUM_WEIGHT]);
    return weight != 0 ? loss / weight : loss;
}

typedef wb_array *change_fn(wb_array *sum);
/* Also if the sum is NaN, as the mean of no numbers is. */
static wb_array *emptied(wb_array *sum) {
    return wb_beside(sum, wb_full_make((wb_dtype)sum->dtype, 0, sum->ndim, sum->sizes));
}
static wb_array *joined(wb_array *sum) { return wb_allreduce(sum, WB_REDUCE_SUM); }

/* All but the shift, which is not a sum. */
static bool change(wb_sums *s, change_fn *to) {
    for (int i = 0; i < WB_SUM_SHIFT; i++) {
        if (!s->of[i]) continue;
        wb_array *fresh = wb_keep(to(s->of[i]));
        if (!fresh) return false;
        wb_free(s->of[i]);
        s->of[i] = fresh;
    }
    return true;
}

static void drop_scores(wb_sums *s) {
    for (int64_t i = 0; i < s->batches; i++) wb_free(s->scores[i]), wb_free(s->labels[i]);
    s->batches = 0;
}

bool wb_sums_empty(wb_sums *s) {
    drop_scores(s);
    return change(s, emptied);
}

/* The label of scores that only pad a rank's list. */
enum { NO_LABEL = 2 };

/* The arrays joined, padded with a number to `count` elements. */
static wb_array *filled_up(int64_t batches, wb_array *const *arrays, wb_dtype dtype, int64_t count,
                           double number) {
    wb_array **pieces = wb_alloc_list(batches + 1, sizeof *pieces);
    if (!pieces) return NULL;
    int64_t missing = count;
    for (int64_t i = 0; i < batches; i++) {
        pieces[i] = wb_cast(wb_reshape(arrays[i], -1), dtype);
        missing -= wb_count(arrays[i]);
    }
    wb_array *rest = wb_full_make(dtype, number, 1, &missing);
    pieces[batches] = batches ? wb_beside(arrays[0], rest) : rest;
    wb_array *all = wb_concat_make(0, (int)batches + 1, pieces);
    wb_release(pieces);
    return all;
}

/* Gathers the scores of all ranks into one batch on each rank; every rank's part is padded to the
 * same length. */
static bool gather_scores(wb_sums *s) {
    int64_t own = 0;
    for (int64_t i = 0; i < s->batches; i++) own += wb_count(s->scores[i]);
    wb_array *most = wb_allreduce(wb_scalar(WB_I64, (double)own), WB_REDUCE_MAX);
    const int64_t count = (int64_t)wb_item(most);
    if (wb_failed()) return false;
    wb_array *score = filled_up(s->batches, s->scores, WB_F32, count, 0);
    wb_array *label = filled_up(s->batches, s->labels, WB_U8, count, NO_LABEL);
    score = wb_keep(wb_allgather(score)), label = wb_keep(wb_allgather(label));
    drop_scores(s);
    if (score && label && WB_GROW(s->scores, s->batches, s->score_room) &&
        WB_GROW(s->labels, s->batches, s->label_room)) {
        s->scores[0] = score, s->labels[0] = label, s->batches = 1;
        return true;
    }
    wb_free(score), wb_free(label);
    return false;
}

bool wb_sums_join_ranks(wb_sums *s) {
    return change(s, joined) && (s->task != WB_TASK_YES_OR_NO || gather_scores(s));
}

void wb_sums_free(wb_sums *s) {
    for (int i = 0; i < WB_SUMS; i++) wb_free(s->of[i]);
    drop_scores(s);
    wb_release(s->scores);
    wb_release(s->labels);
}

/* ---- classes ---- */

static wb_array *numbers_to(int64_t count) {
    return wb_iota_make(WB_I32, 0, 2, (const int64_t[]){count, 1});
}

/* Where the label counts, (1, N) bool. */
static wb_array *which_count(const wb_sums *s, wb_array *label) {
    const int64_t ignore = s->desc->ignore;
    wb_array *all = GE(label, label);
    return ignore != INT64_MIN ? NE(label, NUM((double)ignore)) : all;
}

/* The number of scores that rank above the label's: larger ones, and equal ones of an earlier
 * class. */
static wb_array *rank_of(wb_array *p, wb_array *classes, wb_array *label) {
    wb_array *hit = EQ(classes, label);
    wb_array *own = wb_sum_dims(SELECT(hit, p, NUM(0)), 0);
    wb_array *before = OR(GT(p, own), AND(EQ(p, own), LT(classes, label)));
    /* the label's own score, computed twice, may differ from itself */
    return wb_sum_dims(AND(wb_cast(before, WB_BOOL), wb_not(hit)), 0);
}

/* (K + 1, K): row K counts observations without an answer, because a score is NaN. Products of
 * one-hot columns are exact in f32, for batches of up to 2^24 labels. */
static wb_array *matrix_of(int64_t K, wb_array *answer, wb_array *label, wb_array *counts) {
    wb_array *answers = wb_cast(AND(EQ(numbers_to(K + 1), answer), counts), WB_F32);
    wb_array *labels = wb_cast(EQ(numbers_to(K), label), WB_F32);
    return wb_cast(wb_matmul_transposed(answers, labels, false, true), WB_I64);
}

static bool add_classes(wb_sums *s, wb_array *p, wb_array *y) {
    const int64_t classes = wb_size(p, 0), k = s->desc->k;
    const bool are_labels = wb_are_labels(p, y, 0);
    if (are_labels && wb_is_readable(y) &&
        !wb_check_labels("wb_evaluate", y, classes, s->desc->ignore))
        return false;
    if (!are_labels) y = wb_argmax(y, 0);
    wb_array *label = wb_cast(wb_reshape(y, 1, -1), WB_I64), *counts = which_count(s, label);
    p = wb_reshape(p, classes, -1);
    wb_array *is_answer = wb_is_answer(p);
    wb_array *answer = SELECT(is_answer, wb_argmax(p, 0), wb_scalar(WB_I64, (double)classes));
    wb_array *known = AND(AND(GE(label, NUM(0)), LT(label, NUM((double)classes))), counts);
    wb_array *is_near = LT(rank_of(p, numbers_to(classes), label), NUM((double)k));
    wb_array *top = AND(AND(is_near, is_answer), known);
    if (!add(s, WB_SUM_COUNT, count_of(counts)) ||
        !add(s, WB_SUM_RIGHT, count_of(AND(EQ(answer, label), counts))) ||
        !add(s, WB_SUM_TOP, count_of(top)))
        return false;
    return classes > WB_MOST_CLASSES ||
           add(s, WB_SUM_CONFUSION, matrix_of(classes, answer, label, counts));
}

/* ---- yes or no ---- */

static bool keep_scores(wb_sums *s, wb_array *p, wb_array *is_yes) {
    if (!WB_GROW(s->scores, s->batches, s->score_room) ||
        !WB_GROW(s->labels, s->batches, s->label_room))
        return false;
    wb_array *score = wb_keep(wb_cast(p, WB_F32)), *label = wb_keep(is_yes);
    if (!score || !label) {
        wb_free(score), wb_free(label);
        return false;
    }
    s->scores[s->batches] = score, s->labels[s->batches++] = label;
    return true;
}

static bool add_yes_or_no(wb_sums *s, wb_array *p, wb_array *y) {
    p = wb_reshape(p, 1, -1);
    wb_array *is_yes = GT(wb_cast(wb_reshape(y, 1, -1), WB_F32), NUM(0.5));
    wb_array *answer = wb_cast(GT(p, NUM(s->desc->threshold)), WB_I64);
    wb_array *all = OR(is_yes, wb_not(is_yes));
    answer = SELECT(wb_is_answer(p), answer, wb_scalar(WB_I64, 2));
    wb_array *matrix = matrix_of(2, answer, wb_cast(is_yes, WB_I64), all);
    return add(s, WB_SUM_COUNT, wb_sum(matrix)) && add(s, WB_SUM_CONFUSION, matrix) &&
           keep_scores(s, p, is_yes);
}

/* ---- numbers ---- */

static bool add_numbers(wb_sums *s, wb_array *p, wb_array *y) {
    const wb_dtype dtype = p->dtype == WB_F64 ? WB_F64 : WB_F32;
    p = wb_cast(wb_reshape(p, -1), dtype), y = wb_cast(wb_reshape(y, -1), dtype);
    wb_array *d = SUB(p, y), *shift = s->of[WB_SUM_SHIFT];
    const bool is_part = s->desc->loader->shards > 1;
    if (!shift && !(shift = is_part ? wb_bcast(wb_mean(y), 0) : wb_mean(y))) return false;
    if (!s->of[WB_SUM_SHIFT] && !(s->of[WB_SUM_SHIFT] = wb_keep(shift))) return false;
    wb_array *from_shift = SUB(y, shift);
    return add(s, WB_SUM_COUNT, wb_scalar(WB_I64, (double)wb_count(y))) &&
           add(s, WB_SUM_SQUARES, sum_of(SQUARE(d))) && add(s, WB_SUM_SIZES, sum_of(ABS(d))) &&
           add(s, WB_SUM_TARGETS, sum_of(from_shift)) &&
           add(s, WB_SUM_TARGET_SQUARES, sum_of(SQUARE(from_shift)));
}

/* ---- tasks ---- */

static wb_task task_of(const wb_array *p, const wb_array *y) {
    const bool several = p->ndim > 1 && p->sizes[0] > 1;
    if (y->dtype == WB_BOOL)
        return several && wb_same_sizes(p, y) ? WB_TASK_CLASSES : WB_TASK_YES_OR_NO;
    return wb_is_integer(y) ? WB_TASK_CLASSES : WB_TASK_NUMBERS;
}

static bool fits(wb_task task, const wb_array *p, const wb_array *y) {
    if (!wb_dtype_is_float((wb_dtype)p->dtype)) return false;
    if (task != WB_TASK_CLASSES) return wb_count(p) == wb_count(y);
    return p->ndim > 0 && (wb_are_labels(p, y, 0) || wb_same_sizes(p, y));
}

/* Labels of classes that were read as numbers. */
static void hint_at_labels(const wb_array *p, const wb_array *y) {
    wb_array labels = *y;
    labels.dtype = WB_I32;
    if (wb_dtype_is_float((wb_dtype)y->dtype) && p->ndim > 0 && wb_are_labels(p, &labels, 0))
        wb_error_add("labels of classes must be integers: wb_cast(y, WB_I32)");
}

bool wb_sums_take_ignore(const char *function, wb_task task, int64_t ignore) {
    if (task == WB_TASK_BY_TARGET || task == WB_TASK_CLASSES || ignore == INT64_MIN) return true;
    return wb_fail(WB_ERROR_ARGUMENT,
                   "%s: ignore is a label of classes, but the task is %s, got %lld", function,
                   task == WB_TASK_NUMBERS ? "numbers" : "yes or no", (long long)ignore) == WB_OK;
}

bool wb_sums_add(wb_sums *s, wb_array *p, wb_array *y) {
    static const char *const wanted[] = {
        [WB_TASK_CLASSES] = "floating scores (K, ...) and labels (...) or one-hot columns (K, ...)",
        [WB_TASK_YES_OR_NO] = "floating scores and as many answers",
        [WB_TASK_NUMBERS] = "floating numbers and as many targets"};
    if (!wb_check_prediction("wb_evaluate", p, y)) return false;
    if (s->task == WB_TASK_BY_TARGET) s->task = task_of(p, y);
    if (!wb_sums_take_ignore("wb_evaluate", s->task, s->desc->ignore)) return false;
    if (!fits(s->task, p, y)) {
        (void)wb_fail(WB_ERROR_SHAPE,
                      "wb_evaluate: expected %s; the prediction is %s of %s, the target %s of %s",
                      wanted[s->task], wb_dtype_name((wb_dtype)p->dtype), wb_text_of(p),
                      wb_dtype_name((wb_dtype)y->dtype), wb_text_of(y));
        hint_at_labels(p, y);
        return false;
    }
    return s->task == WB_TASK_CLASSES     ? add_classes(s, p, y)
           : s->task == WB_TASK_YES_OR_NO ? add_yes_or_no(s, p, y)
                                          : add_numbers(s, p, y);
}

/* ---- reading ---- */

static double number(const wb_sums *s, wb_sum_name name) {
    return s->of[name] ? wb_item(s->of[name]) : (double)NAN;
}

static double ratio(int64_t part, int64_t all) { return all ? (double)part / (double)all : 0; }

typedef struct averages {
    double precision, recall, f1;
} averages;

/* Of class k in a matrix [label][answer], with an answer more than labels; false if it is neither a
 * label nor an answer. */
static bool of_class(const int64_t *matrix, int64_t classes, int64_t k, averages *a) {
    int64_t answers = 0, labels = 0, row = classes + 1;
    const int64_t right = matrix[k * row + k];
    for (int64_t i = 0; i <= classes; i++) labels += matrix[k * row + i];
    for (int64_t i = 0; i < classes; i++) answers += matrix[i * row + k];
    a->precision = ratio(right, answers);
    a->recall = ratio(right, labels);
    a->f1 = ratio(2 * right, answers + labels);
    return answers + labels > 0;
}

static void read_matrix(const wb_sums *s, wb_evaluation *e) {
    wb_array *matrix = s->of[WB_SUM_CONFUSION];
    const int64_t classes = wb_size(matrix, 1);
    const int64_t *counts = wb_read_begin(matrix);
    averages sum = {0, 0, 0}, of_yes = {0, 0, 0};
    int64_t occurring = 0, right = 0;
    for (int64_t k = 0; counts && k < classes; k++) {
        averages a;
        right += counts[k * (classes + 1) + k];
        if (!of_class(counts, classes, k, &a)) continue;
        occurring++;
        sum.precision += a.precision, sum.recall += a.recall, sum.f1 += a.f1;
        if (k == 1) of_yes = a;
    }
    wb_read_end(matrix);
    const bool is_yes_or_no = s->task == WB_TASK_YES_OR_NO;
    const double share = is_yes_or_no || !occurring ? 1 : (double)occurring;
    const averages *shown = is_yes_or_no ? &of_yes : &sum;
    e->precision = shown->precision / share;
    e->recall = shown->recall / share;
    e->f1 = shown->f1 / share;
    if (is_yes_or_no) e->accuracy = ratio(right, e->count);
    e->confusion = wb_slice(matrix, 0, 0, classes, 1);
}

/* ---- the area under the receiver's curve ---- */

typedef struct scored {
    double score;
    bool is_yes;
} scored;

static int by_score(const void *a, const void *b) {
    const double x = ((const scored *)a)->score, y = ((const scored *)b)->score;
    return (x > y) - (x < y);
}

/* How many there are; negative on failure. */
static int64_t read_scores(const wb_sums *s, scored *list) {
    const scored *const begin = list;
    for (int64_t i = 0; i < s->batches; i++) {
        const int64_t count = wb_count(s->scores[i]);
        const float *score = wb_read_begin(s->scores[i]);
        const uint8_t *label = wb_read_begin(s->labels[i]);
        for (int64_t k = 0; score && label && k < count; k++)
            if (label[k] != NO_LABEL) *list++ = (scored){(double)score[k], label[k] != 0};
        wb_read_end(s->scores[i]), wb_read_end(s->labels[i]);
    }
    return wb_failed() ? -1 : list - begin;
}

/* The share of pairs of a yes and a no in which the yes has the larger score: by the sum of the
 * ranks of yes, equal scores having their mean rank. */
static double area(scored *list, int64_t count) {
    double ranks = 0, yes = 0;
    qsort(list, (size_t)count, sizeof *list, by_score);
    for (int64_t i = 0, end; i < count; i = end) {
        int64_t equal = 0;
        for (end = i; end < count && list[end].score == list[i].score; end++)
            equal += list[end].is_yes;
        if (end == i) return (double)NAN; /* a score that is NaN */
        ranks += (double)equal * ((double)(i + 1 + end) / 2);
        yes += (double)equal;
    }
    const double no = (double)count - yes;
    return yes > 0 && no > 0 ? (ranks - yes * (yes + 1) / 2) / (yes * no) : (double)NAN;
}

static void read_auc(const wb_sums *s, wb_evaluation *e) {
    scored *list = wb_alloc_list(e->count + 1, sizeof *list);
    const int64_t count = list ? read_scores(s, list) : -1;
    if (count >= 0) e->auc = area(list, count);
    wb_release(list);
}

static void read_numbers(const wb_sums *s, wb_evaluation *e) {
    const double n = (double)e->count, sum = number(s, WB_SUM_TARGETS);
    const double spread = number(s, WB_SUM_TARGET_SQUARES) - sum * sum / n;
    e->mse = number(s, WB_SUM_SQUARES) / n;
    e->mae = number(s, WB_SUM_SIZES) / n;
    e->r2 = 1 - number(s, WB_SUM_SQUARES) / spread;
}

void wb_sums_read(wb_sums *s, wb_evaluation *e) {
    e->task = s->task;
    e->count = (int64_t)number(s, WB_SUM_COUNT);
    if (wb_failed()) return;
    if (s->task == WB_TASK_NUMBERS) read_numbers(s, e);
    if (s->of[WB_SUM_CONFUSION]) read_matrix(s, e);
    if (s->task == WB_TASK_YES_OR_NO) read_auc(s, e);
    if (s->task != WB_TASK_CLASSES) return;
    e->accuracy = number(s, WB_SUM_RIGHT) / (double)e->count;
    e->top_k = number(s, WB_SUM_TOP) / (double)e->count;
}
