/* bench/cases.c: every case can be opened, steps, and has finite results; sizes are read from its
 * name. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "support/support.h"

static bench_case *open_case(const char *name) {
    bench_case *c = bench_case_open(name);
    if (!c) fail_msg("%s: %s", name, wb_failed() ? wb_error_message() : "there is no such case");
    return c;
}

static void every_case_computes(void **state) {
    (void)state;
    for (const char *letter = BENCH_CASES; *letter; letter++) {
        char name[8];
        (void)snprintf(name, sizeof name, "%c:tiny", *letter);
        bench_case *c = open_case(name);
        for (int i = 0; i < 3; i++) bench_case_step(c);
        const bench_result r = bench_case_result(c);
        if (wb_failed() || !isfinite(r.loss) || !isfinite(r.checksum) || r.checksum == 0)
            fail_msg("%s: loss %g, checksum %g; %s", name, r.loss, r.checksum, wb_error_message());
        bench_case_close(c);
    }
}

typedef struct name_row {
    const char *name, *text; /* what it names */
    bool exists;
} name_row;

static const name_row names[] = {
    {"a batch size", "a:3", true},
    {"a batch size and a type", "b:2,bf16", true},
    {"products at medium precision", "c:2,f32,medium", true},
    {"a precision that there is not", "c:2,f32,rough", false},
    {"the sizes of a transformer", "e:1,8,2,4,5,1,f32", true},
    {"a transformer with a count missing", "e:1,8,2,4,5,f32", false},
    {"the sizes of an LSTM", "f:3,4,5,2", true},
    {"an LSTM without steps", "f:3,4,0,2", false},
    {"a size for a case that has one", "g:7", false},
    {"a length of attention that divides the queries", "k:16384,gradient", true},
    {"a length of attention that does not", "k:100", false},
    {"attention of halves", "k:16384,bf16", true},
    {"attention of halves with its gradient", "k:16384,gradient,bf16", true},
    {"attention of what is no type", "k:16384,gradient,b16", false},
    {"rows of a layer norm", "l:layernorm,3,2,gradient", true},
    {"rows of something else", "l:batchnorm,3,2", false},
    {"a product of halves", "m:4,f16", true},
    {"a product of integers", "m:4,i32", false},
    {"steps that are planned anew", "p:lstm,3", true},
    {"blocks that are planned anew", "p:chain,3", true},
    {"none of them", "p:chain,0", false},
    {"an unknown letter", "z", false},
    {"two letters", "ab", false},
};

static void names_are_read(void **state) {
    const name_row *row = *state;
    bench_case *c = bench_case_open(row->text);
    assert_int_equal(c != NULL, row->exists);
    if (c) bench_case_step(c);
    assert_int_equal(wb_error_status(), WB_OK);
    bench_case_close(c);
}

static int64_t misses(void) { return wb_plan_status().misses; }

static void case_p_is_planned_in_each_step_and_others_once(void **state) {
    static const char *const anew[] = {"p:transformer,1", "p:lstm,3", "p:chain,3"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        bench_case *c = open_case(anew[i]);
        bench_case_step(c);
        const int64_t before = misses();
        bench_case_step(c);
        assert_int_equal(misses(), before + 1);
        assert_true(bench_case_nodes(c) > 20);
        bench_case_close(c);
    }
    bench_case *c = open_case("a:tiny");
    bench_case_step(c), bench_case_step(c);
    const int64_t before = misses();
    bench_case_step(c);
    assert_int_equal(misses(), before);
    assert_int_equal(bench_case_nodes(c), 1);
    bench_case_close(c);
}

static void training_lowers_the_loss(void **state) {
    static const char *const trained[] = {"a",         "b",      "d:2",   "e:1,16,2,8,7,2,f32",
                                          "f:8,8,6,4", "i:tiny", "n:tiny"};
    (void)state;
    for (size_t i = 0; i < sizeof trained / sizeof *trained; i++) {
        bench_case *c = open_case(trained[i]);
        bench_case_step(c);
        const double first = bench_case_result(c).loss;
        for (int k = 0; k < 16 * BENCH_INPUTS; k++) bench_case_step(c);
        const double last = bench_case_result(c).loss; /* of the first input, too */
        if (!(last < first)) fail_msg("%s: loss %g, then %g", trained[i], first, last);
        bench_case_close(c);
    }
}

int main(void) {
    struct CMUnitTest tests[32] = {
        TEST(every_case_computes),
        TEST(case_p_is_planned_in_each_step_and_others_once),
        TEST(training_lowers_the_loss),
    };
    size_t count = 3;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        tests[count++] = TEST_ROW(&names[i], names_are_read);
    return _cmocka_run_group_tests("cases", tests, count, NULL, NULL);
}
