/* Calls as text: compiled in every dialect, run in those that can run here, and compared with the CPU backend. */
#include "program/call.h"

#include "base/memory.h"
#include "device/device.h"
#include "program/render.h"
#include "support/dialects.h"
#include "support/support.h"

enum { MOST_CASES = 120, MOST_ARGUMENTS = 3, UNIT = 12 /* texts compiled together */ };

/* ---- cases: calls with their arrays ---- */

typedef struct argument {
    wb_dtype dtype;
    int64_t count;
    bool is_result;
} argument;

typedef struct call_case {
    char name[160];
    wb_call call;
    argument arguments[MOST_ARGUMENTS];
    int narguments;
    int64_t terms;      /* of a sum of the result */
    int64_t indices;    /* argument 1 or 0 holds indices below this */
    int index_argument; /* -1: none */
    bool has_bad_index;
    int64_t *offsets; /* of batches; freed with the case */
} call_case;

static call_case cases[MOST_CASES];
static int case_count;

static call_case *new_case(wb_call_kind kind, wb_dtype dtype, const char *name) {
    assert_true(case_count < MOST_CASES);
    call_case *c = &cases[case_count++];
    *c = (call_case){
        .call = {.kind = kind, .dtype = dtype},
          .terms = 1, .index_argument = -1
    };
    static const char *const kinds[] = {"matmul",       "conv_forward", "conv_data", "conv_filter",   "maxpool",
                                        "pool_scatter", "pool_gather",  "meanpool",  "meanpool_data", "unfold",
                                        "fold",         "gather",       "scatter_add"};
    (void)snprintf(c->name, sizeof c->name, "%s of %s, %s", kinds[kind], wb_dtype_name(dtype), name);
    return c;
}

static void add_argument(call_case *c, wb_dtype dtype, int64_t count, bool is_result) {
    c->arguments[c->narguments++] = (argument){dtype, count, is_result};
}

static void forget_cases(void) {
    for (int i = 0; i < case_count; i++) free(cases[i].offsets);
    case_count = 0;
}

/* ---- matrix products ---- */

typedef struct product_row {
    const char *name;
    wb_dtype dtype;
    bool transpose_a, transpose_b;
    int m, n, k;
    int more;                                  /* leading dimensions are larger by this */
    int batch[3], steps_a[3], steps_b[3];      /* up to three dimensions; steps in matrices */
    bool is_irregular;                         /* matrices lie in no order */
} product_row;

static const product_row products[] = {
    {"tiny",                               WB_F32,  .m = 3,   .n = 2,   .k = 4                                                          },
    {"one element",                        WB_F32,  .m = 1,   .n = 1,   .k = 1                                                          },
    {"without terms",                      WB_F32,  .m = 5,   .n = 3,   .k = 0                                                          },
    {"without rows",                       WB_F32,  .m = 0,   .n = 3,   .k = 2                                                          },
    {"without columns",                    WB_F32,  .m = 4,   .n = 0,   .k = 2                                                          },
    {"whole tiles",                        WB_F32,  .m = 96,  .n = 64,  .k = 64                                                         },
    {"ragged, A transposed",               WB_F32,  true,     false,    .m = 101, .n = 67, .k = 45, .more = 3                           },
    {"ragged, B transposed",               WB_F32,  false,    true,     .m = 101, .n = 67, .k = 45, .more = 3                           },
    {"ragged, both transposed",            WB_F32,  true,     true,     .m = 53,  .n = 70, .k = 131, .more = 1                          },
    {"more terms than one pass has",       WB_F32,  .m = 50,  .n = 20,  .k = 1100, .more = 2                                            },
    {"more terms than one pass, A transposed", WB_F32, true,  false,    .m = 50,  .n = 20, .k = 1100                                    },
    {"many small tiles",                   WB_F32,  .m = 20,  .n = 24,  .k = 30,  .batch = {3, 2}, .steps_a = {1, 3}, .steps_b = {0, 1}},
    {"a batch that repeats A",             WB_F32,  false,    true,     .m = 7, .n = 9, .k = 5, .batch = {4}, .steps_a = {0}, .steps_b = {1}},
    {"a batch in three dimensions",        WB_F32,  true,     false,    .m = 6, .n = 5, .k = 7, .batch = {2, 3, 2}, .steps_a = {1, 0, 2}, .steps_b = {0, 1, 3}},
    {"a batch in no order",                WB_F32,  .m = 6,   .n = 5,   .k = 7, .batch = {7}, .is_irregular = true                      },
    {"a row",                              WB_F32,  .m = 1,   .n = 83,  .k = 37                                                         },
    {"a row, both transposed",             WB_F32,  true,     true,     .m = 1, .n = 83, .k = 37                                        },
    {"a column, A transposed",             WB_F32,  true,     false,    .m = 83, .n = 1, .k = 37, .more = 2                             },
    {"few rows",                           WB_F32,  .m = 10,  .n = 150, .k = 64                                                         },
    {"few columns",                        WB_F32,  .m = 150, .n = 10,  .k = 64                                                         },
    {"tiles of 128",                       WB_F32,  .m = 1100, .n = 2049, .k = 17                                                       },
    {"ragged",                             WB_F64,  .m = 61,  .n = 35,  .k = 29, .more = 1                                              },
    {"ragged, transposed",                 WB_F64,  true,     true,     .m = 61, .n = 35, .k = 29, .more = 1                            },
    {"ragged",                             WB_F16,  .m = 61,  .n = 35,  .k = 29, .more = 1                                              },
    {"more terms than one pass, B transposed", WB_F16, false, true,     .m = 61, .n = 19, .k = 600                                      },
    {"ragged, A transposed",               WB_BF16, true,     false,    .m = 49, .n = 35, .k = 29, .more = 1                            },
    {"a batch",                            WB_BF16, .m = 5,   .n = 6,   .k = 7, .batch = {3}, .steps_a = {1}, .steps_b = {1}            },
};

