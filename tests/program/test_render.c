/* Every program of tests/support/programs.c as text: what of it depends on sizes, under all
 * compilers, and run against the CPU. */
#include "program/render.h"

#include "base/memory.h"
#include "device/device.h"
#include "program/call.h"
#include "support/dialects.h"
#include "support/programs.h"
#include "support/support.h"

/* ---- memory for a program ---- */

typedef struct memory {
    void *arguments[MOST_PROGRAM_ARGUMENTS];
    size_t sizes[MOST_PROGRAM_ARGUMENTS];
} memory;

/* Key and counter, then numbers: PROGRAM_LATE of them from the second on. */
static const uint64_t *late_words(void) {
    static const double
        numbers[PROGRAM_LATE] =
            {
                -1e30,
                7e9,
                -2.5,
                0,
                1.0 / 3, /* then what f32 rounds to even, to denormals, to infinity */
                1 + 0x1p-24,
                -1 - 0x3p-24,
                0x1p-150,
                0x3p-150,
                -0x1.8p-149,
                1e-40,
                0x1.fffffefp127,
                0x1.ffffffp127,
                1e39,
                -INFINITY,
                NAN};
    static uint64_t words[2 + PROGRAM_LATE] = {0x123456789abcdef0u, 77};
    memcpy(words + 2, numbers, sizeof numbers);
    return words;
}

static double special(test_random *r) {
    static const double numbers[] = {
        0, -0.0, INFINITY, -INFINITY, NAN, 1, -1, 3e38, -65519, 65520, 1e-7, 2e9, -3e9,
        /* halfway between two halves */
        1 + 0x1p-11, -1 - 0x3p-11, 0x1p-25, 0x3p-25, -0x1.004p-14, 1 + 0x1p-8, -1 - 0x3p-8};
    return numbers[random_below(r, (int64_t)(sizeof numbers / sizeof *numbers))];
}

static void memory_make(const program_maker *m, memory *memory) {
    test_random r = {42};
    for (int a = 0; a < m->program.narguments; a++) {
        memory->sizes[a] = (size_t)m->counts[a] * wb_dtype_size(m->dtypes[a]);
        memory->arguments[a] = calloc(1, memory->sizes[a] + 64);
        for (int64_t i = 0; i < m->counts[a]; i++) {
            const bool is_special = m->low == -PROGRAM_SPECIAL && m->dtypes[a] <= WB_BF16;
            const double x = is_special ? special(&r) : random_between(&r, m->low, m->high);
            const bool is_bool = m->dtypes[a] == WB_BOOL; /* some of each */
            number_put(m->dtypes[a], memory->arguments[a], i,
                       m->is_output[a] && a > 1 ? 99
                       : is_bool                ? (double)((int64_t)x % 2)
                                                : x);
        }
    }
}

static void memory_free(const program_maker *m, memory *memory) {
    for (int a = 0; a < m->program.narguments; a++) free(memory->arguments[a]);
}

/* ---- the CPU's result ---- */

static void run_on_cpu(const program_maker *m, const memory *on) {
    void *device = wb_cpu_backend.open(0), *kernel = wb_cpu_backend.kernel(device, &m->program);
    wb_memory table[MOST_PROGRAM_ARGUMENTS + 1] = {{.handle = NULL}};
    wb_argument arguments[MOST_PROGRAM_ARGUMENTS + 1];
    const int count = m->program.narguments;
    assert_non_null(kernel);
    for (int a = 0; a <= count; a++) arguments[a] = (wb_argument){.memory = (uint32_t)a};
    for (int a = 0; a < count; a++) table[a].handle = on->arguments[a];
    const size_t scratch = wb_cpu_backend.scratch_bytes(kernel);
    table[count].handle = wb_cpu_backend.alloc(device, scratch);
    const wb_command command = {.kernel = kernel,
                                .narguments = count + 1,
                                .arguments = arguments,
                                .what = m->program.ndim ? "" : ""};
    assert_int_equal(wb_cpu_backend.run(device, NULL, &command, 1, table, late_words()), WB_OK);
    wb_cpu_backend.free(device, table[count].handle, scratch);
    wb_cpu_backend.release(kernel);
}

