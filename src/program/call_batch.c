/* The matrices of a batched product may begin anywhere. If their offsets follow a few dimensions,
 * as those of views and broadcasts do, the text computes them from sizes and strides; otherwise it
 * contains a table of them. */
#include "program/call_batch.h"

enum { MOST_DIMENSIONS = 6 };

/* product = i0 + sizes[0] * (i1 + sizes[1] * ...), offset = sum of i * stride */
typedef struct dimensions {
    int count;
    int64_t sizes[MOST_DIMENSIONS];
    int64_t strides[3][MOST_DIMENSIONS];
} dimensions;

typedef struct lists {
    const int64_t *of[3];
} lists;

/* How many entries of the lists, taking every `step`-th one, continue with the stride of the first
 * two. */
static int64_t run_of(const lists *l, int64_t batch, int64_t step, int64_t by[3]) {
    const int64_t count = batch / step;
    for (int i = 0; i < 3; i++) by[i] = count > 1 ? l->of[i][step] - l->of[i][0] : 0;
    int64_t run = 1;
    for (; run < count; run++)
        for (int i = 0; i < 3; i++)
            if (l->of[i][run * step] - l->of[i][(run - 1) * step] != by[i]) return run;
    return run;
}

static int64_t offset_at(const dimensions *d, int list, int64_t product) {
    int64_t offset = 0;
    for (int i = 0; i < d->count; i++) {
        offset += product % d->sizes[i] * d->strides[list][i];
        product /= d->sizes[i];
    }
    return offset;
}

/* False: the offsets are not such sums. */
static bool find_dimensions(const lists *l, int64_t batch, dimensions *d) {
    *d = (dimensions){.count = 0};
    int64_t step = 1;
    for (; step < batch; d->count++) {
        if (d->count == MOST_DIMENSIONS) return false;
        int64_t by[3];
        d->sizes[d->count] = run_of(l, batch, step, by);
        for (int i = 0; i < 3; i++) d->strides[i][d->count] = by[i];
        step *= d->sizes[d->count];
        if (batch % step) return false;
    }
    for (int i = 0; i < 3; i++)
        for (int64_t p = 0; p < batch; p++)
            if (l->of[i][p] != l->of[i][0] + offset_at(d, i, p)) return false;
    return true;
}

static const char *const names[3] = {"offset_a", "offset_b", "offset_c"};
static const char *const firsts[3] = {"FIRST_A", "FIRST_B", "FIRST_C"};
static const char *const strides[3] = {"BATCH_A", "BATCH_B", "BATCH_C"};

static void add_dimensions(wb_call_source *s, const lists *l, const dimensions *d) {
    for (int k = 0; k < 3; k++) wb_call_word(s, firsts[k], l->of[k][0]);
    for (int i = 0; i < d->count; i++) {
        wb_call_word_at(s, "BATCH", i, d->sizes[i]);
        for (int k = 0; k < 3; k++) wb_call_word_at(s, strides[k], i, d->strides[k][i]);
    }
    wb_text_add(&s->lines, "#define OFFSETS(product) integer batch_ = (product)");
    for (int k = 0; k < 3; k++) wb_text_add(&s->lines, ", %s = %s", names[k], firsts[k]);
    wb_text_add(&s->lines, ";");
    for (int i = 0; i < d->count; i++) {
        wb_text_add(&s->lines, " { const integer i_ = batch_ %% BATCH_%d; batch_ /= BATCH_%d;", i,
                    i);
        for (int k = 0; k < 3; k++)
            wb_text_add(&s->lines, " %s += i_ * %s_%d;", names[k], strides[k], i);
        wb_text_add(&s->lines, " }");
    }
    wb_text_add(&s->lines, "\n");
}

static void add_numbers(wb_call_source *s, const lists *l, int64_t batch) {
    for (int k = 0; k < 3; k++) {
        wb_text_add(&s->lines, "WB_FN integer k_%s_of(integer product) {\n    switch (product) {\n",
                    names[k]);
        for (int64_t p = 0; p < batch; p++)
            wb_text_add(&s->lines, "    case %lld: return (integer)%lld;\n", (long long)p,
                        (long long)l->of[k][p]);
        wb_text_add(&s->lines, "    default: return 0;\n    }\n}\n");
    }
    wb_text_add(&s->lines,
                "#define OFFSETS(product) const integer offset_a = k_offset_a_of(product), "
                "offset_b = k_offset_b_of(product), offset_c = k_offset_c_of(product);\n");
}

static void reach(wb_call_source *s, const int64_t *list, int64_t batch) {
    for (int64_t p = 0; p < batch; p++) wb_call_reaches(s, list[p] < 0 ? -list[p] : list[p]);
}

void wb_call_batch(wb_call_source *s, const wb_matmul_call *p) {
    static const int64_t zero[1] = {0};
    const bool is_one = p->batch <= 1 && !p->offset_a;
    const lists l = {
        {is_one ? zero : p->offset_a, is_one ? zero : p->offset_b, is_one ? zero : p->offset_c}};
    dimensions d;
    for (int k = 0; k < 3; k++) reach(s, l.of[k], p->batch);
    if (p->batch < 1 || is_one) {
        wb_text_add(
            &s->lines,
            "#define OFFSETS(product) const integer offset_a = 0, offset_b = 0, offset_c = 0;\n");
    } else if (find_dimensions(&l, p->batch, &d)) {
        add_dimensions(s, &l, &d);
    } else {
        add_numbers(s, &l, p->batch);
    }
}
