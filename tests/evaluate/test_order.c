/* The tape: nodes in order, what is noted about them, and the key of their plan. */
#include "evaluate/small.h"

enum { ROWS = 3, COLUMNS = 2 };

static wb_array *data(void) {
    wb_array *x = wb_uniform(WB_F32, ROWS, COLUMNS);
    assert_int_equal(wb_eval(x), WB_OK);
    return x;
}

static wb_array *sum_and_product(void) { return wb_mul(wb_add(data(), data()), data()); }
static wb_array *reached_twice(void) {
    wb_array *x = wb_exp(data());
    return wb_add(x, wb_square(x));
}
static wb_array *reduced(void) { return wb_sub(wb_sum(data()), wb_sum(data())); }
static wb_array *product(void) { return wb_neg(wb_matmul(data(), wb_transpose(data()))); }
static wb_array *through_a_view(void) { return wb_exp(wb_reshape(data(), COLUMNS, ROWS)); }
/* Nobody but the plan can read what an inner scope made. */
static wb_array *left(void) {
    wb_scope_open();
    wb_array *y = wb_mul(wb_sum(wb_exp(data())), data());
    assert_int_equal(wb_scope_close_leaving(1, &y), WB_OK);
    return y;
}
static wb_array *held_inside(void) {
    wb_array *x = data();
    wb_scope_open();
    wb_array *y = wb_add(wb_exp(x), data());
    assert_int_equal(wb_scope_close_leaving(1, &y), WB_OK);
    return y;
}

/* leaf, root, stored, exposed, donated */
static const struct {
    const char *name;
    wb_array *(*make)(void);
    const char *tape;
} rows[] = {
    {"inputs stand before what reads them", sum_and_product,
     "data:le data:le add:e data:le mul:rse "},
    {"what is reached twice stands once", reached_twice, "data:le exp:e square:e add:rse "},
    {"sums that somebody can still read are stored", reduced,
     "data:le sum:se data:le sum:se sub:rse "},
    {"so are products; views are no leaves", product,
     "data:le data:le permute:e matmul:se neg:rse "},
    {"pending views are nodes", through_a_view, "data:le reshape:e exp:rse "},
    {"what an inner scope made is donated, and sums there are not stored", left,
     "data:ld exp: sum: data:ld mul:rs "},
    {"what is held outside is not donated", held_inside, "data:l exp: data:ld add:rs "},
};

static void nodes_are_in_order_and_marked(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        small s;
        small_order(&s, rows[i].make());
        for (int64_t n = 0; n < s.tape.count; n++) {
            const int marks = s.tape.at[n].marks;
            small_say(&s, "%s:%s%s%s%s%s ",
                      marks & WB_TAPE_LEAF ? "data" : wb_op_name((wb_op)s.tape.at[n].node->op),
                      marks & WB_TAPE_LEAF ? "l" : "", marks & WB_TAPE_ROOT ? "r" : "",
                      marks & WB_TAPE_STORED ? "s" : "", marks & WB_TAPE_EXPOSED ? "e" : "",
                      marks & WB_TAPE_DONATED ? "d" : "");
        }
        small_check(&s, rows[i].name, rows[i].tape);
        small_end(&s);
    }
}

/* ---- keys ---- */

static wb_array *scaled(int64_t size, double number, bool is_late, bool is_sum) {
    wb_array *x = wb_uniform(WB_F32, size), *y = is_late ? wb_late(number) : wb_number(number);
    assert_int_equal(wb_eval(x), WB_OK);
    return is_sum ? wb_add(x, y) : wb_mul(x, y);
}

static void keys_tell_plans_apart(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int64_t size;
        double number;
        bool is_late, is_sum, is_same;
    } others[] = {
        {"other data", 4, 2, false, false, true},
        {"another size", 5, 2, false, false, false},
        {"another number", 4, 3, false, false, false},
        {"another operation", 4, 2, false, true, false},
        {"a late number", 4, 2, true, false, false},
    };
    small first, other;
    small_order(&first, scaled(4, 2, false, false));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        small_order(&other,
                    scaled(others[i].size, others[i].number, others[i].is_late, others[i].is_sum));
        const bool is_same = first.tape.words == other.tape.words &&
                             memcmp(first.tape.key, other.tape.key,
                                    sizeof *first.tape.key * (size_t)first.tape.words) == 0;
        if (is_same != others[i].is_same) fail_msg("%s", others[i].name);
        small_end(&other);
    }
    small late;
    small_order(&late, scaled(4, 2, true, false));
    small_order(&other, scaled(4, 3, true, false)); /* late numbers are no part of it */
    assert_int_equal(late.tape.words, other.tape.words);
    assert_memory_equal(late.tape.key, other.tape.key,
                        sizeof *late.tape.key * (size_t)late.tape.words);
    small_end(&late), small_end(&other), small_end(&first);
}

int main(void) {
    (void)unsetenv("WEBER_EAGER"); /* it is about plans */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nodes_are_in_order_and_marked, open_scope, close_scope),
        cmocka_unit_test_setup_teardown(keys_tell_plans_apart, open_scope, close_scope)};
    return cmocka_run_group_tests_name("evaluate/test_order", tests, NULL, NULL);
}