static int64_t batch_of(const product_row *r) {
    int64_t batch = 1;
    for (int d = 0; d < 3 && r->batch[d]; d++) batch *= r->batch[d];
    return batch;
}

/* Number of the matrix of a batch entry. */
static int64_t matrix_of(const product_row *r, const int steps[3], int64_t entry) {
    if (r->is_irregular) return entry * entry * 3 % 7;
    int64_t matrix = 0;
    for (int d = 0; d < 3 && r->batch[d]; d++) {
        matrix += entry % r->batch[d] * steps[d];
        entry /= r->batch[d];
    }
    return matrix;
}

static void add_product(const product_row *r) {
    call_case *c = new_case(WB_CALL_matmul, r->dtype, r->name);
    wb_matmul_call *p = &c->call.matmul;
    *p = (wb_matmul_call){.transpose_a = r->transpose_a,
                          .transpose_b = r->transpose_b,
                          .m = r->m,
                          .n = r->n,
                          .k = r->k,
                          .batch = batch_of(r)};
    p->lda = (r->transpose_a ? r->k : r->m) + r->more, p->lda += p->lda == 0;
    p->ldb = (r->transpose_b ? r->n : r->k) + r->more, p->ldb += p->ldb == 0;
    p->ldc = r->m > 1 ? r->m : 1;
    const int64_t a = p->lda * (r->transpose_a ? r->m : r->k), b = p->ldb * (r->transpose_b ? r->k : r->n);
    int64_t matrices[2] = {1, 1};
    if (p->batch > 1) {
        c->offsets = calloc((size_t)(3 * p->batch), sizeof *c->offsets);
        p->offset_a = c->offsets, p->offset_b = c->offsets + p->batch, p->offset_c = c->offsets + 2 * p->batch;
        for (int64_t i = 0; i < p->batch; i++) {
            const int64_t of_a = matrix_of(r, r->steps_a, i), of_b = matrix_of(r, r->steps_b, i);
            c->offsets[i] = of_a * a;
            c->offsets[p->batch + i] = of_b * b;
            c->offsets[2 * p->batch + i] = (r->is_irregular ? p->batch - 1 - i : i) * p->ldc * p->n;
            if (of_a >= matrices[0]) matrices[0] = of_a + 1;
            if (of_b >= matrices[1]) matrices[1] = of_b + 1;
        }
    }
    add_argument(c, r->dtype, a * matrices[0], false);
    add_argument(c, r->dtype, b * matrices[1], false);
    add_argument(c, r->dtype, p->ldc * p->n * p->batch, true);
    c->terms = r->k;
}

/* ---- windows ---- */

/* Zeros stand for the usual: size 1, stride 1, dilation 1, one channel, one image. */
typedef struct window_row {
    const char *name;
    int in[3], kernel[3], stride[3], dilation[3], pad[3], pad_end[3];
    int channels, filters, groups, batch;
    bool flip;
} window_row;

