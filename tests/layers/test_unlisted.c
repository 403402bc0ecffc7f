/* src/layers/unlisted.c: members of structs of one's own that the table does not have */
#include <unistd.h>

#include <weber/optimise.h>
#include <weber/state.h>

#include "support/support.h"

typedef struct Teacher {
    wb_layer layer;
    wb_layer *student;
    wb_layer *fixed;
    wb_layer *forgotten;
    wb_array *scale;
    int64_t steps;
    char flag;
} Teacher;
WB_FUNCTOR(Teacher, NULL, WB_CHILD_FIELD(Teacher, student), WB_FIXED_CHILD_FIELD(Teacher, fixed));

typedef struct Listed {
    wb_layer layer;
    wb_layer *student;
    int64_t steps;
    wb_array *scale;
    bool bias;
    char name[48];
} Listed;
WB_FUNCTOR(Listed, NULL, WB_CHILD_FIELD(Listed, student), WB_VALUE_FIELD(Listed, steps),
           WB_FIXED_FIELD(Listed, scale), WB_SETTING(Listed, bias, WB_FIELD_BOOL),
           WB_SETTING(Listed, name, WB_FIELD_NAME));

static int warnings;
static char said[4][300];
static void keep_warning(void *context, wb_log_level level, const char *line) {
    (void)context;
    if (level != WB_LOG_WARN) return;
    if (warnings < 4) snprintf(said[warnings], sizeof said[0], "%s", line);
    warnings++;
}

static int set_up(void *model) {
    warnings = 0;
    wb_log_to(keep_warning, NULL);
    wb_optimiser *o = wb_setup(wb_descent(), model);
    wb_log_to(NULL, NULL);
    assert_non_null(o);
    wb_free(o);
    return warnings;
}

static int save(void *model) {
    char path[64];
    snprintf(path, sizeof path, "/tmp/weber-unlisted-%ld.npz", (long)getpid());
    warnings = 0;
    wb_log_to(keep_warning, NULL);
    assert_int_equal(wb_save(path, model), WB_OK);
    wb_log_to(NULL, NULL);
    assert_int_equal(unlink(path), 0);
    return warnings;
}

static void what_is_listed_is_not_told(void **state) {
    (void)state;
    Listed *m = wb_new(Listed);
    m->student = wb_dense(2, 2), m->steps = 3, m->bias = true;
    m->scale = wb_keep(wb_ones(WB_F32, 2));
    (void)snprintf(m->name, sizeof m->name, "%s", "a name");
    assert_int_equal(set_up(m), 0);
    assert_int_equal(save(m), 0);
    wb_free(m);
}

/* The model has it elsewhere: a second pointer to it is no second owner. */
static void another_pointer_to_what_is_listed_is_not_told(void **state) {
    (void)state;
    Teacher *m = wb_new(Teacher);
    m->student = wb_dense(2, 2), m->forgotten = m->student;
    assert_int_equal(set_up(m), 0);
    wb_free(m);
}

static void layers_and_arrays_that_are_not_listed_are_told_once(void **state) {
    (void)state;
    Teacher *m = wb_new(Teacher);
    m->student = wb_dense(2, 2), m->fixed = wb_dense(2, 3);
    assert_int_equal(set_up(m), 0);
    m->forgotten = wb_dense(2, 4);
    assert_int_equal(set_up(m), 1);
    assert_non_null(strstr(said[0], "wb_setup: the member at byte"));
    assert_non_null(strstr(said[0], "of Teacher, Dense(2 => 4), is not listed in its WB_FUNCTOR"));
    assert_int_equal(set_up(m), 0);
    assert_int_equal(save(m), 1);
    assert_non_null(strstr(said[0], "wb_save: the member at byte"));
    wb_free(m->forgotten), m->forgotten = NULL;
#if !defined(__SANITIZE_ADDRESS__)
    m->scale = wb_keep(wb_ones(WB_F32, 5));
    assert_int_equal(set_up(m), 1);
    assert_non_null(strstr(said[0], "an array (5), is not listed"));
    wb_free(m->scale), m->scale = NULL;
#endif
    wb_free(m);
}

static void values_that_are_not_listed_are_told_when_saved(void **state) {
    (void)state;
    Teacher *m = wb_new(Teacher);
    m->student = wb_dense(2, 2), m->steps = 7, m->flag = 1;
    assert_int_equal(set_up(m), 0);
    assert_int_equal(save(m), 2);
    assert_non_null(
        strstr(said[0], "of Teacher is not listed in its WB_FUNCTOR, and is not saved"));
    assert_int_equal(save(m), 0);
    wb_free(m);
}

/* A word that was a layer's address is none when the layer is gone. */
static void a_layer_that_is_gone_is_not_followed(void **state) {
    (void)state;
    Teacher *m = wb_new(Teacher);
    m->student = wb_dense(2, 2);
    for (int i = 0; i < 1000; i++) {
        m->forgotten = wb_dense(3, 5);
        wb_free(m->forgotten);
    }
    assert_int_equal(set_up(m), 0);
    m->forgotten = (wb_layer *)(uintptr_t)0x12345678;
    assert_int_equal(set_up(m), 0);
    m->forgotten = NULL;
    wb_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(what_is_listed_is_not_told),
        TEST(another_pointer_to_what_is_listed_is_not_told),
        TEST(layers_and_arrays_that_are_not_listed_are_told_once),
        TEST(values_that_are_not_listed_are_told_when_saved),
        TEST(a_layer_that_is_gone_is_not_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
