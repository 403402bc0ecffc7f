/* Cuts a product into pieces, by its shape only, and has them computed by the kernels of the
 * instruction set in use. */
#include "gemm.h"

#include "blas.h"
#include "gemm_kernel.h"
#include "isa.h"
#include "pool.h"

typedef void piece_fn(const wb_gemm_piece *piece);

static piece_fn *const kernels[WB_ISA_COUNT][2] = WB_ISA_PAIRS(gemm);

static piece_fn *const kernels_bf16[WB_ISA_COUNT] = {[WB_ISA_BASELINE] = NULL,
#define X(ISA, suffix, feature) [ISA] = wb_gemm_bf16_##suffix,
                                                     WB_ISA_BF16_LIST(X)
#undef X
};

/* Work below this many multiply-adds stays on the calling thread. */
static const double parallel_work = 1e6;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t parts(int64_t size, int64_t part) { return (size + part - 1) / part; }
static int64_t round_up(int64_t size, int64_t unit) { return parts(size, unit) * unit; }

/* --- the plan --- */

typedef struct plan {
    int64_t rows, columns;             /* of a piece */
    int64_t row_pieces, column_pieces; /* of one product */
    int64_t pieces;                    /* of all products */
    bool packs_a, packs_b, swaps;      /* see wb_gemm_piece */
    int64_t scratch;                   /* bytes for one running piece */
} plan;

/* How A and B are read. A copy costs about as much as four columns of tiles read A in place; it
 * pays when they are many and each k lies on another page. */
static void choose_reading(const wb_gemm *g, plan *p) {
    if (g->k == 0 || g->m == 1 || g->n == 1) return;
    p->swaps = g->transpose_b && g->m <= 12 && g->n >= 64;
    if (p->swaps) return;
    p->packs_a = g->kept_a || g->transpose_a || (g->n >= 32 && g->lda >= 512);
    p->packs_b = g->transpose_b && g->m > 64 && g->ldb >= 512 && g->k >= 128;
}

/* For bf16: packed A and B, where an element of 4 bytes holds two numbers, and the sums unless C
 * holds them. */
static int64_t piece_scratch_bf16(const wb_gemm *g, const plan *p) {
    const int64_t rows = round_up(p->rows, 16);
    const int64_t columns = round_up(smaller(p->columns, WB_GEMM_SHEET_BF16), 16);
    const int64_t sums = g->dtype == WB_BF16 ? rows * columns : 0;
    const int64_t elements = rows * wb_gemm_pairs(wb_gemm_kept_bf16(g->k)) +
                             columns * wb_gemm_pairs(smaller(g->k, WB_GEMM_DEPTH_BF16)) + sums;
    return round_up(elements * 4, 64);
}

static int64_t piece_scratch(const wb_gemm *g, const plan *p) {
    if (wb_gemm_takes_bf16(g)) return piece_scratch_bf16(g, p);
    int64_t elements = 0;
    if (p->packs_a && !g->kept_a)
        elements += round_up(p->rows, WB_GEMM_ROW_UNIT) *
                    smaller(g->k, p->packs_b ? WB_GEMM_DEPTH_PACKED : WB_GEMM_DEPTH);
    if (p->packs_b) elements += WB_GEMM_SHEET * WB_GEMM_DEPTH_PACKED;
    if (p->swaps) elements = WB_GEMM_ROWS * p->rows;
    if (g->m == 1 || g->n == 1) elements = g->k; /* the vector, if it is strided */
    return round_up(elements * (g->dtype == WB_F64 ? 8 : 4), 64);
}

/* Pieces wanted: some tens of microseconds each, and more only of large products, for machines with
 * many cores. */
static int64_t pieces_wanted(double work) {
    const double fine = work / 1.5e6, coarse = work / 32e6;
    if (coarse > 8) return coarse < 256 ? (int64_t)coarse : 256;
    return fine < 8 ? (int64_t)fine : 8;
}

/* Columns first: a cut through rows makes more pieces copy the same B, and low ones use it less. */
static void cut(const wb_gemm *g, int64_t wanted, plan *p) {
    enum { LEAST_COLUMNS = 384 };
    const int64_t enough = p->packs_b ? 4 : 8;
    while (p->columns >= 2 * LEAST_COLUMNS &&
           parts(g->m, p->rows) * parts(g->n, p->columns) * g->batch < wanted)
        p->columns = round_up(p->columns / 2, WB_GEMM_COLUMN_UNIT);
    if (wanted > enough) wanted = enough;
    while (p->rows > WB_GEMM_ROW_UNIT &&
           parts(g->m, p->rows) * parts(g->n, p->columns) * g->batch < wanted)
        p->rows = round_up(p->rows / 2, WB_GEMM_ROW_UNIT);
}

/* How many times as fast products of bf16 are with tiles, roughly. */
enum { TILES_GAIN = 8 };

