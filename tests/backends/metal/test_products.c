/* Products, convolutions and attention of the Metal plugin, on the stand-in for Apple's runtime: by
 * matrices of SIMD groups in each shape of tile, plainly on GPUs that have none, and by
 * MetalPerformanceShaders; the numbers are the CPU's each way. Each kind of GPU is a process of its
 * own, since libraries are opened once. */
#include "stand_in.h"

#include <sys/wait.h>
#include <unistd.h>

#include "support/support.h"

/* ---- what is computed: y, and gradients where there are any ---- */

enum { MOST = 4 };

typedef struct results {
    wb_array *of[MOST];
} results;

typedef struct row row;
typedef results compute_fn(const row *r, const wb_device *device);

struct row {
    const char *name;
    compute_fn *compute;
    wb_dtype dtype;
    int64_t sizes[3], batch; /* products: m, n, k; batch 0: none */
    bool transpose_a, transpose_b, has_bias;
    bool is_for_mps, is_causal, is_piece;
    wb_window_desc window;
};

static wb_array *place(const row *r, const wb_device *device, wb_array *x) {
    x = wb_cast(wb_add_number(x, -0.5), r->dtype);
    x = wb_to(device, x, .eltype = WB_ELTYPE_PRESERVE);
    (void)wb_eval(x);
    return x;
}

static wb_array *matrix(const row *r, const wb_device *device, int64_t rows, int64_t columns) {
    return place(r, device,
                 r->batch ? wb_uniform(WB_F32, rows, columns, r->batch)
                          : wb_uniform(WB_F32, rows, columns));
}

static wb_array *turned(wb_array *x) {
    return wb_ndim(x) == 3 ? wb_permute(x, 1, 0, 2) : wb_transpose(x);
}

static results product(const row *r, const wb_device *device) {
    const int64_t m = r->sizes[0], n = r->sizes[1], k = r->sizes[2];
    wb_array *a =
        r->transpose_a ? matrix(r, device, k, m) : matrix(r, device, m + 4 * r->is_piece, k);
    if (r->is_piece) a = wb_slice(a, 0, 4, WB_END, 1);
    wb_array *b = r->transpose_b ? matrix(r, device, n, k) : matrix(r, device, k, n);
    wb_array *bias = place(r, device, wb_uniform(WB_F32, m));
    wb_array *y = wb_matmul(r->transpose_a ? turned(a) : a, r->transpose_b ? turned(b) : b);
    return (results){{r->has_bias ? wb_relu(wb_add(y, bias)) : y}};
}

static results convolution(const row *r, const wb_device *device) {
    const int64_t groups = r->window.groups ? r->window.groups : 1;
    wb_array *x = place(r, device, wb_uniform(WB_F32, r->sizes[0], 7, r->sizes[1], 2));
    wb_array *w = place(r, device, wb_uniform(WB_F32, 3, 3, r->sizes[1] / groups, r->sizes[2]));
    wb_array *y = wb_conv_op_make(x, w, r->window), *of[] = {x, w}, *g[2] = {NULL};
    (void)wb_gradient_of(wb_sum(wb_mul(y, y)), 2, of, g);
    return (results){{y, g[0], g[1]}};
}

static results attention(const row *r, const wb_device *device) {
    enum { HEADS = 2 };
    const int64_t features = r->sizes[0] * HEADS, queries = r->sizes[1], keys = r->sizes[2];
    wb_array *q = place(r, device, wb_uniform(WB_F32, features, queries, 2));
    wb_array *k = place(r, device, wb_uniform(WB_F32, features, keys, 2));
    wb_array *v = place(r, device, wb_uniform(WB_F32, features, keys, 2));
    wb_array *y = wb_attention(q, k, v, .heads = HEADS, .causal = r->is_causal);
    wb_array *of[] = {q, k, v}, *g[3] = {NULL};
    (void)wb_gradient_of(wb_sum(wb_mul(y, y)), 3, of, g);
    return (results){{y, g[0], g[1], g[2]}};
}