/* ---- comparing ---- */

static double tolerance_of(const program_maker *m, wb_dtype dtype) {
    static const double tolerances[WB_DTYPE_COUNT] = {
        [WB_F32] = 3e-6, [WB_F64] = 1e-13, [WB_F16] = 1.1e-3, [WB_BF16] = 8e-3};
    if (m->low == -PROGRAM_SPECIAL) return 0;
    return m->tolerance > 0 && dtype <= WB_F64 ? m->tolerance : tolerances[dtype];
}

static bool is_same(double a, double b, double tolerance) {
    if (a == b || (isnan(a) && isnan(b))) return true;
    return fabs(a - b) <= tolerance * (1 + fabs(b));
}

/* The number of elements that differ; the first of them is printed. */
static int64_t compare(const program_maker *m, const char *name, const memory *have,
                       const memory *want) {
    int64_t wrong = 0;
    for (int a = 0; a < m->program.narguments; a++) {
        const wb_dtype dtype = m->dtypes[a];
        for (int64_t i = 0; i < m->counts[a]; i++) {
            const double x = number_get(dtype, have->arguments[a], i),
                         y = number_get(dtype, want->arguments[a], i);
            if (is_same(x, y, tolerance_of(m, dtype))) continue;
            if (wrong++ == 0)
                print_error("%s: argument %d (%s), element %lld is %.9g, on the CPU %.9g\n", name,
                            a, wb_dtype_name(dtype), (long long)i, x, y);
        }
    }
    return wrong;
}

/* ---- all programs in a dialect ---- */

typedef struct rendered {
    const wb_source *sources[128];
    const program_row *rows[128];
    int count;
} rendered;

/* Rows that the dialect can say: without f64 where there is none. */
static void render_all(dialect_kind kind, int variant, rendered *all) {
    program_maker *m = malloc(sizeof *m);
    const char *only = getenv("WEBER_TEST_PROGRAM");
    all->count = 0;
    for (int i = 0; i < program_count; i++) {
        if (only && strcmp(only, programs[i].name) != 0) continue;
        programs[i].make(m, variant);
        wb_source *source = wb_render(&m->program, dialect_of(kind));
        if (!source) {
            assert_false(dialect_of(kind)->has_f64);
            assert_error(WB_ERROR_UNSUPPORTED, dialect_of(kind)->name);
            continue;
        }
        all->rows[all->count] = &programs[i];
        all->sources[all->count++] = source;
    }
    free(m);
}

static void release_all(rendered *all) {
    for (int i = 0; i < all->count; i++) {
        union {
            const wb_source *from;
            wb_source *to;
        } owned = {.from = all->sources[i]};
        wb_source_release(owned.to);
    }
}

static int64_t run_one(dialect_unit *unit, int index, const program_row *row) {
    static char log[DIALECT_LOG];
    program_maker *m = malloc(sizeof *m);
    memory have, want;
    row->make(m, 0);
    memory_make(m, &have);
    memory_make(m, &want);
    run_on_cpu(m, &want);
    int64_t wrong = 1;
    if (dialect_run(unit, index, have.arguments, have.sizes, late_words(), NULL, log))
        wrong = compare(m, row->name, &have, &want);
    else
        print_error("%s: %s\n", row->name, log);
    memory_free(m, &have);
    memory_free(m, &want);
    free(m);
    return wrong;
}

static void check_dialect(dialect_kind kind) {
    static char log[DIALECT_LOG];
    char reason[256];
    if (!dialect_is_there(kind, reason, sizeof reason)) {
        print_message("skipped: %s: %s\n", dialect_of(kind)->name, reason);
        skip();
    }
    rendered all;
    render_all(kind, 0, &all);
    dialect_unit *unit = dialect_build(kind, all.sources, all.count, log);
    if (!unit) fail_msg("%s: %.4000s", dialect_of(kind)->name, log);
    int wrong = 0;
    for (int i = 0; dialect_can_run(kind) && i < all.count; i++)
        wrong += run_one(unit, i, all.rows[i]) > 0;
    print_message("%s: %d programs%s\n", dialect_of(kind)->name, all.count,
                  dialect_can_run(kind) ? " run" : " compiled");
    dialect_release(unit);
    release_all(&all);
    assert_int_equal(wrong, 0);
}

