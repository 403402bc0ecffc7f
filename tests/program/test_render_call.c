/* Calls as text: compiled in every dialect, run in those that can run here, and compared with the
 * CPU backend. */
#include "program/call.h"

#include "base/memory.h"
#include "device/device.h"
#include "program/call_cases.h"
#include "program/render.h"
#include "support/dialects.h"
#include "support/support.h"

enum { UNIT = 12 /* texts compiled together */ };

/* ---- types ---- */

static bool is_half(wb_dtype dtype) { return dtype == WB_F16 || dtype == WB_BF16; }

/* ---- arrays of a case: one that is run, and the reference ---- */

typedef struct arrays {
    void *of[MOST_ARGUMENTS];
    size_t sizes[MOST_ARGUMENTS];
} arrays;

static void arrays_release(arrays *a) {
    for (int i = 0; i < MOST_ARGUMENTS; i++) free(a->of[i]);
}

static arrays arrays_new(const call_case *c) {
    arrays a = {{NULL}, {0}};
    for (int i = 0; i < c->narguments; i++) {
        a.sizes[i] = (size_t)c->arguments[i].count * wb_dtype_size(c->arguments[i].dtype);
        a.of[i] = malloc(a.sizes[i] + 1);
        assert_non_null(a.of[i]);
        memset(a.of[i], 0x77, a.sizes[i]);
    }
    return a;
}

/* Multiples of 1/8 between -2 and 2, so that halves hold them and some are equal. */
static double number_for(const call_case *c, const argument *argument, test_random *r) {
    const double x = (double)(random_below(r, 33) - 16);
    const bool has_nan = c->call.kind == WB_CALL_maxpool;
    if (argument->dtype == WB_BOOL) return (double)random_below(r, 2);
    if (!wb_dtype_is_float(argument->dtype)) return x * 100;
    return has_nan && random_below(r, 20) == 0 ? NAN : x / 8;
}

static void fill_indices(const call_case *c, arrays *a, test_random *r) {
    const argument *index = &c->arguments[c->index_argument];
    for (int64_t i = 0; i < index->count; i++)
        number_put(index->dtype, a->of[c->index_argument], i, (double)random_below(r, c->indices));
    if (!c->has_bad_index) return;
    number_put(index->dtype, a->of[c->index_argument], 217, -3);
    number_put(index->dtype, a->of[c->index_argument], 250, (double)c->indices);
}

static void run_on_cpu(const wb_call *call, const arrays *a, int count) {
    void *device = wb_cpu_backend.open(0), *kernel = wb_cpu_backend.lower(device, call, NULL, 0);
    assert_non_null(kernel);
    void *scratch = aligned_alloc(64, (wb_cpu_backend.scratch_bytes(kernel) + 127) / 64 * 64);
    wb_memory memory[MOST_ARGUMENTS + 1] = {{NULL, 0}};
    wb_argument list[MOST_ARGUMENTS + 1] = {{0, 0}};
    for (int i = 0; i <= count; i++) {
        memory[i].handle = i < count ? a->of[i] : scratch;
        list[i].memory = (uint32_t)i;
    }
    const wb_command command = {
        .kernel = kernel, .narguments = count + 1, .arguments = list, .what = "test"};
    assert_int_equal(wb_cpu_backend.run(device, NULL, &command, 1, memory, NULL), WB_OK);
    wb_cpu_backend.release(kernel);
    free(scratch);
}

/* The index of a pool comes from the pool. */
static void fill_pool_index(const call_case *c, arrays *a, test_random *r) {
    call_case pool = *c;
    pool.call.kind = WB_CALL_maxpool, pool.call.dtype = WB_F32, pool.narguments = 0;
    const wb_window_call *w = &c->call.window;
    add_argument(&pool, WB_F32, volume(w->in) * w->channels * w->batch, false);
    add_argument(&pool, WB_F32, c->arguments[1].count, true);
    add_argument(&pool, WB_I32, c->arguments[1].count, true);
    arrays p = arrays_new(&pool);
    for (int64_t i = 0; i < pool.arguments[0].count; i++)
        number_put(WB_F32, p.of[0], i, (double)random_below(r, 9));
    run_on_cpu(&pool.call, &p, 3);
    memcpy(a->of[1], p.of[2], p.sizes[2]);
    arrays_release(&p);
}

