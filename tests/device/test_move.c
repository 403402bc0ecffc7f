/* src/ops/device.c, src/layers/move.c, src/evaluate/run.c: arrays between devices. M1 ... M14 are
 * rows of the acceptance list. */
#include <weber/layers.h>
#include <weber/show.h>

#include "array/array.h"
#include "base/memory.h"

#include "support/places.h"

/* ---- types ---- */

static const wb_dtype types[] = {WB_F32, WB_F64, WB_F16, WB_BF16, WB_I32, WB_I64, WB_U8, WB_BOOL};
enum { TYPES = sizeof types / sizeof *types };

static bool has_type(const wb_device *device, wb_dtype dtype) {
    return dtype != WB_F64 || wb_device_properties(device).has_f64;
}

static void every_type_goes_round(void **state) { /* M2, M11 */
    (void)state;
    test_random r = {test_seed()};
    for (int t = 0; t < TYPES; t++) {
        if (!has_type(first, types[t])) continue;
        wb_array *x = put(cpu, array_random(&r, types[t], 0, 9, 2, (int64_t[]){5, 7}));
        wb_array *y = put(first, x), *z = put(second, y), *back = put(cpu, z);
        wb_array *const all[] = {x, y, z, back};
        assert_place(x, cpu), assert_place(y, first), assert_place(z, second);
        assert_place(back, cpu);
        for (int i = 1; i < 4; i++) {
            assert_int_equal(wb_dtype_of(all[i]), types[t]);
            assert_same_bits(x, all[i], wb_device_name(wb_device_of(all[i])));
        }
    }
}

typedef struct type_row {
    const char *name;
    wb_dtype from;
    wb_eltype policy;
    wb_dtype leaving, staying; /* on the way from the CPU; where it is there already */
} type_row;

static const type_row type_rows[] = {
    {"f64 becomes f32 on the way", WB_F64, WB_ELTYPE_DEFAULT, WB_F32, WB_F64},
    {"f32 stays", WB_F32, WB_ELTYPE_DEFAULT, WB_F32, WB_F32},
    {"f16 stays", WB_F16, WB_ELTYPE_DEFAULT, WB_F16, WB_F16},
    {"bf16 stays", WB_BF16, WB_ELTYPE_DEFAULT, WB_BF16, WB_BF16},
    {"i64 stays", WB_I64, WB_ELTYPE_DEFAULT, WB_I64, WB_I64},
    {"i32 stays", WB_I32, WB_ELTYPE_DEFAULT, WB_I32, WB_I32},
    {"u8 stays", WB_U8, WB_ELTYPE_DEFAULT, WB_U8, WB_U8},
    {"bool stays", WB_BOOL, WB_ELTYPE_DEFAULT, WB_BOOL, WB_BOOL},
    {"preserve keeps f64", WB_F64, WB_ELTYPE_PRESERVE, WB_F64, WB_F64},
    {"preserve keeps f16", WB_F16, WB_ELTYPE_PRESERVE, WB_F16, WB_F16},
    {"f32 asks for f32", WB_F64, WB_ELTYPE_F32, WB_F32, WB_F32},
    {"f32 widens halves", WB_BF16, WB_ELTYPE_F32, WB_F32, WB_F32},
    {"f64 widens", WB_F32, WB_ELTYPE_F64, WB_F64, WB_F64},
    {"f64 stays where that is asked", WB_F64, WB_ELTYPE_F64, WB_F64, WB_F64},
    {"f16 narrows", WB_F32, WB_ELTYPE_F16, WB_F16, WB_F16},
    {"bf16 narrows", WB_F64, WB_ELTYPE_BF16, WB_BF16, WB_BF16},
    {"integers are no floating type", WB_I32, WB_ELTYPE_F16, WB_I32, WB_I32},
    {"nor are bools", WB_BOOL, WB_ELTYPE_F64, WB_BOOL, WB_BOOL},
};