static void opencl_for_serial_cores_gives_the_results_of_the_cpu(void **state) {
    (void)state;
    check_dialect(DIALECT_OPENCL_SERIAL);
}

static void opencl_gives_the_results_of_the_cpu(void **state) {
    (void)state;
    check_dialect(DIALECT_OPENCL);
}

static void metal_gives_the_results_of_the_cpu(void **state) {
    (void)state;
    check_dialect(DIALECT_METAL);
}

static void cuda_compiles(void **state) {
    (void)state;
    check_dialect(DIALECT_CUDA);
}

static void hip_compiles(void **state) {
    (void)state;
    check_dialect(DIALECT_HIP);
}

static void opencl_of_nvidia_compiles(void **state) {
    (void)state;
    check_dialect(DIALECT_OPENCL_NVIDIA);
}

/* ---- the text ---- */

static void other_sizes_give_the_same_text(void **state) {
    (void)state;
    for (int kind = 0; kind < DIALECT_COUNT; kind++) {
        rendered one, other;
        render_all((dialect_kind)kind, 0, &one);
        render_all((dialect_kind)kind, 1, &other);
        assert_int_equal(one.count, other.count);
        for (int i = 0; i < one.count; i++) {
            if (strstr(one.rows[i]->name, "numbers"))
                continue; /* too many for the block: they are in the text */
            if (strcmp(one.sources[i]->text, other.sources[i]->text) != 0)
                fail_msg("%s: the text of %s depends on sizes:\n%s\n%s",
                         dialect_of((dialect_kind)kind)->name, one.rows[i]->name,
                         one.sources[i]->text, other.sources[i]->text);
            assert_true(one.sources[i]->key == other.sources[i]->key);
        }
        release_all(&one);
        release_all(&other);
    }
}

static void the_block_is_small(void **state) {
    (void)state;
    for (int kind = 0; kind < DIALECT_COUNT; kind++) {
        rendered all;
        render_all((dialect_kind)kind, 0, &all);
        for (int i = 0; i < all.count; i++) {
            const wb_source *s = all.sources[i];
            if (s->word_count * 8 + s->buffer_count * 8 > 1024 && s->buffer_count < 32)
                fail_msg("%s: %d words, %d buffers", all.rows[i]->name, s->word_count,
                         s->buffer_count);
            assert_true(s->launch_count <= 4);
        }
        release_all(&all);
    }
}

static void make_update(program_maker *m) {
    int i = 0;
    while (strcmp(programs[i].name, "update") != 0) i++;
    programs[i].make(m, 0);
}

/* As a dialect has room for them, and only updates. */
static void updates_may_be_jobs(void **state) {
    (void)state;
    static const struct {
        int32_t job_bytes;
        bool is_update;
    } rows[] = {
        {0, true}, {64, true}, {300, true}, {4096, true}, {4096, false},
    };
    program_maker *m = malloc(sizeof *m);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        wb_dialect dialect = *dialect_of(DIALECT_CUDA);
        dialect.job_bytes = rows[i].job_bytes;
        make_update(m);
        m->program.is_update = rows[i].is_update;
        wb_source *s = wb_render(&m->program, &dialect);
        const int32_t words = 1 + s->buffer_count + s->word_count;
        const int32_t room = rows[i].is_update ? (dialect.job_bytes / 8 - 1) / words : 0;
        assert_int_equal(s->most_jobs, room >= 2 ? room : 0);
        assert_int_equal(strstr(s->text, "WB_JOBS(k") != NULL, s->most_jobs > 0);
        wb_source_release(s);
    }
    free(m);
}