static plan plan_for(const wb_gemm *g) {
    const double work = (double)g->m * (double)g->n * (double)g->k * (double)g->batch;
    plan p = {.rows = smaller(g->m, WB_GEMM_ROWS),
              .columns = g->n,
              .row_pieces = 1,
              .column_pieces = 1,
              .pieces = g->batch};
    choose_reading(g, &p);
    if (p.packs_b) p.rows = smaller(g->m, 2 * WB_GEMM_ROWS); /* of half the depth */
    if (wb_blas_takes_whole(g)) {
        p.rows = g->m;
        return p;
    }
    if (g->n == 1) p.rows = work < parallel_work ? g->m : smaller(g->m, 16 * WB_GEMM_ROWS);
    const double effort = wb_gemm_takes_tiles(g) ? work / TILES_GAIN : work;
    if (work >= parallel_work) cut(g, pieces_wanted(effort), &p);
    if (p.rows < g->m || p.columns < g->n) {
        p.row_pieces = parts(g->m, p.rows);
        p.column_pieces = parts(g->n, p.columns);
        p.pieces = p.row_pieces * p.column_pieces * g->batch;
    }
    p.scratch = piece_scratch(g, &p);
    return p;
}

/* --- running it --- */

typedef struct call {
    const wb_gemm *gemm;
    const plan *plan;
    piece_fn *kernel;
    bool keeps;
    const char *a, *b;
    char *c, *scratch;
    wb_tile_fn *done;
    void *context;
} call;

/* Memory that is not needed may be NULL; in C even NULL + 0 is undefined. */
static const char *moved(const char *memory, int64_t bytes) {
    return bytes ? memory + bytes : memory;
}

static int64_t batch_offset(const int64_t *offsets, int64_t product, int64_t size) {
    return offsets ? offsets[product] * size : 0;
}

static void run_piece(void *context, int64_t index, int worker) {
    const call *job = context;
    const wb_gemm *g = job->gemm;
    const plan *p = job->plan;
    int64_t product = 0, row = 0, column = 0;
    if (p->pieces > 1) {
        const int64_t per_product = p->row_pieces * p->column_pieces;
        const int64_t place = index % per_product;
        product = index / per_product;
        row = place % p->row_pieces * p->rows;
        column = place / p->row_pieces * p->columns;
    }
    const int64_t size = (int64_t)wb_dtype_size(g->dtype);

    wb_gemm_piece piece = {.gemm = g,
                           .a = moved(job->a, batch_offset(g->offset_a, product, size)),
                           .b = moved(job->b, batch_offset(g->offset_b, product, size)),
                           .c = job->c + batch_offset(g->offset_c, product, size),
                           .product = product,
                           .row = row,
                           .rows = smaller(p->rows, g->m - row),
                           .column = column,
                           .columns = smaller(p->columns, g->n - column),
                           .packs_a = p->packs_a,
                           .packs_b = p->packs_b,
                           .keeps = job->keeps,
                           .swaps = p->swaps,
                           .scratch = p->scratch ? job->scratch + worker * p->scratch : NULL,
                           .done = job->done,
                           .context = job->context,
                           .worker = worker};
    job->kernel(&piece);
}

int64_t wb_cpu_gemm_scratch(const wb_gemm *gemm) {
    if (gemm->m == 0 || gemm->n == 0) return 0;
    return plan_for(gemm).scratch * wb_cpu_threads();
}

static piece_fn *kernel_for(const wb_gemm *gemm) {
    if (wb_gemm_takes_bf16(gemm)) return kernels_bf16[wb_cpu_isa()];
    return wb_blas_wins(gemm) ? wb_blas_piece : kernels[wb_cpu_isa()][gemm->dtype == WB_F64];
}

/* With k = 1 a dense transposed A is the same as a column. */
static wb_gemm untransposed(const wb_gemm *gemm) {
    wb_gemm g = *gemm;
    g.transpose_a = false;
    g.lda = g.m;
    return g;
}

void wb_cpu_gemm(const wb_gemm *gemm, const void *a, const void *b, void *c, void *scratch,
                 wb_tile_fn *done, void *context) {
    if (gemm->m == 0 || gemm->n == 0) return;
    wb_gemm column;
    if (gemm->k == 1 && gemm->transpose_a && gemm->lda == 1) {
        column = untransposed(gemm);
        gemm = &column;
    }
    const plan pieces = plan_for(gemm);
    call job = {.gemm = gemm,
                .plan = &pieces,
                .kernel = kernel_for(gemm),
                .a = a,
                .b = b,
                .c = c,
                .scratch = scratch,
                .done = done,
                .context = context};
    if (pieces.pieces == 1)
        run_piece(&job, 0, 0);
    else
        wb_cpu_parallel(pieces.pieces, run_piece, &job);
}

/* ---- a packed A for many products ---- */

int64_t wb_cpu_gemm_kept(const wb_gemm *g) {
    const int64_t size = (int64_t)wb_dtype_size(g->dtype);
    if (!g->keeps_a || g->batch != 1 || g->m == 1 || g->n < 2 || g->k < 2 || wb_gemm_takes_bf16(g))
        return 0;
    const bool pays = g->transpose_a || g->lda >= 512;
    if (!pays || plan_for(g).swaps || kernel_for(g) == wb_blas_piece) return 0;
    return round_up(round_up(g->m, WB_GEMM_STRIP) * g->k * size, 64);
}

void wb_cpu_gemm_keep(const wb_gemm *gemm, const void *a) {
    plan pieces = plan_for(gemm);
    pieces.column_pieces = 1, pieces.pieces = pieces.row_pieces;
    call job = {.gemm = gemm,
                .plan = &pieces,
                .kernel = kernel_for(gemm),
                .keeps = true,
                .a = a,
                .b = a, /* neither read nor written, and so C and scratch memory */
                .c = gemm->kept_a,
                .scratch = gemm->kept_a};
    wb_cpu_parallel(pieces.pieces, run_piece, &job);
}