static void policies(void **state) { /* M2, M14 */
    const type_row *row = *state;
    wb_array *x = put(cpu, array_of(row->from, (double[]){1, 0, 1}, 1, (int64_t[]){3}));
    wb_array *stays = wb_to(cpu, x, .eltype = row->policy);
    assert_int_equal(wb_dtype_of(stays), row->staying);
    if (row->staying == row->from) assert_ptr_equal(stays, x);
    assert_values(stays, 0, 1, 0, 1);
    if (!has_type(first, row->leaving)) skip(); /* a device without f64 */
    wb_array *leaves = wb_to(first, x, .eltype = row->policy);
    assert_int_equal(wb_dtype_of(leaves), row->leaving);
    assert_place(leaves, first);
    assert_values(leaves, 0, 1, 0, 1);
    if (!has_type(first, row->from) || !has_type(first, row->staying)) skip();
    wb_array *there = put(first, x), *after = wb_to(first, there, .eltype = row->policy);
    assert_int_equal(wb_dtype_of(after), row->staying);
    if (row->staying == row->from) assert_ptr_equal(after, there);
    assert_place(after, first);
    assert_values(after, 0, 1, 0, 1);
}

static void f64_is_kept_between_devices(void **state) { /* M11 */
    (void)state;
    if (!has_type(first, WB_F64)) skip();
    const double numbers[] = {0.1, 1e300};
    wb_array *x = put(first, put(cpu, wb_from(WB_F64, numbers, 2))), *there = wb_to(second, x);
    assert_int_equal(wb_dtype_of(there), WB_F64);
    assert_place(there, second), assert_place(x, first);
    assert_same_bits(there, x, "there");
    assert_same_bits(wb_cpu(there), x, "and back");
}

static void f64_is_rounded_once(void **state) { /* M2 */
    (void)state;
    test_random r = {test_seed()};
    double numbers[100];
    float wanted[100], got[100];
    for (int i = 0; i < 100; i++) {
        numbers[i] = random_between(&r, -1, 1) * pow(10, (double)random_below(&r, 60) - 30);
        wanted[i] = (float)numbers[i];
    }
    wb_array *x = wb_to(first, put(cpu, wb_from(WB_F64, numbers, 100)));
    assert_int_equal(wb_read(wb_cpu(x), got, sizeof got), WB_OK);
    assert_int_equal(wb_dtype_of(wb_cpu(x)), WB_F32); /* and stays f32 on the way back */
    assert_memory_equal(got, wanted, sizeof got);
}

/* ---- what is there already ---- */

static void what_is_there_is_the_same_object(void **state) { /* M3 */
    (void)state;
    for (int i = 0; i < PLACES; i++) {
        wb_array *x = put(places[i], wb_vector(1, 2, 3, 4)), *y = wb_exp(x);
        wb_array *const all[] = {x, y, wb_reshape(x, 2, 2), wb_flip(x, 0), wb_transpose(y)};
        for (int k = 0; k < 5; k++) assert_ptr_equal(wb_to(places[i], all[k]), all[k]);
    }
    wb_array *x = put(cpu, wb_vector(1));
    assert_ptr_equal(wb_cpu(x), x);
    assert_null(wb_cpu(NULL));
    assert_null(wb_gpu(NULL));
    assert_false(wb_failed());
}

static int lines;
static char last_line[1024];

static void count_line(void *context, wb_log_level level, const char *line) {
    (void)context, (void)level;
    lines++;
    (void)snprintf(last_line, sizeof last_line, "%s", line);
}

static void without_a_gpu_arrays_stay(void **state) { /* M1 */
    (void)state;
    wb_reset_gpu_device();
    lines = 0;
    wb_log_to(count_line, NULL);
    wb_array *x = put(cpu, wb_vector(1, 2)), *once = wb_gpu(x);
    const int said = lines; /* that there is none, where there is none */
    wb_array *twice = wb_gpu(x);
    assert_int_equal(lines, said);
    wb_log_to(NULL, NULL);
    const wb_device *device = wb_gpu_device();
    assert_place(once, device), assert_place(twice, device);
    if (device == cpu) assert_true(once == x && twice == x);
    assert_values(twice, 0, 1, 2);
}

