/* The order of units: what may become one, against a search of all ways between them. */
#include "base/memory.h"
#include "evaluate/graph.h"
#include "support/support.h"

enum { MOST = 60, FAR = 2 * WB_MOST_LOOKS };

typedef struct fixture {
    wb_units all;
    wb_unit units[FAR];
} fixture;

static void begin(fixture *f) { *f = (fixture){.all = {.first = -1, .last = -1}}; }

static int32_t add(fixture *f) {
    f->all.at = f->units;
    const int32_t number = (int32_t)f->all.count++;
    f->units[number] = (wb_unit){.epilogue = -1, .fused_into = -1, .merged_into = -1};
    wb_unit_put_last(&f->all, number);
    return number;
}

static void end(fixture *f) {
    for (int64_t i = 0; i < f->all.count; i++) wb_release(f->units[i].needs);
}

/* True if `from` needs `to`, by a way that does not begin with `to` itself where `indirectly`. */
static bool reaches(const fixture *f, int32_t from, int32_t to, bool indirectly) {
    for (int64_t i = 0; i < f->units[from].need_count; i++) {
        const int32_t next = wb_unit_needed(&f->all, &f->units[from], i);
        if (next == from || (next == to && indirectly)) continue;
        if (next == to || reaches(f, next, to, false)) return true;
    }
    return false;
}

/* Each unit comes after all that it needs, and labels grow. */
static void check_order(const fixture *f) {
    int64_t label = INT64_MIN;
    for (int32_t u = f->all.first; u >= 0; u = f->units[u].after) {
        assert_true(f->units[u].label > label);
        label = f->units[u].label;
        for (int64_t i = 0; i < f->units[u].need_count; i++) {
            const int32_t needed = wb_unit_needed(&f->all, &f->units[u], i);
            if (needed != u) assert_true(f->units[needed].label < label);
        }
    }
}

/* One that was not absorbed. */
static int32_t any(const fixture *f, test_random *r) {
    for (;;) {
        const int32_t u = (int32_t)random_below(r, f->all.count);
        if (f->units[u].merged_into < 0) return u;
    }
}

/* The order as a list. */
static int list_order(const fixture *f, int32_t *list) {
    int count = 0;
    for (int32_t u = f->all.first; u >= 0; u = f->units[u].after) list[count++] = u;
    return count;
}

static void check_unchanged(const fixture *f, const int32_t *order, int count) {
    int32_t now[MOST];
    assert_int_equal(list_order(f, now), count);
    assert_memory_equal(now, order, sizeof *now * (size_t)count);
}

static void unite(fixture *f, int32_t a, int32_t b) {
    const bool apart = reaches(f, a, b, true) || reaches(f, b, a, true);
    int32_t order[MOST];
    const int count = list_order(f, order);
    wb_question q;
    assert_int_equal(wb_may_unite(&f->all, a, b, &q), !apart);
    check_unchanged(f, order, count);
    if (apart) return;
    assert_true(wb_unite(&q, a, b));
    f->units[b].merged_into = a;
}

static void units_become_one_where_no_third_lies_between(void **state) {
    (void)state;
    test_random r = {test_seed()};
    for (int round = 0; round < 300; round++) {
        fixture f;
        begin(&f);
        while (f.all.count < MOST) {
            const int32_t u = add(&f);
            for (int64_t i = random_below(&r, 4); i > 0; i--) {
                const int32_t needed = any(&f, &r);
                if (needed != u) assert_true(wb_unit_need(&f.all, u, needed, false));
            }
            if (random_below(&r, 3) == 0) {
                const int32_t a = any(&f, &r), b = any(&f, &r);
                if (a != b) unite(&f, a, b);
            }
            check_order(&f);
        }
        end(&f);
    }
}

