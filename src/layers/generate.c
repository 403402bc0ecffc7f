/* wb_generate: texts, token by token, by a model that has a cache of keys and values. */
#include <weber/language.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "array/user_call.h"
#include "base/memory.h"
#include "layers/layer.h"

typedef struct candidate {
    int32_t token;
    double logit, probability;
} candidate;

typedef struct sampler {
    const wb_generate_desc *d;
    candidate *all; /* of the whole vocabulary */
    int64_t vocabulary, capacity;
} sampler;

/* ---- which tokens ---- */

static int likelier_first(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->logit != y->logit) return x->logit < y->logit ? 1 : -1;
    return (x->token > y->token) - (x->token < y->token);
}

/* Changes the logits of tokens that the text has, each once. */
static void make_repetition_dearer(const sampler *s, int64_t length) {
    const double by = s->d->repetition;
    for (int64_t i = 0; by != 1 && i < length; i++) {
        const int32_t token = s->d->tokens[i];
        if (token < 0 || token >= s->vocabulary || s->all[token].probability < 0) continue;
        double *logit = &s->all[token].logit;
        if (isfinite(*logit)) /* and stays so */
            *logit = fmin(fmax(*logit > 0 ? *logit / by : *logit * by, -DBL_MAX), DBL_MAX);
        s->all[token].probability = -1; /* its mark */
    }
}

static int64_t likeliest(const candidate *all, int64_t count) {
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++)
        if (all[i].logit > all[best].logit) best = i;
    return best;
}

/* Sets the probabilities of the first count candidates. */
static void normalise(candidate *all, int64_t count, double temperature) {
    const double most = all[likeliest(all, count)].logit;
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += all[i].probability = exp((all[i].logit - most) / temperature);
    for (int64_t i = 0; i < count; i++) all[i].probability /= sum;
}

/* Moves those with at least this probability to the beginning; returns how many they are. */
static int64_t keep_likelier(candidate *all, int64_t count, double probability) {
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++)
        if (all[i].probability >= probability) all[kept++] = all[i];
    return kept;
}

static bool is_likelier(const candidate *a, const candidate *b) { return likelier_first(a, b) < 0; }

static void swap(candidate *a, candidate *b) {
    const candidate c = *a;
    *a = *b, *b = c;
}

/* Moves the candidate at i down in a heap whose first one is the least likely. */
static void sift(candidate *heap, int64_t count, int64_t i) {
    for (int64_t child; (child = 2 * i + 1) < count; i = child) {
        if (child + 1 < count && is_likelier(&heap[child], &heap[child + 1])) child++;
        if (!is_likelier(&heap[i], &heap[child])) return;
        swap(&heap[i], &heap[child]);
    }
}

/* Moves the k likeliest to the beginning: few of a large vocabulary need not be sorted with it. */
static int64_t keep_top(candidate *all, int64_t count, int64_t k) {
    if (k >= count) return count;
    for (int64_t i = k / 2; i-- > 0;) sift(all, k, i);
    for (int64_t i = k; i < count; i++) {
        if (!is_likelier(&all[i], &all[0])) continue;
        swap(&all[i], &all[0]);
        sift(all, k, 0);
    }
    return k;
}

/* How many candidates, sorted, are left by top_k and top_p. All that are rarer than (1 - top_p) /
 * count have together less than 1 - top_p. */
static int64_t choose(sampler *s) {
    const wb_generate_desc *d = s->d;
    int64_t count = s->vocabulary;
    if (d->top_k == 0 && d->top_p >= 1) return count;
    if (d->top_k > 0) {
        count = keep_top(s->all, count, d->top_k);
        normalise(s->all, count, d->temperature);
    }
    count = keep_likelier(s->all, count, (1 - d->top_p) / (double)count);
    qsort(s->all, (size_t)count, sizeof *s->all, likelier_first);
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        sum += s->all[i].probability;
        if (sum >= d->top_p) return i + 1;
    }
    return count;
}

/* The candidate at this part, from 0 to 1, of the sum of probabilities. */
static int32_t draw(const candidate *all, int64_t count, double part) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += all[i].probability;
    double left = part * sum;
    for (int64_t i = 0; i < count; i++)
        if ((left -= all[i].probability) < 0) return all[i].token;
    return all[likeliest(all, count)].token;
}

static bool read_logits(sampler *s, wb_array *logits) {
    const float *x = wb_read_begin(logits);
    if (!x) return false;
    bool is_good = false;
    for (int64_t i = 0; i < s->vocabulary; i++) {
        const double logit = (double)x[i];
        s->all[i] = (candidate){.token = (int32_t)i, .logit = logit};
        is_good = is_good || logit > -(double)INFINITY;
        if (isfinite(logit) || logit < 0) continue;
        (void)wb_fail(WB_ERROR_ARGUMENT, "the logit of token %lld is %g", (long long)i, logit);
        break;
    }
    wb_read_end(logits);
    if (!is_good && !wb_failed())
        (void)wb_fail(WB_ERROR_ARGUMENT, "the logits of all tokens are -inf");
    return !wb_failed();
}