static void bad_arguments_are_refused(void **state) {
    (void)state;
    wb_array *x = wb_vector(1);
    assert_null(wb_to(NULL, x));
    assert_error(WB_ERROR_ARGUMENT, "wb_to: the device is NULL");
    assert_null(wb_to(first, NULL));
    assert_error(WB_ERROR_ARGUMENT, "wb_to: x is NULL");
    assert_null(wb_to(first, x, .eltype = (wb_eltype)99));
    assert_error(WB_ERROR_DTYPE, "wb_to: there is no policy 99 for floating types");
    assert_int_equal(wb_move(first, x), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_move: an array stays where it is; wb_to gives a new one");
    assert_int_equal(wb_move(first, NULL), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_move: x is NULL");
}

/* ---- views and recipes ---- */

static wb_array *transposed(wb_array *x) { return wb_permute(x, 1, 0, 2); }
static wb_array *turned(wb_array *x) { return wb_permute(x, 2, 0, 1); }
static wb_array *flipped(wb_array *x) { return wb_flip(wb_flip(x, 0), 2); }
static wb_array *every_second(wb_array *x) { return wb_slice(x, 2, 3, -1, -2); }
static wb_array *inner(wb_array *x) { return wb_slice(wb_slice(x, 0, 1, 2, 1), 1, 1, 3, 1); }
static wb_array *expanded(wb_array *x) { return wb_expand(wb_slice(x, 1, 1, 2, 1), 2, 5, 4); }
static wb_array *reshaped(wb_array *x) { return wb_reshape(x, 4, 6); }
static wb_array *empty(wb_array *x) { return wb_slice(x, 1, 2, 2, 1); }
static wb_array *whole(wb_array *x) { return x; }
static wb_array *computed(wb_array *x) { return wb_transpose(wb_sum_dims(wb_exp(x), 1)); }

static const struct view_row {
    const char *name;
    wb_array *(*fn)(wb_array *x);
} view_rows[] = {
    {"an array", whole},
    {"a transpose", transposed},
    {"permuted dimensions", turned},
    {"negative steps", flipped},
    {"a negative step of two", every_second},
    {"a part", inner},
    {"an expanded part", expanded},
    {"other sizes", reshaped},
    {"no elements", empty},
    {"a view of what is pending", computed},
};

static wb_array *counting(void) { return wb_copy(wb_reshape(wb_iota(WB_F32, 0, 24), 2, 3, 4)); }

/* From each place to each: the view moved, the moved one's view, both read there and computed
 * with. */
static void views_are_moved(void **state) {
    const struct view_row *row = *state;
    wb_array *x = put(cpu, counting());
    for (int from = 0; from < PLACES; from++)
        for (int to = 0; to < PLACES; to++) {
            wb_array *wanted = row->fn(x), *there = put(places[from], x);
            wb_array *moved = put(places[to], row->fn(there)), *view = row->fn(put(places[to], x));
            assert_place(moved, places[to]);
            const double tolerance = row->fn == computed ? 1e-5 : 0;
            assert_true(wb_approx(moved, wanted, tolerance, 0, NULL, 0));
            assert_true(wb_approx(view, wanted, tolerance, 0, NULL, 0));
            assert_true(wb_approx(wb_add(moved, view), put(places[to], wb_add(wanted, wanted)),
                                  tolerance, 0, NULL, 0));
        }
}

static void nothing_and_single_numbers_are_moved(void **state) {
    (void)state;
    for (int to = 0; to < PLACES; to++) {
        assert_value(put(places[to], wb_scalar(WB_F32, 7)), 7, 0);
        assert_value(put(places[to], wb_number(2.5)), 2.5, 0);
        wb_array *none = put(places[to], put(cpu, wb_zeros(WB_F32, 3, 0)));
        assert_sizes(none, 3, 0);
        assert_int_equal(wb_eval(none), WB_OK);
        assert_value(wb_sum(none), 0, 0);
    }
}

static void recipes_lead_over_devices(void **state) {
    (void)state;
    wb_array *x = put(cpu, wb_vector(1, 2, 3));
    wb_array *a = wb_exp(put(first, x)), *b = put(second, wb_mul(a, a)), *c = wb_log(b);
    wb_array *sum = wb_add(wb_cpu(c), wb_cpu(wb_log(a)));
    if (!getenv("WEBER_EAGER")) assert_false(wb_is_evaluated(a) && wb_is_evaluated(b));
    assert_place(sum, cpu);
    assert_int_equal(wb_eval(sum, b, a), WB_OK); /* roots on three devices */
    assert_values(sum, 1e-6, 3, 6, 9);
    assert_values(b, 1e-5, exp(2), exp(4), exp(6));
    assert_values(a, 1e-5, exp(1), exp(2), exp(3));
}

static void a_value_wanders(void **state) {
    (void)state;
    wb_array *x = wb_zeros(WB_F32, 2);
    for (int i = 0; i < 60; i++) x = wb_add_number(put(places[i % PLACES], x), 1);
    assert_values(x, 0, 60, 60);
    assert_place(x, places[59 % PLACES]);
}

static void a_kept_move_outlives_its_scope(void **state) {
    (void)state;
    wb_scope_open();
    wb_array *kept = wb_keep(put(second, wb_exp(put(first, wb_vector(0, 1)))));
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_true(wb_is_evaluated(kept));
    assert_values(kept, 1e-6, 1, exp(1));
    wb_free(kept);
}

/* Numbers alone are at home wherever they are wanted, also after they were computed elsewhere. */
static void recipes_of_numbers_are_at_home_everywhere(void **state) {
    (void)state;
    wb_array *n = wb_iota(WB_F32, 0, 3), *two = wb_number(2);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < PLACES; i++) {
            wb_array *sum = wb_add(put(places[i], wb_vector(1, 2, 3)), wb_mul(n, two));
            assert_place(sum, places[i]);
            assert_values(sum, 0, 1, 4, 7);
        }
        assert_values(n, 0, 0, 1, 2);
    }
}