static void groups_and_warps_have_bounds(void **state) {
    (void)state;
    static const char groups[] = "OpenCL C: groups of ", warps[] = "OpenCL C: warps of ";
    static const struct {
        int32_t group, warp;
        bool is_serial;
        const char *message; /* NULL: good */
    } rows[] = {
        {1, 0, true, NULL},     {16, 0, false, NULL},    {256, 0, false, NULL},
        {256, 32, false, NULL}, {64, 64, false, NULL},   {8, 0, false, groups},
        {24, 0, false, groups}, {512, 0, false, groups}, {0, 0, true, groups},
        {3, 0, true, groups},   {512, 0, true, groups},  {64, 128, false, warps},
        {64, 24, false, warps}, {64, -1, false, warps},  {1, 1, true, warps},
    };
    const wb_call call = {
        .kind = WB_CALL_matmul,
        .matmul = {.m = 2, .n = 2, .k = 2, .lda = 2, .ldb = 2, .ldc = 2, .batch = 1}};
    program_maker *m = malloc(sizeof *m);
    programs[0].make(m, 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        wb_dialect dialect = *dialect_of(DIALECT_OPENCL);
        dialect.group = rows[i].group, dialect.warp = rows[i].warp;
        dialect.is_serial = rows[i].is_serial;
        wb_source *program = wb_render(&m->program, &dialect);
        if (!program) assert_error(WB_ERROR_ARGUMENT, rows[i].message);
        wb_source *product = wb_render_call(&call, NULL, 0, &dialect);
        if (!product) assert_error(WB_ERROR_ARGUMENT, rows[i].message);
        if (!program != !!rows[i].message || !product != !!rows[i].message)
            fail_msg("groups of %d, warps of %d", rows[i].group, rows[i].warp);
        wb_source_release(program);
        wb_source_release(product);
    }
    free(m);
}

static void nothing_is_not_launched(void **state) {
    (void)state;
    program_maker *m = malloc(sizeof *m);
    for (int i = 0; i < program_count; i++) {
        if (strcmp(programs[i].name, "nothing") != 0 && strcmp(programs[i].name, "empty_rows") != 0)
            continue;
        programs[i].make(m, 0);
        wb_source *source = wb_render(&m->program, dialect_of(DIALECT_CUDA));
        assert_int_equal(source->launch_count, 0);
        wb_source_release(source);
    }
    free(m);
}

static void memory_that_runs_out_is_an_error(void **state) {
    (void)state;
    program_maker *m = malloc(sizeof *m);
    programs[0].make(m, 0);
    for (int64_t n = 1;; n++) {
        (void)wb_fail_allocation(n);
        wb_source *source = wb_render(&m->program, dialect_of(DIALECT_CUDA));
        (void)wb_fail_allocation(0);
        if (source) {
            wb_source_release(source);
            break;
        }
        assert_error(WB_ERROR_MEMORY, "");
    }
    free(m);
}

static void f64_is_refused_by_name(void **state) {
    (void)state;
    const wb_dialect *metal = dialect_of(DIALECT_METAL);
    wb_instruction add = {.code = WB_CODE_add, .type = WB_R_F64, .from = WB_R_F64};
    const wb_program program = {.ninstructions = 1, .instructions = &add};
    assert_null(wb_render(&program, metal));
    assert_error(WB_ERROR_UNSUPPORTED,
                 "add of f64: Metal has no f64 on this device; use f32 (wb_cast), or the CPU");
    const wb_call call = {.kind = WB_CALL_matmul, .dtype = WB_F64};
    assert_null(wb_render_call(&call, NULL, 0, metal));
    assert_error(WB_ERROR_UNSUPPORTED, "matmul of f64: Metal has no f64");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(other_sizes_give_the_same_text),
        TEST(the_block_is_small),
        TEST(updates_may_be_jobs),
        TEST(groups_and_warps_have_bounds),
        TEST(f64_is_refused_by_name),
        TEST(nothing_is_not_launched),
        TEST(memory_that_runs_out_is_an_error),
        TEST(cuda_compiles),
        TEST(hip_compiles),
        TEST(opencl_of_nvidia_compiles),
        TEST(metal_gives_the_results_of_the_cpu),
        TEST(opencl_for_serial_cores_gives_the_results_of_the_cpu),
        TEST(opencl_gives_the_results_of_the_cpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