/* Tiles are 128, 64 or 32 high and wide, or 16 where there are few rows or columns; a long sum is
 * cut into parts. */
static const row rows[] = {
    {"small", product, WB_F32, .sizes = {32, 32, 32}},
    {"less than a tile", product, WB_F32, .sizes = {3, 5, 7}},
    {"middle, ragged", product, WB_F32, .sizes = {65, 70, 33}},
    {"high", product, WB_F32, .sizes = {130, 9, 40}},
    {"wide", product, WB_F32, .sizes = {9, 130, 40}},
    {"large, of a batch", product, WB_F32, .sizes = {129, 130, 9}, .batch = 64},
    {"a long sum", product, WB_F32, .sizes = {20, 20, 1200}},
    {"A transposed", product, WB_F32, .sizes = {40, 70, 24}, .transpose_a = true},
    {"B transposed", product, WB_F32, .sizes = {40, 70, 24}, .transpose_b = true},
    {"both, of a batch", product, WB_F32, .sizes = {40, 36, 17}, .batch = 3, .transpose_a = true,
     .transpose_b = true},
    {"with a bias and relu", product, WB_F32, .sizes = {65, 66, 20}, .has_bias = true},
    {"halves", product, WB_F16, .sizes = {65, 34, 20}},
    {"bfloats with a bias", product, WB_BF16, .sizes = {33, 66, 20}, .has_bias = true},
    {"for MPS", product, WB_F32, .sizes = {260, 256, 258}, .is_for_mps = true},
    {"for MPS, transposed", product, WB_F32, .sizes = {256, 272, 257}, .transpose_a = true,
     .transpose_b = true, .is_for_mps = true},
    {"for MPS, halves", product, WB_F16, .sizes = {256, 256, 260}, .is_for_mps = true},
    {"for MPS, a bias behind", product, WB_F32, .sizes = {256, 256, 256}, .has_bias = true,
     .is_for_mps = true},
    {"not for MPS, rows of a larger matrix", product, WB_F32, .sizes = {256, 256, 256},
     .is_piece = true},
    {"a convolution", convolution, WB_F32, .sizes = {9, 3, 5}},
    {"one with groups and strides", convolution, WB_F32, .sizes = {9, 4, 6},
     .window = {.groups = 2, .stride = {2}, .pad = {1, 1}}},
    {"one of halves", convolution, WB_F16, .sizes = {9, 3, 5}, .window = {.pad = {1, 1}}},
    {"attention", attention, WB_F32, .sizes = {8, 5, 9}},
    {"attention of halves", attention, WB_F16, .sizes = {8, 5, 9}},
    {"attention over several tiles", attention, WB_F32, .sizes = {20, 70, 66}, .is_causal = true},
};

enum { ROWS = sizeof rows / sizeof *rows };

/* ---- one row ---- */

typedef struct numbers {
    double *values;
    int64_t count;
} numbers;

static bool read_all(const results *r, numbers *to) {
    for (int i = 0; i < MOST && r->of[i]; i++) {
        wb_array *x = wb_cast(r->of[i], WB_F32);
        const int64_t count = x ? wb_count(x) : 0;
        to->values = realloc(to->values, (size_t)(to->count + count + 1) * sizeof *to->values);
        if (wb_read_f64(x, to->values + to->count, count) != WB_OK) return false;
        to->count += count;
    }
    return to->count > 0;
}

/* False with the library's error. */
static bool compute(const row *r, const wb_device *device, numbers *to) {
    (void)wb_scope_open();
    wb_seed(5);
    const results made = r->compute(r, device);
    const bool is_read = read_all(&made, to);
    return wb_scope_close() == WB_OK && is_read;
}