/* y and sums of a derivative come from the forward call. */
static void fill_attention(const call_case *c, arrays *a) {
    enum { Y = 3, SUMS, MORE = 6 };
    const wb_attention_call *sizes = &c->call.attention;
    wb_call forward = c->call;
    arrays f = {{a->of[0], a->of[1], a->of[2]}, {0}};
    int count = Y;
    forward.kind = WB_CALL_attention;
    for (int i = 0; i < sizes->has_mask + sizes->has_bias; i++) f.of[count++] = a->of[MORE + i];
    f.of[count++] = a->of[Y], f.of[count++] = a->of[SUMS];
    run_on_cpu(&forward, &f, count);
}

static void fill(const call_case *c, arrays *a, test_random *r) {
    const bool is_pool =
        c->call.kind == WB_CALL_pool_scatter || c->call.kind == WB_CALL_pool_gather;
    for (int k = 0; k < c->narguments; k++) {
        const argument *argument = &c->arguments[k];
        const bool is_base = c->call.kind == WB_CALL_scatter_add && k == 2;
        if (k == c->index_argument) {
            fill_indices(c, a, r);
            continue;
        }
        for (int64_t i = 0; i < argument->count && (!argument->is_result || is_base); i++)
            number_put(argument->dtype, a->of[k], i, number_for(c, argument, r));
    }
    if (is_pool) fill_pool_index(c, a, r);
    if (c->call.kind == WB_CALL_attention_backward) fill_attention(c, a);
}

/* The same arrays with f32 for halves, which the CPU backend does not take, and without bad
 * indices. */
static arrays reference_of(const call_case *c, const arrays *a) {
    call_case wide = *c;
    const bool widens = is_half(c->call.dtype) && c->call.kind != WB_CALL_gather;
    for (int i = 0; i < c->narguments; i++)
        if (widens && is_half(c->arguments[i].dtype)) wide.arguments[i].dtype = WB_F32;
    if (widens) wide.call.dtype = WB_F32;
    arrays r = arrays_new(&wide);
    for (int k = 0; k < c->narguments; k++) {
        if (wide.arguments[k].dtype == c->arguments[k].dtype)
            memcpy(r.of[k], a->of[k], a->sizes[k]);
        else
            for (int64_t i = 0; i < c->arguments[k].count; i++)
                number_put(WB_F32, r.of[k], i, number_get(c->arguments[k].dtype, a->of[k], i));
    }
    if (!c->has_bad_index) run_on_cpu(&wide.call, &r, c->narguments);
    return r;
}

/* ---- comparing ---- */

static double tolerance_of(const call_case *c, wb_dtype dtype, double wanted) {
    const double terms = (double)c->terms + 4;
    if (!wb_dtype_is_float(dtype)) return 0;
    switch (dtype) {
    case WB_F64:
        return terms * 1e-15;
    case WB_F16:
        return terms * 1e-6 + fabs(wanted) * 0x1p-10;
    case WB_BF16:
        return terms * 1e-6 + fabs(wanted) * 0x1p-7;
    default:
        return terms * 1e-6;
    }
}

static void compare(const char *dialect, const call_case *c, const arrays *got,
                    const arrays *wanted) {
    for (int k = 0; k < c->narguments; k++) {
        const argument *argument = &c->arguments[k];
        const bool widens = is_half(argument->dtype) && c->call.kind != WB_CALL_gather;
        const wb_dtype of_wanted = widens ? WB_F32 : argument->dtype;
        for (int64_t i = 0; i < argument->count && argument->is_result; i++) {
            const double x = number_get(argument->dtype, got->of[k], i),
                         y = number_get(of_wanted, wanted->of[k], i);
            if (x == y || (isnan(x) && isnan(y)) ||
                fabs(x - y) <= tolerance_of(c, argument->dtype, y))
                continue;
            fail_msg("%s: %s: argument %d, element %lld is %.9g, the CPU says %.9g", dialect,
                     c->name, k, (long long)i, x, y);
        }
    }
}