static const window_row convolutions[] = {
    {"a small network's",  {12, 11}, {3, 3}, .channels = 3, .filters = 10, .batch = 3, .flip = true                                                      },
    {"padded",             {9, 7}, {3, 3}, .pad = {1, 1}, .pad_end = {1, 1}, .channels = 17, .filters = 9, .batch = 2                                     },
    {"strided, uneven pads, groups", {9, 10}, {3, 2}, .stride = {2, 3}, .pad = {0, 1}, .pad_end = {2, 0}, .channels = 6, .filters = 4, .groups = 2, .batch = 2, .flip = true},
    {"1-D, dilated",       {23}, {4}, .dilation = {3}, .pad = {5}, .pad_end = {2}, .channels = 2, .filters = 3, .batch = 2                                },
    {"3-D",                {6, 5, 4}, {2, 3, 2}, .stride = {1, 2, 1}, .dilation = {2, 1, 1}, .pad = {1, 0, 1}, .channels = 2, .filters = 3, .batch = 2, .flip = true},
    {"a channel for each group", {6, 6}, {3, 3}, .pad = {1, 1}, .pad_end = {1, 1}, .channels = 5, .filters = 5, .groups = 5, .batch = 3                    },
    {"one place",          {3, 3}, {3, 3}, .channels = 4, .filters = 20, .batch = 30                                                                      },
    {"1 x 1",              {5, 4}, {1, 1}, .channels = 20, .filters = 12, .batch = 2                                                                      },
    {"1 x 1, planes as matrices", {13, 11}, {1, 1}, .channels = 6, .filters = 10, .groups = 2, .batch = 3},
    {"no image",           {5, 4}, {3, 3}, .channels = 2, .filters = 3, .batch = -1                                                                       },
    {"a large kernel",     {16, 15}, {8, 5}, .stride = {1, 2}, .pad = {3, 2}, .pad_end = {4, 2}, .channels = 2, .filters = 3, .batch = 2, .flip = true     },
    {"a large kernel, dilated", {30, 15}, {8, 5}, .stride = {2, 1}, .dilation = {3, 2}, .pad = {7, 0}, .pad_end = {2, 3}, .channels = 1, .filters = 9, .batch = 1, .flip = true},
    {"a pad that is wider than the kernel", {4, 4}, {2, 2}, .pad = {3, 2}, .pad_end = {2, 3}, .channels = 2, .filters = 2, .batch = 2                      },
};

static const window_row pools[] = {
    {"2 x 2",               {8, 6}, {2, 2}, .stride = {2, 2}, .channels = 3, .batch = 2                                                    },
    {"3 x 2, overlapping",  {9, 8}, {3, 2}, .stride = {2, 1}, .pad = {1, 0}, .pad_end = {0, 1}, .channels = 2, .batch = 2, .flip = true     },
    {"1-D, dilated",        {21}, {3}, .stride = {2}, .dilation = {2}, .pad = {2}, .pad_end = {3}, .channels = 2, .batch = 2               },
    {"3-D",                 {4, 5, 6}, {2, 2, 3}, .stride = {2, 1, 3}, .channels = 2, .batch = 1                                           },
    {"windows in the padding", {4, 3}, {2, 2}, .stride = {1, 2}, .pad = {3, 3}, .pad_end = {3, 3}, .channels = 1, .batch = 2               },
    {"a large kernel",      {9, 12}, {6, 6}, .stride = {2, 3}, .pad = {2, 5}, .pad_end = {5, 0}, .channels = 2, .batch = 1                 },
    {"no image",            {4, 4}, {2, 2}, .stride = {2, 2}, .channels = 2, .batch = -1                                                   },
};

static int64_t or_one(int value) { return value > 0 ? value : value < 0 ? 0 : 1; }

static wb_window_call window_of(const window_row *r) {
    wb_window_call w = {.channels = or_one(r->channels),
                        .filters = r->filters ? r->filters : or_one(r->channels),
                        .groups = or_one(r->groups),
                        .batch = or_one(r->batch),
                        .flip = r->flip};
    for (int d = 0; d < 3; d++) {
        w.in[d] = or_one(r->in[d]);
        w.kernel[d] = or_one(r->kernel[d]);
        w.stride[d] = or_one(r->stride[d]);
        w.dilation[d] = or_one(r->dilation[d]);
        w.pad[d] = r->pad[d];
        const int64_t room = w.in[d] + r->pad[d] + r->pad_end[d] - w.dilation[d] * (w.kernel[d] - 1);
        w.out[d] = (room - 1) / w.stride[d] + 1;
    }
    return w;
}

