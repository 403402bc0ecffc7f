/* Matrix products in cuBLASLt's terms (and hipBLASLt's, tests/backends/amdgpu): descriptors by the
 * library itself where it is there, which needs no GPU; and whole products, batches, alignment,
 * workspace and the choice of algorithms by a library that stands for it. */
#include <cmocka.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/cuda/no_vendor.h"
#include "lt/lt.h"

#define LT_VARIABLE LT_CHOOSE("WEBER_CUBLASLT_LIBRARY", "WEBER_HIPBLASLT_LIBRARY")

enum { ROOM = 4096, GUARD = 64, KNOWS_ALIGNMENT = LT_ALIGNMENT_A != LT_NONE };

static wb_gpu_device device = {.libraries_lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the library itself ---- */

/* m, n, k; leading dimensions; batch, distances; type, epilogue; A and B transposed, fast */
/* clang-format off */
static const wb_lt_shape shapes[] = {
    {64, 32, 16, 64, 16, 64,  1,  0, 0,  0, WB_F32,  WB_EPILOGUE_NONE,      0, 0, 0, 0},
    {64, 32, 16, 64, 16, 64,  1,  0, 0,  0, WB_F32,  WB_EPILOGUE_NONE,      0, 0, 1, 0},
    { 7,  5,  3,  9,  8,  7,  1,  0, 0,  0, WB_F64,  WB_EPILOGUE_NONE,      1, 1, 0, 0},
    { 8,  8,  8,  8,  8,  8, 12, 64, 0, 64, WB_BF16, WB_EPILOGUE_NONE,      0, 0, 0, 0},
    { 8,  8,  8,  8,  8,  8,  1,  0, 0,  0, WB_F16,  WB_EPILOGUE_GELU_BIAS, 0, 0, 0, 0},
};
/* clang-format on */

/* In a process of its own, since libraries are opened once. Exits with 0, 1 for a failure, 77 for a
 * library that is not there. */
static void make_descriptors(void) {
    char reason[256] = "";
    (void)unsetenv(LT_VARIABLE);
    if (!wb_lt_load(reason, sizeof reason)) {
        print_message("%s\n", reason);
        _exit(77);
    }
    print_message("%s\n", reason);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        wb_lt_product product;
        const wb_gpu_outcome o = wb_lt_product_make(&shapes[i], &product);
        wb_lt_product_release(&product);
        if (!o.error) continue;
        print_error("shape %zu: %s: %s\n", i, o.call, o.error);
        _exit(1);
    }
    _exit(0);
}