/* Elements at bad indices stay as they were, the status says which was the first. */
static void check_bad_index(const call_case *c, const arrays *got, const arrays *before,
                            const int64_t status[4]) {
    const wb_index_call *call = &c->call.index;
    const bool gathers = c->call.kind == WB_CALL_gather;
    const int64_t wanted[4] = {1, -3, 217, call->size};
    for (int i = 0; i < 4; i++) assert_int_equal(status[i], wanted[i]);
    const argument *result = &c->arguments[2];
    const char *bytes = got->of[2], *old = before->of[2];
    for (int64_t i = 0; i < result->count && gathers; i++) {
        const int64_t p = i / call->inner % call->count;
        if (p != 217 && p != 250) continue;
        const size_t size = wb_dtype_size(result->dtype);
        assert_memory_equal(bytes + (size_t)i * size, old + (size_t)i * size, size);
    }
}

static void run_case(dialect_kind kind, dialect_unit *unit, int index, const call_case *c) {
    static char log[DIALECT_LOG];
    test_random random = {test_seed()};
    arrays before = arrays_new(c), got = arrays_new(c);
    fill(c, &before, &random);
    for (int i = 0; i < c->narguments; i++) memcpy(got.of[i], before.of[i], before.sizes[i]);
    arrays wanted = reference_of(c, &before);
    int64_t status[4] = {0};
    if (!dialect_run(unit, index, got.of, got.sizes, NULL, status, log))
        fail_msg("%s: %s", c->name, log);
    if (c->has_bad_index)
        check_bad_index(c, &got, &before, status);
    else
        assert_int_equal(status[0], 0);
    if (!c->has_bad_index) compare(dialect_of(kind)->name, c, &got, &wanted);
    arrays_release(&before);
    arrays_release(&got);
    arrays_release(&wanted);
}

/* ---- a dialect ---- */

static wb_source *sources[MOST_CASES];
static const call_case *of_source[MOST_CASES];

static bool takes(const wb_dialect *dialect, const call_case *c) {
    const bool has_keys = c->call.kind == WB_CALL_merge_runs || c->call.kind == WB_CALL_argmax;
    const int dtype = has_keys ? c->call.index.index_dtype : (int)c->call.dtype;
    return dtype != WB_F64 || dialect->has_f64 || c->call.kind == WB_CALL_gather;
}

static int by_text(const void *a, const void *b) {
    const int i = *(const int *)a, k = *(const int *)b;
    const int order = strcmp(sources[i]->text, sources[k]->text);
    return order ? order : i - k;
}

/* Sources of all cases, equal texts together. */
static int render_cases(dialect_kind kind) {
    static wb_source *sorted[MOST_CASES];
    static const call_case *sorted_cases[MOST_CASES];
    int order[MOST_CASES], count = 0;
    for (int i = 0; i < case_count; i++) {
        if (!takes(dialect_of(kind), &cases[i])) continue;
        sources[count] = wb_render_call(&cases[i].call, NULL, 0, dialect_of(kind));
        if (!sources[count]) fail_msg("%s: %s", cases[i].name, wb_error_message());
        of_source[count] = &cases[i];
        order[count] = count;
        count++;
    }
    qsort(order, (size_t)count, sizeof *order, by_text);
    for (int i = 0; i < count; i++)
        sorted[i] = sources[order[i]], sorted_cases[i] = of_source[order[i]];
    memcpy(sources, sorted, sizeof sources);
    memcpy(of_source, sorted_cases, sizeof of_source);
    return count;
}

/* How many sources from `first` on have no more than UNIT texts. */
static int unit_size(int first, int count) {
    int texts = 0, i = first;
    for (; i < count; i++) {
        texts += i == first || strcmp(sources[i]->text, sources[i - 1]->text) != 0;
        if (texts > UNIT) break;
    }
    return i - first;
}