/* -1 with an error. */
static int32_t sample(sampler *s, wb_array *logits, int64_t length) {
    if (!read_logits(s, logits)) return -1;
    make_repetition_dearer(s, length);
    if (s->d->temperature == 0) return (int32_t)likeliest(s->all, s->vocabulary);
    const double part = wb_item(wb_uniform(WB_F64, 1));
    normalise(s->all, s->vocabulary, s->d->temperature);
    const int64_t count = choose(s);
    return wb_failed() ? -1 : draw(s->all, count, part);
}

/* ---- the text ---- */

/* A model without its head gives features, of which it would take one for a token. */
static bool check_vocabulary(const sampler *s) {
    for (wb_module m = {0}; wb_next_module(s->d->model, &m);) {
        if (m.layer->class_ != &wb_embedding_class) continue;
        const int64_t words = wb_size(wb_get(m.layer, "weight"), 1);
        if (words <= s->vocabulary) return true;
        (void)wb_fail(WB_ERROR_SHAPE,
                      "the model has %lld words, but gives %lld numbers for the next one: these "
                      "are no logits; perhaps it was made without its head",
                      (long long)words, (long long)s->vocabulary);
        return false;
    }
    return true;
}

/* f32 (vocabulary): of the last of the tokens from `seen` on. */
static wb_array *last_logits(sampler *s, int64_t seen, int64_t length) {
    const int64_t count = length - seen;
    wb_array *x = wb_from(WB_I32, s->d->tokens + seen, count);
    wb_array *y = x ? wb_apply(s->d->model, x) : NULL;
    if (!y) return NULL;
    if (y->ndim != 2 || y->sizes[1] != count || y->sizes[0] < 1 || y->sizes[0] > INT32_MAX)
        return wb_fail_null(WB_ERROR_SHAPE,
                            "the model must give logits (vocabulary, %lld) for tokens (%lld), got "
                            "%s",
                            (long long)count, (long long)count, wb_text_of(y));
    const bool is_known = s->vocabulary == y->sizes[0];
    s->vocabulary = y->sizes[0];
    if (!is_known && !check_vocabulary(s)) return NULL;
    if (!wb_reserve((void **)&s->all, &s->capacity, sizeof *s->all, s->vocabulary)) return NULL;
    y = wb_slice(y, 1, count - 1, count, 1);
    return y ? wb_cpu(wb_cast(y, WB_F32)) : NULL;
}

static int32_t next_token(sampler *s, int64_t seen, int64_t length) {
    wb_scope_open();
    wb_array *logits = last_logits(s, seen, length);
    const int32_t token = logits ? sample(s, logits, length) : -1;
    return wb_scope_close() == WB_OK ? token : -1;
}

static bool call_each(const wb_generate_desc *d, int32_t token) {
    wb_user_call call;
    const uint64_t mark = wb_cache_mark(d->model);
    wb_user_call_begin(&call, ".each");
    const bool wants_more = d->each(d->user, token);
    if (!wb_user_call_end(&call, NULL) || wb_failed() || !wants_more) return false;
    if (!wb_check_layer(".each", d->model)) return false;
    if (wb_cache_mark(d->model) == mark) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT, ".each must not use the model: its cache is another one now");
    return false;
}

static bool goes_on(const wb_generate_desc *d, int32_t token) {
    return (!d->each || call_each(d, token)) && (token != d->end || d->end < 0);
}

static bool check(const wb_generate_desc *d) {
    const struct {
        bool is_good;
        const char *what;
        double got;
    } rows[] = {
        {d->count >= 1, "count must be at least 1", (double)d->count},
        {d->most >= d->count, ".most, the length of the whole text, must be at least count",
         (double)d->most},
        {d->temperature >= 0 && isfinite(d->temperature), "temperature must be at least 0",
         d->temperature},
        {d->top_k >= 0, "top_k must be at least 0", (double)d->top_k},
        {d->top_p > 0 && d->top_p <= 1, "top_p must be above 0 and at most 1", d->top_p},
        {d->repetition > 0 && isfinite(d->repetition), "repetition must be positive",
         d->repetition},
    };
    if (!wb_check_start("wb_generate", d->start_) || !wb_check_layer("wb_generate", d->model))
        return false;
    if (!d->tokens) return wb_fail_argument_null("wb_generate", "tokens") != NULL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!rows[i].is_good) {
            (void)wb_fail(WB_ERROR_ARGUMENT, "wb_generate: %s, got %g", rows[i].what, rows[i].got);
            return false;
        }
    return true;
}

int64_t wb_generate_make(wb_generate_desc d) {
    if (wb_failed()) return wb_not_run("wb_generate"), -1;
    if (!check(&d)) return -1;
    sampler s = {.d = &d};
    int64_t length = d.count, seen = 0;
    const uint64_t errors = wb_error_count();
    if (wb_cache(d.model, d.most) == WB_OK)
        while (length < d.most) {
            const int32_t token = next_token(&s, seen, length);
            if (token < 0) break;
            seen = length, d.tokens[length++] = token;
            if (!goes_on(&d, token)) break;
        }
    wb_release(s.all);
    if (wb_failed()) wb_error_prefix(errors, "wb_generate: ");
    const bool failed = wb_failed();
    (void)wb_cache(d.model, 0);
    return failed || wb_failed() ? -1 : length;
}