static int64_t volume(const int64_t sizes[3]) { return sizes[0] * sizes[1] * sizes[2]; }

static void add_window(const window_row *r, wb_call_kind kind, wb_dtype dtype) {
    call_case *c = new_case(kind, dtype, r->name);
    const wb_window_call w = c->call.window = window_of(r);
    const int64_t taps = volume(w.kernel), x = volume(w.in) * w.channels * w.batch,
                  y = volume(w.out) * w.filters * w.batch, columns = y * taps,
                  weights = taps * w.channels / w.groups * w.filters;
    const struct {
        int64_t counts[3], terms;
    } rows[] = {
        [WB_CALL_conv_forward] = {{x, weights, y},  taps * w.channels / w.groups             },
        [WB_CALL_conv_data] = {{y, weights, x},  taps * w.filters / w.groups              },
        [WB_CALL_conv_filter] = {{x, y, weights},  volume(w.out) * w.batch                  },
        [WB_CALL_maxpool] = {{x, y, y},        1                                        },
        [WB_CALL_pool_scatter] = {{y, y, x},        taps                                     },
        [WB_CALL_pool_gather] = {{x, y, y},        1                                        },
        [WB_CALL_meanpool] = {{x, y, -1},       taps                                     },
        [WB_CALL_meanpool_data] = {{y, x, -1},       taps                                     },
        [WB_CALL_unfold] = {{x, columns, -1}, 1                                        },
        [WB_CALL_fold] = {{columns, x, -1}, taps                                     },
    };
    const bool has_index = kind == WB_CALL_pool_scatter || kind == WB_CALL_pool_gather;
    const int last = rows[kind].counts[2] < 0 ? 1 : 2;
    for (int i = 0; i <= last; i++) {
        const bool is_index = (has_index && i == 1) || (kind == WB_CALL_maxpool && i == 2);
        add_argument(c, is_index ? WB_I32 : dtype, rows[kind].counts[i], i == last || (kind == WB_CALL_maxpool && i == 1));
    }
    c->terms = rows[kind].terms;
}

/* ---- indices ---- */

typedef struct index_row {
    const char *name;
    int inner, size, outer, count;
    bool has_bad_index;
} index_row;

static const index_row indices[] = {
    {"rows of a matrix",    7, 5,  1, 12, false},
    {"elements",            1, 33, 1, 400, false},
    {"a middle dimension",  3, 4,  5, 6, false},
    {"one row",             1, 1,  1, 1, false},
    {"no index",            4, 3,  2, 0, false},
    {"nothing to add to",   0, 3,  2, 4, false},
    {"many rows",           2, 3000, 1, 700, false},
    {"a bad index",         3, 4,  2, 300,         true},
};

static void add_index(const index_row *r, wb_call_kind kind, wb_dtype dtype, wb_dtype index_dtype) {
    call_case *c = new_case(kind, dtype, r->name);
    c->call.index = (wb_index_call){.inner = r->inner, .size = r->size, .outer = r->outer, .count = r->count, .index_dtype = (uint8_t)index_dtype};
    const int64_t x = (int64_t)r->inner * r->size * r->outer, y = (int64_t)r->inner * r->count * r->outer;
    const bool gathers = kind == WB_CALL_gather;
    c->index_argument = gathers ? 1 : 0;
    if (gathers) add_argument(c, dtype, x, false);
    add_argument(c, index_dtype, r->count, false);
    add_argument(c, dtype, y, gathers);
    if (!gathers) add_argument(c, dtype, x, true);
    c->indices = r->size, c->has_bad_index = r->has_bad_index;
    c->terms = r->count;
}

/* ---- numbers of any type ---- */

static bool is_half(wb_dtype dtype) { return dtype == WB_F16 || dtype == WB_BF16; }

