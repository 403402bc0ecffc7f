/* Matrix products. */
#include "program/call_batch.h"
#include "program/call_source.h"
#include "program/call_tile.h"
#include <src/program/call_common.txt.h>
#include <src/program/call_matmul_serial.txt.h>
#include <src/program/call_tile.txt.h>
#include <src/program/call_tile_matmul.txt.h>
#include <src/program/call_vector.txt.h>

/* ---- on wide cores ---- */

enum {
    COLUMNS = 8,      /* of a block of the product */
    DEPTH = 512,      /* most k of one pass: a strip of B stays in the first cache */
    PIECE_ROWS = 240, /* about the most rows of a piece: panels of A stay in the second cache */
    GROUPS = 64,      /* most that run one piece after the other, each with scratch memory */
    MOST_SCRATCH = 1 << 26 /* elements, if the groups can be that few */
};

typedef struct cut {
    int64_t vectors;                   /* of rows in a block */
    int64_t rows, columns;             /* of a piece */
    int64_t row_pieces, column_pieces; /* of one product */
    int64_t pieces, groups;
    int64_t depth;
    int64_t panels,
        slice; /* elements of the packed A of a piece, and of all scratch memory of a group */
} cut;

/* Rows of a block: few rows that do not exist, else many, which read less of B. */
static int64_t vectors_for(int64_t m, int64_t width) {
    int64_t best = 3;
    double least = 0;
    for (int64_t vectors = 3; vectors > 0; vectors--) {
        static const double cost[] = {0, 1.2, 1.1, 1}; /* of a vector in a block of this many */
        const double rows = (double)(wb_call_ceil(m, vectors * width) * vectors) * cost[vectors];
        if (vectors < 3 && rows >= least) continue;
        best = vectors, least = rows;
    }
    return best;
}

/* Pieces wanted: some tens of microseconds each, and more only of large products. */
static int64_t pieces_wanted(double work) {
    const double fine = work / 2e6, coarse = work / 32e6;
    if (coarse > 8) return coarse < 256 ? (int64_t)coarse : 256;
    return fine < 8 ? (int64_t)fine : 8;
}

/* Halves pieces until there are enough. */
static void cut_pieces(const wb_matmul_call *p, int64_t unit, cut *c) {
    const int64_t wanted =
        pieces_wanted((double)p->m * (double)p->n * (double)p->k * (double)p->batch);
    while (wb_call_ceil(p->m, c->rows) * wb_call_ceil(p->n, c->columns) * p->batch < wanted) {
        if (c->columns >= 32 * COLUMNS || (c->rows <= unit && c->columns > COLUMNS))
            c->columns = wb_call_ceil(c->columns / 2, COLUMNS) * COLUMNS;
        else if (c->rows > unit)
            c->rows = wb_call_ceil(c->rows / 2, unit) * unit;
        else
            break;
    }
    c->row_pieces = wb_call_most(wb_call_ceil(p->m, c->rows), 1);
    c->column_pieces = wb_call_most(wb_call_ceil(p->n, c->columns), 1);
    c->pieces = p->m > 0 && p->n > 0 ? c->row_pieces * c->column_pieces * p->batch : 0;
}

static cut cut_of(const wb_call *call, const wb_matmul_call *p) {
    const int64_t width = 64 / wb_call_real_bytes(call);
    const bool is_half = call->dtype != wb_call_real(call); /* which cannot hold a part of a sum */
    cut c = {.vectors = vectors_for(p->m, width)};
    const int64_t unit = c.vectors * width, most = is_half ? 1 : PIECE_ROWS / unit;
    c.depth = wb_call_most(is_half ? p->k : wb_call_least(p->k, DEPTH), 1);
    c.rows = wb_call_most(wb_call_least(wb_call_ceil(p->m, unit), most), 1) * unit;
    c.columns = wb_call_most(wb_call_ceil(p->n, COLUMNS), 1) * COLUMNS;
    cut_pieces(p, unit, &c);
    c.panels = c.rows * c.depth;
    c.slice = c.panels + COLUMNS * (c.depth + unit); /* a strip of B, a block of C */
    c.groups =
        wb_call_most(1, wb_call_least(wb_call_least(c.pieces, GROUPS), MOST_SCRATCH / c.slice));
    return c;
}