static void check_dialect(dialect_kind kind) {
    static char log[DIALECT_LOG];
    if (!dialect_is_there(kind, log, sizeof log)) {
        print_message("%s is skipped: %s\n", dialect_of(kind)->name, log);
        return;
    }
    const int count = render_cases(kind);
    for (int first = 0; first < count;) {
        const int size = unit_size(first, count);
        dialect_unit *unit =
            dialect_build(kind, (const wb_source *const *)sources + first, size, log);
        if (!unit) fail_msg("%s: %s: %s", dialect_of(kind)->name, of_source[first]->name, log);
        for (int i = 0; i < size && dialect_can_run(kind); i++)
            run_case(kind, unit, i, of_source[first + i]);
        dialect_release(unit);
        first += size;
    }
    for (int i = 0; i < count; i++) wb_source_release(sources[i]);
}

/* ---- the tests ---- */

static void check(void (*add)(void), dialect_kind kind) {
    forget_cases(); /* of a test that failed */
    sees_few = !dialect_can_run(kind);
    add();
    check_dialect(kind);
    forget_cases();
}

#define CHECKS(DIALECT, dialect)                                                                   \
    static void products_in_##dialect(void **state) { (void)state, check(add_products, DIALECT); } \
    static void convolutions_in_##dialect(void **state) {                                          \
        (void)state, check(add_convolutions, DIALECT);                                             \
    }                                                                                              \
    static void pools_in_##dialect(void **state) { (void)state, check(add_pools, DIALECT); }       \
    static void indices_in_##dialect(void **state) { (void)state, check(add_indices, DIALECT); }   \
    static void grids_in_##dialect(void **state) { (void)state, check(add_grids, DIALECT); }       \
    static void attentions_in_##dialect(void **state) {                                            \
        (void)state, check(add_attentions, DIALECT);                                               \
    }
CHECKS(DIALECT_CUDA, cuda)
CHECKS(DIALECT_HIP, hip)
CHECKS(DIALECT_OPENCL_NVIDIA, nvidia_opencl)
CHECKS(DIALECT_METAL, metal)
CHECKS(DIALECT_OPENCL, opencl)
CHECKS(DIALECT_OPENCL_SERIAL, serial_opencl)

static void what_has_no_text_is_said(void **state) {
    (void)state;
    const wb_dialect *metal = dialect_of(DIALECT_METAL);
    const wb_program program = {.ndim = 1};
    forget_cases();
    add_product(&products[0]);
    assert_null(wb_render_call(&cases[0].call, &program, 1, metal)); /* without an error */
    assert_false(wb_failed());
    cases[0].call.dtype = WB_F64;
    assert_null(wb_render_call(&cases[0].call, NULL, 0, metal));
    assert_error(WB_ERROR_UNSUPPORTED, "f64");
    forget_cases();
}

static void without_memory_there_is_no_source(void **state) {
    (void)state;
    add_product(&products[0]);
    for (int n = 1;; n++) {
        (void)wb_fail_allocation(n);
        wb_source *source = wb_render_call(&cases[0].call, NULL, 0, dialect_of(DIALECT_OPENCL));
        (void)wb_fail_allocation(0);
        if (source) {
            wb_source_release(source);
            break;
        }
        assert_error(WB_ERROR_MEMORY, "out of memory");
    }
    forget_cases();
}

int main(void) {
#define TESTS(dialect)                                                                             \
    TEST(products_in_##dialect), TEST(convolutions_in_##dialect), TEST(pools_in_##dialect),        \
        TEST(indices_in_##dialect), TEST(attentions_in_##dialect), TEST(grids_in_##dialect)
    const struct CMUnitTest tests[] = {
        TEST(what_has_no_text_is_said),
        TEST(without_memory_there_is_no_source),
        TESTS(cuda),
        TESTS(hip),
        TESTS(nvidia_opencl),
        TESTS(metal),
        TESTS(opencl),
        TESTS(serial_opencl),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