/* Of a number that the type holds exactly, and is no denormal. */
static uint16_t half_of(wb_dtype dtype, double x) {
    if (dtype == WB_BF16) {
        const float narrow = (float)x;
        uint32_t bits;
        memcpy(&bits, &narrow, sizeof bits);
        return (uint16_t)(bits >> 16);
    }
    int exponent;
    const double fraction = frexp(fabs(x), &exponent);
    const unsigned sign = x < 0 ? 0x8000u : 0;
    if (x == 0) return 0;
    return (uint16_t)(sign | (unsigned)(exponent + 14) << 10 | ((unsigned)(fraction * 2048) & 0x3ffu));
}

static double of_half(wb_dtype dtype, uint16_t half) {
    if (dtype == WB_BF16) {
        const uint32_t bits = (uint32_t)half << 16;
        float wide;
        memcpy(&wide, &bits, sizeof wide);
        return (double)wide;
    }
    const int exponent = half >> 10 & 31, fraction = half & 0x3ff;
    const double size = exponent == 31 ? (fraction ? NAN : INFINITY) : exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    return half & 0x8000 ? -size : size;
}

static void put(wb_dtype dtype, void *array, int64_t i, double x) {
    switch (dtype) {
    case WB_F32:
        ((float *)array)[i] = (float)x;
        break;
    case WB_F64:
        ((double *)array)[i] = x;
        break;
    case WB_F16:
    case WB_BF16:
        ((uint16_t *)array)[i] = half_of(dtype, x);
        break;
    case WB_I32:
        ((int32_t *)array)[i] = (int32_t)x;
        break;
    case WB_I64:
        ((int64_t *)array)[i] = (int64_t)x;
        break;
    default:
        ((uint8_t *)array)[i] = (uint8_t)(int64_t)x;
        break;
    }
}

static double get(wb_dtype dtype, const void *array, int64_t i) {
    switch (dtype) {
    case WB_F32:
        return (double)((const float *)array)[i];
    case WB_F64:
        return ((const double *)array)[i];
    case WB_F16:
    case WB_BF16:
        return of_half(dtype, ((const uint16_t *)array)[i]);
    case WB_I32:
        return ((const int32_t *)array)[i];
    case WB_I64:
        return (double)((const int64_t *)array)[i];
    default:
        return ((const uint8_t *)array)[i];
    }
}

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
        put(index->dtype, a->of[c->index_argument], i, (double)random_below(r, c->indices));
    if (!c->has_bad_index) return;
    put(index->dtype, a->of[c->index_argument], 217, -3);
    put(index->dtype, a->of[c->index_argument], 250, (double)c->indices);
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
    const wb_command command = {kernel, count + 1, list, "test"};
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
    for (int64_t i = 0; i < pool.arguments[0].count; i++) put(WB_F32, p.of[0], i, (double)random_below(r, 9));
    run_on_cpu(&pool.call, &p, 3);
    memcpy(a->of[1], p.of[2], p.sizes[2]);
    arrays_release(&p);
}

static void fill(const call_case *c, arrays *a, test_random *r) {
    const bool is_pool = c->call.kind == WB_CALL_pool_scatter || c->call.kind == WB_CALL_pool_gather;
    for (int k = 0; k < c->narguments; k++) {
        const argument *argument = &c->arguments[k];
        const bool is_base = c->call.kind == WB_CALL_scatter_add && k == 2;
        if (k == c->index_argument) {
            fill_indices(c, a, r);
            continue;
        }
        for (int64_t i = 0; i < argument->count && (!argument->is_result || is_base); i++)
            put(argument->dtype, a->of[k], i, number_for(c, argument, r));
    }
    if (is_pool) fill_pool_index(c, a, r);
}

/* The same arrays with f32 for halves, which the CPU backend does not take, and without bad indices. */
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
                put(WB_F32, r.of[k], i, get(c->arguments[k].dtype, a->of[k], i));
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

static void compare(const char *dialect, const call_case *c, const arrays *got, const arrays *wanted) {
    for (int k = 0; k < c->narguments; k++) {
        const argument *argument = &c->arguments[k];
        const bool widens = is_half(argument->dtype) && c->call.kind != WB_CALL_gather;
        const wb_dtype of_wanted = widens ? WB_F32 : argument->dtype;
        for (int64_t i = 0; i < argument->count && argument->is_result; i++) {
            const double x = get(argument->dtype, got->of[k], i), y = get(of_wanted, wanted->of[k], i);
            if (x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= tolerance_of(c, argument->dtype, y)) continue;
            fail_msg("%s: %s: argument %d, element %lld is %.9g, the CPU says %.9g", dialect, c->name, k,
                     (long long)i, x, y);
        }
    }
}