/* What is uploaded is what it was at the call, whatever happens to the original afterwards. */
static void originals_may_go_at_once(void **state) { /* M11 */
    (void)state;
    wb_array *moved[50];
    for (int i = 0; i < 50; i++) {
        wb_array *x = put(cpu, wb_full(WB_F32, i, 1000));
        moved[i] = put(first, x);
        assert_int_equal(wb_eval(x, moved[i]), WB_OK);
        wb_free(x);
    }
    for (int i = 0; i < 50; i++) {
        wb_array *back = put(second, moved[i]);
        assert_int_equal(wb_eval(back), WB_OK);
        if (i % 2) wb_free(moved[i]);
        assert_value(wb_maximum(wb_abs(wb_sub(back, wb_number(i)))), 0, 0);
        if (!(i % 2)) assert_value(wb_minimum(moved[i]), i, 0);
    }
}

/* ---- gradients ---- */

static void gradients_come_back(void **state) { /* M6 */
    (void)state;
    for (int from = 0; from < PLACES; from++)
        for (int to = 0; to < PLACES; to++) {
            const wb_device *here = places[from], *there = places[to];
            wb_array *x = put(here, wb_vector(1, -2, 3)), *g;
            assert_int_equal(wb_gradient_of(wb_sum(wb_abs(put(there, x))), 1, &x, &g), WB_OK);
            assert_place(g, here);
            assert_values(g, 0, 1, -1, 1);

            wb_array *y = put(here, wb_mul_number(put(there, x), 2));
            wb_array *element = wb_sum(wb_slice(y, 0, 0, 1, 1));
            assert_int_equal(wb_gradient_of(element, 1, &x, &g), WB_OK);
            assert_place(g, here); /* though it is numbers alone */
            assert_values(g, 0, 2, 0, 0);

            wb_array *m = put(here, wb_reshape(wb_vector(1, 4, 7, 2, 5, 8, 3, 6, 9), 3, 3));
            y = put(here, wb_matmul(put(there, m), put(there, m)));
            element = wb_sum(wb_slice(wb_slice(y, 0, 0, 1, 1), 1, 1, 2, 1));
            assert_int_equal(wb_gradient_of(element, 1, &m, &g), WB_OK);
            assert_place(g, here);
            assert_values(g, 0, 2, 0, 0, 6, 2, 3, 8, 0, 0);
        }
}