static void the_library_takes_the_descriptors(void **state) {
    (void)state;
    int status = 0;
    const pid_t child = fork();
    if (child == 0) make_descriptors();
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- the one that stands for it ---- */

/* What it counts, or is told: *fake_number("products") is fake_lt_products. */
static long *fake_number(const char *name) {
    static void *library;
    char symbol[32];
    if (!library) library = dlopen(FAKE_LT, RTLD_NOW | RTLD_LOCAL);
    (void)snprintf(symbol, sizeof symbol, "fake_lt_%s", name);
    long *number = library ? dlsym(library, symbol) : NULL;
    assert_non_null(number);
    return number;
}

static long fake(const char *name) { return *fake_number(name); }

typedef struct row {
    const char *name;
    wb_dtype dtype;
    const char *how;                 /* "nt": A as it is, B transposed */
    int64_t m, n, k, more;           /* more: of the leading dimensions of A and B than they need */
    int64_t batch, a[8], b[8], c[8]; /* offsets, in matrices; batch 0: one */
    int64_t shift;                   /* elements from an aligned address to the beginning of A */
    long calls;                      /* of Matmul; 0: passed on to the text */
} row;

static const row rows[] = {
    {"plain", WB_F32, "nn", 5, 4, 3, 0, 0, {0}, {0}, {0}, 0, 1},
    {"columns further apart", WB_F32, "nn", 5, 4, 3, 2, 0, {0}, {0}, {0}, 0, 1},
    {"A transposed", WB_F32, "tn", 5, 4, 3, 1, 0, {0}, {0}, {0}, 0, 1},
    {"B transposed", WB_F32, "nt", 5, 4, 3, 1, 0, {0}, {0}, {0}, 0, 1},
    {"both transposed", WB_F64, "tt", 5, 4, 3, 1, 0, {0}, {0}, {0}, 0, 1},
    {"bf16", WB_BF16, "nn", 4, 4, 4, 0, 0, {0}, {0}, {0}, 0, 1},
    {"not aligned", WB_F32, "nn", 5, 4, 3, 0, 0, {0}, {0}, {0}, 1, 1},
    {"a batch", WB_F32, "nn", 4, 4, 4, 0, 4, {0, 1, 2, 3}, {0, 1, 2, 3}, {0, 1, 2, 3}, 0, 1},
    {"one B for all", WB_F32, "nn", 4, 4, 4, 0, 4, {0, 1, 2, 3}, {0, 0, 0, 0}, {0, 1, 2, 3}, 0, 1},
    {"B for each second",
     WB_F32,
     "nt",
     4,
     4,
     4,
     0,
     6,
     {0, 1, 2, 3, 4, 5},
     {0, 1, 0, 1, 0, 1},
     {0, 1, 2, 3, 4, 5},
     0,
     3},
    {"two repeated in turn",
     WB_F32,
     "nn",
     4,
     4,
     4,
     0,
     4,
     {0, 0, 1, 1},
     {0, 1, 0, 1},
     {0, 1, 2, 3},
     0,
     2},
    {"a batch in no order",
     WB_F32,
     "nn",
     4,
     4,
     4,
     0,
     5,
     {4, 0, 3, 1, 2},
     {0, 2, 1, 4, 3},
     {0, 1, 2, 3, 4},
     0,
     5},
    {"a batch from its end", WB_F32, "nn", 4, 4, 4, 0, 3, {2, 1, 0}, {0, 1, 2}, {0, 1, 2}, 0, 3},
    {"a batch that is not aligned",
     WB_F32,
     "nn",
     3,
     3,
     3,
     0,
     3,
     {2, 0, 1},
     {0, 1, 2},
     {0, 1, 2},
     0,
     3},
    {"what it has nothing for", WB_F32, "nn", 1, 4, 4, 0, 0, {0}, {0}, {0}, 0, 0},
    {"nothing to sum", WB_F32, "nn", 4, 4, 0, 0, 0, {0}, {0}, {0}, 0, 0},
};

static const size_t element_bytes[WB_DTYPE_COUNT] = {[WB_F32] = 4, [WB_F64] = 8, [WB_BF16] = 2};

static double get(const void *array, wb_dtype dtype, int64_t i) {
    if (dtype == WB_F64) return ((const double *)array)[i];
    if (dtype == WB_F32) return (double)((const float *)array)[i];
    const uint32_t bits = (uint32_t)((const uint16_t *)array)[i] << 16;
    float number;
    memcpy(&number, &bits, sizeof number);
    return (double)number;
}

/* Whole numbers that all types hold exactly, as do their products here. */
static void put(void *array, wb_dtype dtype, int64_t i, int value) {
    const float number = (float)value;
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    if (dtype == WB_F64)
        ((double *)array)[i] = value;
    else if (dtype == WB_F32)
        ((float *)array)[i] = number;
    else
        ((uint16_t *)array)[i] = (uint16_t)(bits >> 16);
}

typedef struct workbench {
    _Alignas(WB_SCRATCH_ALIGNMENT) char a[ROOM * 8], b[ROOM * 8], c[ROOM * 8], bias[ROOM * 8],
        product[ROOM * 8], scratch[ROOM];
    int64_t offsets[3][8];
    wb_call call;
} workbench;

static int64_t columns_of(bool transposed, int64_t rows, int64_t columns) {
    return transposed ? rows : columns;
}

static void set_up(const row *r, workbench *w) {
    const bool ta = r->how[0] == 't', tb = r->how[1] == 't';
    memset(w, 0, sizeof *w);
    wb_matmul_call *p = &w->call.matmul;
    w->call.kind = WB_CALL_matmul, w->call.dtype = r->dtype;
    *p = (wb_matmul_call){.transpose_a = ta,
                          .transpose_b = tb,
                          .m = r->m,
                          .n = r->n,
                          .k = r->k,
                          .lda = (ta ? r->k : r->m) + r->more,
                          .ldb = (tb ? r->n : r->k) + r->more,
                          .ldc = r->m,
                          .batch = r->batch ? r->batch : 1};
    for (int64_t i = 0; i < r->batch; i++) {
        w->offsets[0][i] = r->a[i] * p->lda * columns_of(ta, r->m, r->k);
        w->offsets[1][i] = r->b[i] * p->ldb * columns_of(tb, r->k, r->n);
        w->offsets[2][i] = r->c[i] * r->m * r->n;
    }
    if (r->batch)
        p->offset_a = w->offsets[0], p->offset_b = w->offsets[1], p->offset_c = w->offsets[2];
    for (int64_t i = 0; i < ROOM; i++) {
        put(w->a, r->dtype, i, (int)(i * 7 % 5) - 2);
        put(w->b, r->dtype, i, (int)(i * 11 % 7) - 3);
        put(w->c, r->dtype, i, 99);
        put(w->bias, r->dtype, i, (int)(i % 3) - 1);
    }
}

static void expect(const row *r, const workbench *w, const wb_epilogue *epilogue) {
    const wb_matmul_call *p = &w->call.matmul;
    for (int64_t i = 0; i < p->batch; i++)
        for (int64_t column = 0; column < p->n; column++)
            for (int64_t at = 0; at < p->m; at++) {
                double sum = 0;
                for (int64_t k = 0; k < p->k; k++)
                    sum += get(w->a, r->dtype,
                               r->shift + w->offsets[0][i] +
                                   (p->transpose_a ? k + at * p->lda : at + k * p->lda)) *
                           get(w->b, r->dtype,
                               w->offsets[1][i] +
                                   (p->transpose_b ? column + k * p->ldb : k + column * p->ldb));
                if (epilogue->kind & WB_EPILOGUE_BIAS) sum += get(w->bias, r->dtype, at + 2);
                if (epilogue->kind == WB_EPILOGUE_RELU_BIAS && sum < 0) sum = 0;
                const double got = get(w->c, r->dtype, w->offsets[2][i] + at + column * p->ldc);
                if (got != sum)
                    fail_msg("%s: matrix %lld (%lld, %lld) is %g, not %g", r->name, (long long)i,
                             (long long)at, (long long)column, got, sum);
            }
    const int64_t end = p->m * p->n * p->batch;
    for (int64_t i = end; i < end + GUARD; i++)
        if (get(w->c, r->dtype, i) != 99) fail_msg("%s: wrote behind its end", r->name);
}

static wb_gpu_outcome run(const row *r, workbench *w, const wb_gpu_kernel *kernel, int count) {
    const wb_memory memory[] = {{w->a, r->shift * (int64_t)element_bytes[r->dtype]},
                                {w->b, 0},
                                {w->c, 0},
                                {w->bias, 0},
                                {w->scratch, 0},
                                {w->product, 0}};
    /* the call's; its result again, what the epilogue writes, its bias; scratch memory */
    static const wb_argument plain[] = {{0, 0}, {1, 0}, {2, 0}, {4, WB_SCRATCH_ALIGNMENT}};
    static const wb_argument fused[] = {
        {0, 0}, {1, 0}, {5, 0}, {5, 0}, {2, 0}, {3, 0}, {4, WB_SCRATCH_ALIGNMENT}};
    const wb_command command = {
        .narguments = count, .arguments = count == 4 ? plain : fused, .what = "matmul"};
    const wb_gpu_run run = {.device = &device, .memory = memory};
    assert_true(kernel->scratch_bytes > 0 &&
                kernel->scratch_bytes + WB_SCRATCH_ALIGNMENT <= sizeof w->scratch);
    return kernel->run(kernel, &run, &command);
}

static wb_gpu_kernel *take(const row *r, const workbench *w) {
    wb_gpu_kernel *kernel = NULL;
    const wb_gpu_answer answer = wb_lt_lower(&device, &w->call, NULL, 0, &kernel);
    if (answer != WB_GPU_TAKEN) fail_msg("%s: answered with %d", r->name, (int)answer);
    return kernel;
}

static void run_plain(const row *r, workbench *w) {
    wb_gpu_kernel *kernel = take(r, w);
    const wb_gpu_outcome o = run(r, w, kernel, 4);
    kernel->release(kernel);
    if (o.error) fail_msg("%s: %s: %s", r->name, o.call, o.error);
}

static void products_come_out_right(void **state) {
    (void)state;
    static workbench w;
    const wb_epilogue none = {.kind = WB_EPILOGUE_NONE};
    for (const row *r = rows; r < rows + sizeof rows / sizeof *rows; r++) {
        wb_gpu_kernel *kernel = NULL;
        set_up(r, &w);
        if (r->calls == 0) {
            assert_int_equal(wb_lt_lower(&device, &w.call, NULL, 0, &kernel), WB_GPU_PASS);
            continue;
        }
        const long before = fake("products");
        run_plain(r, &w);
        if (fake("products") - before != r->calls)
            fail_msg("%s: %ld calls, not %ld", r->name, fake("products") - before, r->calls);
        expect(r, &w, &none);
    }
    wb_lt_device_close(&device);
    assert_int_equal(fake("live"), 0);
}

static void a_shape_is_asked_about_once(void **state) {
    (void)state;
    static workbench w;
    wb_gpu_kernel *kernels[3];
    long asked[4] = {fake("asked")};
    set_up(&rows[0], &w);
    for (int i = 0; i < 3; i++) {
        w.call.matmul.lda += i == 2;
        kernels[i] = take(&rows[0], &w);
        asked[i + 1] = fake("asked");
    }
    assert_true(asked[1] > asked[0]);
    assert_int_equal(asked[2], asked[1]);
    assert_int_equal(asked[3] - asked[2], asked[1] - asked[0]);
    for (int i = 0; i < 3; i++) kernels[i]->release(kernels[i]);
    wb_lt_device_close(&device);
}

static void *lower(void *w) {
    wb_gpu_kernel *kernel = NULL;
    (void)wb_lt_lower(&device, &((workbench *)w)->call, NULL, 0, &kernel);
    return kernel;
}

static void nothing_is_asked_while_a_graph_is_made(void **state) {
    (void)state;
    static workbench w;
    pthread_t thread;
    void *kernel;
    set_up(&rows[0], &w);
    wb_gpu_kernel *first = take(&rows[0], &w);
    w.call.matmul.lda++;
    const long asked = fake("asked");
    wb_gpu_pause_graphs(&device); /* as who makes one does */
    const int failed = pthread_create(&thread, NULL, lower, &w);
    (void)usleep(50000);
    const long meanwhile = fake("asked");
    wb_gpu_resume_graphs(&device);
    assert_int_equal(failed, 0);
    assert_int_equal(pthread_join(thread, &kernel), 0);
    assert_int_equal(meanwhile, asked);
    assert_non_null(kernel);
    assert_true(fake("asked") > asked);
    ((wb_gpu_kernel *)kernel)->release(kernel);
    first->release(first);
    wb_lt_device_close(&device);
}

static void aligned_operands_get_the_algorithm_for_them(void **state) {
    (void)state;
    static workbench w;
    for (int64_t shift = 0; shift < 2; shift++) {
        row r = rows[0];
        r.shift = shift;
        set_up(&r, &w);
        const long before = fake("aligned");
        run_plain(&r, &w);
        assert_int_equal(fake("aligned") - before, KNOWS_ALIGNMENT && shift == 0);
    }
    wb_lt_device_close(&device);
}

/* Where nothing else can come, there need be no other algorithm. hipBLASLt has one for all. */
static void operands_that_are_always_aligned_need_no_other(void **state) {
    (void)state;
    static workbench w;
    wb_gpu_kernel *kernel = NULL;
    set_up(&rows[0], &w);
    *fake_number("no_unaligned") = KNOWS_ALIGNMENT;
    if (KNOWS_ALIGNMENT)
        assert_int_equal(wb_lt_lower(&device, &w.call, NULL, 0, &kernel), WB_GPU_PASS);
    w.call.is_aligned = true;
    const long before = fake("aligned");
    run_plain(&rows[0], &w);
    assert_int_equal(fake("aligned") - before, KNOWS_ALIGNMENT);
    expect(&rows[0], &w, &(wb_epilogue){.kind = WB_EPILOGUE_NONE});
    *fake_number("no_unaligned") = 0;
    wb_lt_device_close(&device);
}

static void f32_is_computed_in_less_only_on_request(void **state) {
    (void)state;
    static workbench w;
    for (int fast = 0; fast < 2; fast++) {
        set_up(&rows[0], &w);
        w.call.is_fast = fast;
        run_plain(&rows[0], &w);
        assert_int_equal(fake("compute"), fast ? LT_COMPUTE_TF32 : LT_COMPUTE_F32);
    }
    wb_lt_device_close(&device);
}

static void what_there_is_not_in_tf32_is_computed_in_f32(void **state) {
    (void)state;
    static workbench w;
    set_up(&rows[0], &w);
    w.call.is_fast = true;
    *fake_number("no_tf32") = 1;
    run_plain(&rows[0], &w);
    *fake_number("no_tf32") = 0;
    assert_int_equal(fake("compute"), LT_COMPUTE_F32);
    wb_lt_device_close(&device);
    assert_int_equal(fake("live"), 0);
}

/* max(product + bias, 0): the result is the program's argument 1, the bias begins 2 elements into
 * argument 2; the product itself, argument 0, is not written. */
static void an_epilogue_goes_with_the_product(void **state) {
    (void)state;
    static workbench w;
    set_up(&rows[0], &w);
    w.call.is_result_private = true, w.call.result_argument = 0;
    /* clang-format off */
    wb_access accesses[] = {
        {.dtype = WB_F32, .argument = 0, .strides = {1, w.call.matmul.m}},
        {.dtype = WB_F32, .argument = 2, .strides = {1, 0}, .offset = 2},
        {.dtype = WB_F32, .argument = 1, .strides = {1, w.call.matmul.m}},
    };
    wb_instruction instructions[] = {
        {.code = WB_CODE_load, .index = 0},
        {.code = WB_CODE_load, .index = 1},
        {.code = WB_CODE_add, .in = {0, 1, WB_NO_VALUE}},
        {.code = WB_CODE_constant, .constant = 0},
        {.code = WB_CODE_max, .in = {2, 3, WB_NO_VALUE}},
        {.code = WB_CODE_store, .in = {4, WB_NO_VALUE, WB_NO_VALUE}, .index = 2},
    };
    /* clang-format on */
    const wb_program program = {
        .ndim = 2,
        .sizes = {w.call.matmul.m, w.call.matmul.n},
        .phases = 1,
        .ninstructions = 6,
        .naccesses = 3,
        .narguments = 3,
        .instructions = instructions,
        .accesses = accesses,
        .is_named = true,
        .ncallables = 2,
        .callables = {
            {.name = "add",
             .in = {{WB_OPERAND_ARRAY, 0}, {WB_OPERAND_ARRAY, 1}},
             .out = {{WB_OPERAND_VALUE, 2}}},
            {.name = "relu", .in = {{WB_OPERAND_VALUE, 2}}, .out = {{WB_OPERAND_ARRAY, 2}}}}};
    wb_gpu_kernel *kernel = NULL;
    assert_int_equal(wb_lt_lower(&device, &w.call, &program, 1, &kernel), WB_GPU_TAKEN);
    assert_null(run(&rows[0], &w, kernel, 7).error);
    expect(&rows[0], &w, &(wb_epilogue){.kind = WB_EPILOGUE_RELU_BIAS});
    kernel->release(kernel);
    wb_lt_device_close(&device); /* which remembers the shape */
    w.call.is_aligned = true;    /* but not the bias */
    w.call.aligned_arguments = 7;
    *fake_number("no_unaligned") = KNOWS_ALIGNMENT;
    kernel = NULL;
    assert_int_equal(wb_lt_lower(&device, &w.call, &program, 1, &kernel),
                     KNOWS_ALIGNMENT ? WB_GPU_APART : WB_GPU_TAKEN);
    if (kernel) kernel->release(kernel);
    *fake_number("no_unaligned") = 0;
    w.call.is_result_private = false; /* somebody wants the product itself */
    assert_int_equal(wb_lt_lower(&device, &w.call, &program, 1, &kernel), WB_GPU_APART);
    wb_lt_device_close(&device);
    assert_int_equal(fake("live"), 0);
}

int main(void) {
    wb_gpu_host = &wb_builtin_host;
    (void)setenv(LT_VARIABLE, FAKE_LT, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_library_takes_the_descriptors),
        cmocka_unit_test(products_come_out_right),
        cmocka_unit_test(a_shape_is_asked_about_once),
        cmocka_unit_test(nothing_is_asked_while_a_graph_is_made),
        cmocka_unit_test(aligned_operands_get_the_algorithm_for_them),
        cmocka_unit_test(operands_that_are_always_aligned_need_no_other),
        cmocka_unit_test(f32_is_computed_in_less_only_on_request),
        cmocka_unit_test(what_there_is_not_in_tf32_is_computed_in_f32),
        cmocka_unit_test(an_epilogue_goes_with_the_product),
    };
    return cmocka_run_group_tests_name(
        LT_CHOOSE("backends/cuda/test_cublaslt", "backends/amdgpu/test_hipblaslt"), tests, NULL,
        NULL);
}