/* Elements at bad indices stay as they were, the status says which was the first. */
static void check_bad_index(const call_case *c, const arrays *got, const arrays *before, const int64_t status[4]) {
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
    if (!dialect_run(unit, index, got.of, got.sizes, NULL, status, log)) fail_msg("%s: %s", c->name, log);
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
    return c->call.dtype != WB_F64 || dialect->has_f64 || c->call.kind == WB_CALL_gather;
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
    for (int i = 0; i < count; i++) sorted[i] = sources[order[i]], sorted_cases[i] = of_source[order[i]];
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
        dialect_unit *unit = dialect_build(kind, (const wb_source *const *)sources + first, size, log);
        if (!unit) fail_msg("%s: %s: %s", dialect_of(kind)->name, of_source[first]->name, log);
        for (int i = 0; i < size && dialect_can_run(kind); i++) run_case(kind, unit, i, of_source[first + i]);
        dialect_release(unit);
        first += size;
    }
    for (int i = 0; i < count; i++) wb_source_release(sources[i]);
}

/* ---- the cases of a test ---- */

/* Compilers that cannot run anything here are slow, and differ little: they see fewer rows. */
static bool is_brief;

static void add_products(void) {
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) add_product(&products[i]);
}

static void add_convolutions(void) {
    static const wb_dtype others[] = {WB_F64, WB_F16, WB_BF16};
    const size_t count = is_brief ? 4 : sizeof convolutions / sizeof *convolutions;
    for (size_t i = 0; i < count; i++)
        for (wb_call_kind kind = WB_CALL_conv_forward; kind <= WB_CALL_conv_filter; kind++) {
            add_window(&convolutions[i], kind, WB_F32);
            if (i == 1 || i == 2) add_window(&convolutions[i], kind, others[(i + kind) % 3]);
        }
}

static void add_pools(void) {
    static const wb_dtype others[] = {WB_F64, WB_F16, WB_BF16};
    const size_t count = is_brief ? 2 : sizeof pools / sizeof *pools;
    for (size_t i = 0; i < count; i++)
        for (wb_call_kind kind = WB_CALL_maxpool; kind <= WB_CALL_fold; kind++) {
            add_window(&pools[i], kind, WB_F32);
            if (i == 1) add_window(&pools[i], kind, others[kind % 3]);
        }
}

static void add_indices(void) {
    static const wb_dtype all[] = {WB_F32, WB_F64, WB_I32, WB_I64, WB_U8, WB_F16, WB_BF16, WB_BOOL};
    const size_t count = is_brief ? 1 : sizeof indices / sizeof *indices;
    for (size_t i = 0; i < count; i++)
        for (int k = 0; k < (i == 0 ? 8 : 2); k++) {
            const wb_dtype dtype = all[k], index = (i + (size_t)k) % 2 ? WB_I32 : WB_I64;
            add_index(&indices[i], WB_CALL_gather, dtype, index);
            if (dtype != WB_BOOL) add_index(&indices[i], WB_CALL_scatter_add, dtype, index);
        }
}

static void check(void (*add)(void), dialect_kind kind) {
    forget_cases(); /* of a test that failed */
    is_brief = !dialect_can_run(kind);
    add();
    check_dialect(kind);
    forget_cases();
}

#define CHECKS(DIALECT, dialect)                                                                   \
    static void products_in_##dialect(void **state) { (void)state, check(add_products, DIALECT); } \
    static void convolutions_in_##dialect(void **state) { (void)state, check(add_convolutions, DIALECT); } \
    static void pools_in_##dialect(void **state) { (void)state, check(add_pools, DIALECT); }       \
    static void indices_in_##dialect(void **state) { (void)state, check(add_indices, DIALECT); }
CHECKS(DIALECT_CUDA, cuda)
CHECKS(DIALECT_HIP, hip)
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
#define TESTS(dialect) TEST(products_in_##dialect), TEST(convolutions_in_##dialect), TEST(pools_in_##dialect), TEST(indices_in_##dialect)
    const struct CMUnitTest tests[] = {
        TEST(what_has_no_text_is_said),
        TEST(without_memory_there_is_no_source),
        TESTS(cuda),
        TESTS(hip),
        TESTS(metal),
        TESTS(opencl),
        TESTS(serial_opencl),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