/* However little of the loss is left in them. */
static void gradients_of_numbers_are_beside_their_arrays(void **state) {
    (void)state;
    for (int i = 0; i < PLACES; i++) {
        wb_array *x = put(places[i], wb_vector(1, 2, 3)), *g, *h;
        assert_int_equal(wb_gradient_of(wb_sum(wb_mul_number(x, 2)), 1, &x, &g), WB_OK);
        assert_place(g, places[i]);
        assert_values(g, 0, 2, 2, 2);
        assert_values(wb_sub(x, g), 0, -1, 0, 1);
        assert_int_equal(wb_gradient_of(wb_sum(wb_mul(g, wb_square(x))), 1, &x, &h), WB_OK);
        assert_place(h, places[i]);
        assert_values(h, 0, 4, 8, 12);
    }
}

static void gradients_of_gradients_come_back(void **state) {
    (void)state;
    wb_array *x = put(cpu, wb_vector(1, 2)), *y = put(first, x), *g, *h;
    wb_array *cube = wb_cpu(wb_sum(wb_mul(put(second, wb_square(y)), put(second, y))));
    assert_int_equal(wb_gradient_of(cube, 1, &x, &g), WB_OK);
    assert_int_equal(wb_gradient_of(wb_sum(g), 1, &x, &h), WB_OK);
    assert_place(g, cpu), assert_place(h, cpu);
    assert_values(g, 1e-6, 3, 12);
    assert_values(h, 1e-6, 6, 12);
}

static void a_gradient_has_the_type_of_its_array(void **state) {
    (void)state;
    wb_array *x = put(cpu, wb_from(WB_F64, ((const double[]){1, 2}), 2)), *g;
    wb_array *l = wb_sum(wb_square(wb_to(first, x)));
    assert_int_equal(wb_dtype_of(l), WB_F32);
    assert_int_equal(wb_gradient_of(l, 1, &x, &g), WB_OK);
    assert_int_equal(wb_dtype_of(g), WB_F64);
    assert_place(g, cpu);
    assert_values(g, 0, 2, 4);
}

/* ---- what does not fit ---- */

/* The pending error names the layer, operands and devices. */
static void assert_mixed(const char *layer, const char *a, const char *b) {
    char text[1024], on_first[96], on_second[96];
    (void)snprintf(on_first, sizeof on_first, "%s is on %s", a, wb_device_name(first));
    (void)snprintf(on_second, sizeof on_second, "%s on %s", b, wb_device_name(second));
    assert_int_equal(wb_take_error(text, sizeof text), WB_ERROR_ARGUMENT);
    if (!strstr(text, layer) || !strstr(text, on_first) || !strstr(text, on_second))
        fail_msg("\"%s\" does not name %s, %s, %s", text, layer, on_first, on_second);
}

static void devices_are_not_mixed(void **state) {
    (void)state;
    wb_array *x = put(first, wb_ones(WB_F32, 2, 3)), *y = put(second, wb_ones(WB_F32, 3, 1));
    assert_null(wb_matmul(x, y));
    assert_mixed("matmul: ", "(2, 3)", "(3, 1)");
    assert_null(wb_matmul(x, put(second, wb_ones(WB_F32, 3))));
    assert_mixed("matmul: ", "(2, 3)", "(3)");
    assert_null(wb_concat(0, x, wb_transpose(y)));
    assert_mixed("concat: ", "(2, 3)", "(1, 3)");
    wb_layer *model = wb_chain(wb_fn(wb_relu), wb_dense(2, 3));
    assert_int_equal(wb_move(first, model), WB_OK);
    wb_array *z = put(second, wb_ones(WB_F32, 2, 4));
    assert_null(wb_apply(model, z));
    assert_mixed("Dense(2 => 3), layer 2 of Chain: ", "(3, 2)", "(2, 4)");
    wb_free(model);
}

/* ---- where things are ---- */