static void add_sizes(wb_call_source *s, const wb_matmul_call *p) {
    wb_call_constant(s, "TRANSPOSE_A", p->transpose_a);
    wb_call_constant(s, "TRANSPOSE_B", p->transpose_b);
    wb_call_word(s, "M", p->m);
    wb_call_word(s, "N", p->n);
    wb_call_word(s, "K", p->k);
    wb_call_word(s, "LDA", p->lda);
    wb_call_word(s, "LDB", p->ldb);
    wb_call_word(s, "LDC", p->ldc);
    wb_call_reaches(s, (p->transpose_a ? p->m : p->k) * p->lda);
    wb_call_reaches(s, (p->transpose_b ? p->k : p->n) * p->ldb);
    wb_call_reaches(s, p->n * p->ldc);
}

/* A product with one row is one with one column, transposed. */
static bool is_row(const wb_matmul_call *p) { return p->m == 1 && p->n > 1 && p->ldc == 1; }

static wb_matmul_call as_column(const wb_matmul_call *p) {
    wb_matmul_call t = *p;
    t.m = p->n, t.n = 1;
    t.transpose_a = !p->transpose_b, t.transpose_b = !p->transpose_a;
    t.lda = p->ldb, t.ldb = p->lda, t.ldc = wb_call_most(1, p->n);
    t.offset_a = p->offset_b, t.offset_b = p->offset_a;
    return t;
}

/* swaps: the arguments are B, A, C */
static wb_source *render_serial(const wb_call *call, bool swaps, const wb_dialect *dialect) {
    const wb_matmul_call *p = &call->matmul;
    const cut c = cut_of(call, p);
    const bool is_plain = call->dtype == wb_call_real(call);
    wb_call_source s = wb_call_source_new(call, dialect);
    wb_text_add(&s.lines, "#define MATRIX_A ARGUMENT_%d\n#define MATRIX_B ARGUMENT_%d\n", swaps,
                !swaps);
    wb_call_constant(&s, "REAL_BYTES", wb_call_real_bytes(call));
    wb_call_constant(&s, "VECTORS", c.vectors);
    wb_call_constant(&s, "COLUMNS", COLUMNS);
    wb_call_constant(&s, "PLAIN", is_plain);
    wb_call_constant(&s, "COPIES_B", !is_plain || p->transpose_b);
    add_sizes(&s, p);
    wb_call_word(&s, "COPIES_A", !is_plain || p->transpose_a || (p->n >= 32 && p->lda >= 512));
    wb_call_word(&s, "DEPTH", c.depth);
    wb_call_word(&s, "PIECES", c.pieces);
    wb_call_word(&s, "PIECE_ROWS", c.rows);
    wb_call_word(&s, "PIECE_COLUMNS", c.columns);
    wb_call_word(&s, "ROW_PIECES", c.row_pieces);
    wb_call_word(&s, "COLUMN_PIECES", c.column_pieces);
    wb_call_word(&s, "PANELS", c.panels);
    wb_call_word(&s, "SLICE", c.slice);
    wb_call_reaches(&s, c.slice);
    wb_call_scratch(&s, "SLICES", c.groups * c.slice * wb_call_real_bytes(call));
    wb_call_batch(&s, p);
    wb_call_launch(&s, "k_matmul", c.groups);
    return wb_call_source_finish(
        &s, 3,
        (const char *const[]){call_common_text, call_vector_text, call_matmul_serial_text, NULL});
}

/* ---- with shared memory ---- */

static wb_source *render_tiles(const wb_call *call, const wb_dialect *dialect) {
    const wb_matmul_call *p = &call->matmul;
    wb_call_source s = wb_call_source_new(call, dialect);
    add_sizes(&s, p);
    wb_call_batch(&s, p);
    wb_call_tile(&s, p->m, p->n, p->k, p->batch);
    return wb_call_source_finish(
        &s, 3,
        (const char *const[]){call_common_text, call_tile_matmul_text, call_tile_text, NULL});
}

wb_source *wb_call_render_matmul(const wb_call *call, const wb_dialect *dialect) {
    if (!dialect->is_serial) return render_tiles(call, dialect);
    wb_call column = *call;
    const bool swaps = is_row(&call->matmul);
    if (swaps) column.matmul = as_column(&call->matmul);
    return render_serial(&column, swaps, dialect);
}