static void a_unit_comes_before_what_it_does_not_need(void **state) {
    (void)state;
    test_random r = {test_seed() + 1};
    for (int round = 0; round < 300; round++) {
        fixture f;
        begin(&f);
        while (f.all.count < MOST) {
            const int32_t u = add(&f);
            for (int64_t i = random_below(&r, 3); i > 0; i--)
                if (u) assert_true(wb_unit_need(&f.all, u, (int32_t)random_below(&r, u), false));
        }
        for (int i = 0; i < MOST; i++) { /* then it may need it, and often does */
            const int32_t a = any(&f, &r), b = any(&f, &r);
            if (a == b) continue;
            const bool before = !reaches(&f, a, b, false);
            int32_t order[MOST];
            const int count = list_order(&f, order);
            wb_question q;
            wb_ask_before(&f.all, b, &q);
            assert_int_equal(wb_may_come(&q, a), before);
            check_unchanged(&f, order, count);
            if (!before) continue;
            wb_move_before(&q);
            assert_true(f.units[a].label < f.units[b].label);
            assert_true(wb_unit_need(&f.all, b, a, false));
            check_order(&f);
        }
        end(&f);
    }
}

/* Gaps are used up: always before the same unit, always before the last one moved, and anywhere. */
static void labels_never_run_out(void **state) {
    enum { MANY = 5000 };
    test_random r = {test_seed() + 2};
    wb_units all = {.first = -1, .last = -1};
    all.at = wb_alloc(sizeof *all.at * MANY);
    assert_non_null(all.at);
    for (int32_t i = 0; i < MANY; i++) {
        all.at[i] = (wb_unit){.epilogue = -1, .fused_into = -1, .merged_into = -1};
        wb_unit_put_last(&all, i);
        const int32_t first = *state == NULL                 ? 0
                              : *(const char *)*state == 'l' ? i - 1
                                                             : (int32_t)random_below(&r, i + !i);
        wb_question q;
        if (i) wb_ask_before(&all, first, &q);
        if (i) assert_true(wb_may_come(&q, i));
        if (i) wb_move_before(&q);
    }
    int64_t label = INT64_MIN;
    for (int32_t u = all.first; u >= 0; u = all.at[u].after) {
        assert_true(all.at[u].label > label);
        label = all.at[u].label;
    }
    assert_true(*state == NULL || *(const char *)*state != 'l' || all.first == MANY - 1);
    wb_release(all.at);
}

/* A model of many units, and what is prepared before it for the last of them. */
static void what_only_one_needs_may_go_far(void **state) {
    (void)state;
    for (int has_other_user = 0; has_other_user < 2; has_other_user++) {
        fixture f;
        wb_question q;
        begin(&f);
        const int32_t early = add(&f);
        while (f.all.count < FAR - 2) {
            const int32_t u = add(&f);
            if (u > 1) assert_true(wb_unit_need(&f.all, u, u - 1, false));
        }
        const int32_t other = add(&f), late = add(&f);
        if (has_other_user) assert_true(wb_unit_need(&f.all, other, early, false));
        assert_true(wb_unit_need(&f.all, late, early, false));
        assert_true(wb_unit_need(&f.all, late, other - 1, false));
        assert_int_equal(wb_may_unite(&f.all, late, early, &q), !has_other_user);
        if (!has_other_user) {
            assert_true(wb_unite(&q, late, early));
            f.units[early].merged_into = late;
            assert_int_equal(f.all.last, late);
        }
        check_order(&f);
        end(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(units_become_one_where_no_third_lies_between),
        cmocka_unit_test(a_unit_comes_before_what_it_does_not_need),
        cmocka_unit_test(what_only_one_needs_may_go_far),
        cmocka_unit_test_prestate(labels_never_run_out, NULL),
        cmocka_unit_test_prestate(labels_never_run_out, (void *)(uintptr_t) "last"),
        cmocka_unit_test_prestate(labels_never_run_out, (void *)(uintptr_t) "random")};
    return cmocka_run_group_tests_name("units", tests, NULL, NULL);
}