static void arrays_say_where_they_are(void **state) {
    (void)state;
    for (int i = 0; i < PLACES; i++) {
        wb_array *x = put(places[i], wb_vector(1, 2, 3, 4));
        assert_ptr_equal(wb_device_of(x), places[i]);
        assert_ptr_equal(wb_device_of(wb_exp(x)), places[i]);
        assert_ptr_equal(wb_device_of(wb_transpose(wb_flip(x, 0))), places[i]);
    }
    assert_ptr_equal(wb_device_of(wb_zeros(WB_F32, 3)), wb_default_device());
    assert_ptr_equal(wb_device_of(wb_vector(1)), wb_default_device());
    assert_null(wb_device_of(NULL));
}

static void c_memory_goes_to_the_default_device(void **state) {
    (void)state;
    const wb_device *before = wb_default_device();
    float numbers[3] = {1, 2, 3};
    for (int i = 0; i < PLACES; i++) {
        wb_set_default_device(places[i]);
        wb_array *x = wb_from(WB_F32, numbers, 3), *recipe = wb_full(WB_F32, 2, 3);
        assert_place(x, places[i]), assert_place(recipe, places[i]);
        assert_place(wb_borrow(WB_F32, numbers, NULL, NULL, 3), cpu);
        assert_int_equal(wb_eval(recipe), WB_OK);
        wb_set_default_device(NULL);
        assert_ptr_equal(wb_default_device(), cpu);
        assert_place(x, places[i]);
        assert_values(wb_mul(x, recipe), 0, 2, 4, 6);
    }
    wb_set_default_device(before);
}

static void arrays_are_printed_where_they_are(void **state) { /* M11 */
    (void)state;
    for (int i = 0; i < PLACES; i++) {
        wb_array *x = put(places[i], wb_reshape(wb_vector(1, 2, 3, 4.5f), 2, 2));
        char text[256], wanted[256];
        (void)snprintf(wanted, sizeof wanted, "2×2 Array{f32} on %s:\n 1.0  2.0\n 3.0  4.5\n",
                       wb_device_name(places[i]));
        assert_int_equal(wb_show_text(wb_transpose(x), text, sizeof text), WB_OK);
        assert_string_equal(text, wanted);
        assert_ptr_equal(wb_device_of(x), places[i]); /* printing moves nothing */
    }
}

static void single_elements_are_counted(void **state) {
    (void)state;
    wb_array *there = put(first, wb_vector(1, 2, 3)), *here = put(cpu, wb_vector(1, 2, 3));
    lines = 0;
    wb_log_to(count_line, NULL);
    wb_allow_scalar(true); /* counts from here */
    for (int i = 0; i < 1999; i++) {
        assert_true(wb_at(there, i % 3) == i % 3 + 1);
        assert_int_equal(lines, i >= 999);
        assert_true(wb_at(here, i % 3) == i % 3 + 1);
    }
    assert_non_null(strstr(last_line, "1000 single elements"));
    assert_non_null(strstr(last_line, wb_device_name(first)));
    wb_log_to(NULL, NULL);
    wb_allow_scalar(false);
    assert_true(isnan(wb_at(there, 0)));
    assert_error(WB_ERROR_ARGUMENT, "wb_cpu copies the whole array");
    assert_true(wb_item(wb_sum(there)) == 6);
    assert_true(wb_at(here, 1) == 2 && wb_at(wb_cpu(there), 2) == 3);
    wb_allow_scalar(true);
    assert_true(wb_at(there, 0) == 1);
}

/* ---- failure ---- */

/* Each allocation of a move failing in turn: an error, or the values; nothing is left behind
 * (close_scope). */