static bool agree(const row *r, const numbers *got, const numbers *wanted) {
    static const double error[WB_DTYPE_COUNT] = {
        [WB_F32] = 2e-5, [WB_F16] = 1e-2, [WB_BF16] = 4e-2};
    double largest = 1;
    for (int64_t i = 0; i < wanted->count; i++) largest = fmax(largest, fabs(wanted->values[i]));
    for (int64_t i = 0; i < wanted->count; i++)
        if (!(fabs(got->values[i] - wanted->values[i]) <= error[r->dtype] * largest)) {
            print_error("%s: number %lld is %g, not %g\n", r->name, (long long)i, got->values[i],
                        wanted->values[i]);
            return false;
        }
    return got->count == wanted->count;
}

static bool is_right(const row *r, const wb_device *gpu, bool has_mps) {
    numbers wanted = {NULL, 0}, got = {NULL, 0};
    bool right = compute(r, wb_cpu_device(), &wanted);
    const long before = fake_count_now().products;
    right = right && compute(r, gpu, &got);
    const long by_mps = fake_count_now().products - before;
    if (!right) print_error("%s: %s\n", r->name, wb_error_message());
    if (right) right = agree(r, &got, &wanted);
    if (by_mps != (has_mps && r->is_for_mps)) {
        print_error("%s: %ld products by MPS\n", r->name, by_mps);
        right = false;
    }
    free(wanted.values), free(got.values);
    return right;
}

/* ---- kinds of GPU ---- */

typedef struct kind {
    const char *name, *variable, *value, *no_mps; /* why there is no MPS; NULL: there is */
} kind;

static const kind kinds[] = {
    {"apple_gpus_multiply_by_simd_groups", "FAKE_METAL_FAMILY", "1007", NULL},
    {"others_multiply_plainly", "FAKE_METAL_FAMILY", "2002", NULL},
    {"without_mps_the_texts_serve_all", "WEBER_MPS_LIBRARY", "/no/such/library.so",
     "WEBER_MPS_LIBRARY=/no/such/library.so cannot be opened"},
    {"mps_may_not_support_the_device", "FAKE_METAL_MPS", "0", "does not support the device"},
    {"mps_of_macos_12_is_left_alone", "FAKE_METAL_OLD", "2", "needs macOS 13"},
};

static int run_kind(const kind *k) {
    (void)setenv(k->variable, k->value, 1);
    const wb_device *gpu = wb_get_device("Metal", 0);
    const bool has_mps = wb_functional_part("Metal", "mps");
    int faults = !gpu || has_mps != !k->no_mps;
    if (k->no_mps && !strstr(wb_reason(), k->no_mps)) faults++, print_error("%s\n", wb_reason());
    if (wb_functional_part("Metal", "MPSGraph") || !strstr(wb_reason(), "only MPS")) faults++;
    const int step = is_brief() ? 11 : 1; /* f32, halves, and attention */
    for (int i = 0; i < ROWS && gpu; i += step) faults += !is_right(&rows[i], gpu, has_mps);
    return faults + (fake_count_now().complaints != 0);
}

static void products_are_the_cpus(void **state) {
    int result = 1;
    (void)fflush(NULL);
    const pid_t process = fork();
    if (process == 0) {
        const int faults = run_kind(*state);
        (void)fflush(NULL);
        _exit(faults);
    }
    assert_int_equal(waitpid(process, &result, 0), process);
    assert_int_equal(result, 0);
}

int main(void) {
    enum { KINDS = sizeof kinds / sizeof *kinds };
    const size_t count = is_brief() ? 1 : KINDS;
    struct CMUnitTest tests[KINDS];
    use_stand_in();
    (void)setenv("WEBER_DEVICE", "CPU", 1);
    for (size_t i = 0; i < count; i++)
        tests[i] = (struct CMUnitTest){kinds[i].name, products_are_the_cpus, NULL, NULL,
                                       (void *)(uintptr_t)&kinds[i]};
    return _cmocka_run_group_tests("backends/metal/test_products", tests, count, NULL, NULL);
}