static void any_allocation_of_a_move_may_fail(void **state) {
    (void)state;
    wb_array *x = put(cpu, wb_vector(1, 2, 3, 4, 5, 6)), *const held = wb_transpose(x);
    assert_int_equal(wb_eval(held), WB_OK);
    bool done = false;
    for (int64_t n = 1; !done; n++) {
        assert_true(n < 2000);
        wb_scope_open();
        (void)wb_fail_allocation(n);
        wb_array *y = wb_to(first, held);
        y = y ? wb_to(second, wb_mul_number(y, (double)n)) : NULL; /* a new plan */
        y = y ? wb_cpu(wb_flip(y, 0)) : NULL;
        const wb_status status = y ? wb_eval(y) : wb_error_status();
        (void)wb_fail_allocation(0);
        done = status == WB_OK;
        if (done) assert_true(wb_at(y, 0, 1) == 2 * (double)n);
        if (!done) assert_int_equal(wb_take_error(NULL, 0), WB_ERROR_MEMORY);
        assert_values(x, 0, 1, 2, 3, 4, 5, 6);
        assert_int_equal(wb_scope_close(), WB_OK);
        assert_int_equal(sync_places(), WB_OK);
        for (int i = 0; i < PLACES; i++) wb_memory_reclaim(places[i]);
    }
}

/* From each place to each, the copy being the last thing that is done. */
static void any_allocation_of_a_copy_may_fail(void **state) {
    (void)state;
    for (int from = 0; from < PLACES; from++)
        for (int to = 0; to < PLACES; to++) {
            wb_array *x = put(places[from], wb_vector(1, 2, 3));
            assert_int_equal(wb_eval(x), WB_OK);
            bool done = false;
            for (int64_t n = 1; !done; n++) {
                assert_true(n < 100);
                assert_int_equal(sync_places(), WB_OK);
                for (int i = 0; i < PLACES; i++) wb_memory_reclaim(places[i]);
                wb_scope_open();
                (void)wb_fail_allocation(n);
                wb_array *y = wb_to(places[to], x);
                const wb_status status = y ? wb_eval(y) : wb_error_status();
                (void)wb_fail_allocation(0);
                done = status == WB_OK;
                assert_int_equal(wb_failed(), !done);
                if (done) assert_values(y, 0, 1, 2, 3);
                if (!done) assert_int_equal(wb_take_error(NULL, 0), WB_ERROR_MEMORY);
                assert_int_equal(wb_scope_close(), WB_OK);
            }
        }
}

int main(void) {
    enum {
        POLICIES = sizeof type_rows / sizeof *type_rows,
        VIEWS = sizeof view_rows / sizeof *view_rows
    };
    const struct CMUnitTest others[] = {
        MOVES(every_type_goes_round),
        MOVES(f64_is_kept_between_devices),
        MOVES(f64_is_rounded_once),
        MOVES(what_is_there_is_the_same_object),
        MOVES(without_a_gpu_arrays_stay),
        MOVES(bad_arguments_are_refused),
        MOVES(nothing_and_single_numbers_are_moved),
        MOVES(recipes_lead_over_devices),
        MOVES(a_value_wanders),
        MOVES(a_kept_move_outlives_its_scope),
        MOVES(recipes_of_numbers_are_at_home_everywhere),
        MOVES(originals_may_go_at_once),
        MOVES(gradients_come_back),
        MOVES(gradients_of_numbers_are_beside_their_arrays),
        MOVES(gradients_of_gradients_come_back),
        MOVES(a_gradient_has_the_type_of_its_array),
        MOVES(devices_are_not_mixed),
        MOVES(arrays_say_where_they_are),
        MOVES(c_memory_goes_to_the_default_device),
        MOVES(arrays_are_printed_where_they_are),
        MOVES(single_elements_are_counted),
        MOVES(any_allocation_of_a_move_may_fail),
        MOVES(any_allocation_of_a_copy_may_fail),
    };
    enum { OTHERS = sizeof others / sizeof *others };
    struct CMUnitTest tests[POLICIES + VIEWS + OTHERS];
    int n = 0;
    for (int i = 0; i < POLICIES; i++) tests[n++] = TEST_ROW(&type_rows[i], policies);
    for (int i = 0; i < VIEWS; i++) tests[n++] = TEST_ROW(&view_rows[i], views_are_moved);
    for (int i = 0; i < n; i++) tests[i].teardown_func = close_places;
    for (int i = 0; i < OTHERS; i++) tests[n++] = others[i];
    return cmocka_run_group_tests_name("device/test_move", tests, find_places, NULL);
}
