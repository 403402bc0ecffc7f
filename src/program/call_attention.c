/* Attention and its derivative. */
#include <math.h>
#include <string.h>

#include "program/call_source.h"
#include <src/program/call_attention.txt.h>
#include <src/program/call_attention_scores.txt.h>
#include <src/program/call_attention_serial.txt.h>
#include <src/program/call_attention_tile.txt.h>
#include <src/program/call_common.txt.h>
#include <src/program/call_vector.txt.h>

enum {
    MOST_FEATURES = 128, /* of a head in tiles: sums of as many stand in registers */
    ACROSS = 16,         /* as call_attention_tile.txt has it */
    STEP = 16,           /* features, or rows, that are in shared memory at a time */
    MOST_GROUPS = 1 << 20,
    SERIAL_GROUPS = 64, /* most that run one tile after the other, each with scratch memory */
    BLOCK = 64,         /* of the others, on wide cores */
    COLUMNS = 4,        /* that are computed together there */
    MOST_VECTORS = 4,
    WARP_ITEMS = 32, /* for a row of scores of this many keys; longer rows have a group */
    WARP_KEYS = 1024,
};

static bool is_backward(const wb_call *call) { return call->kind == WB_CALL_attention_backward; }

bool wb_call_fits_attention(const wb_call *call, const wb_dialect *dialect) {
    const wb_attention_call *a = &call->attention;
    return dialect->is_serial || (a->dk <= MOST_FEATURES && a->dv <= MOST_FEATURES);
}

/* ---- lines ---- */

static void add_real(wb_call_source *s, const char *name, double value) {
    if (wb_call_real_bytes(s->call) == 4) {
        const float single = (float)value;
        uint32_t bits;
        memcpy(&bits, &single, sizeof bits);
        wb_text_add(&s->lines, "#define %s WB_F32(0x%08xu)\n", name, bits);
        return;
    }
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    wb_text_add(&s->lines, "#define %s WB_F64(WB_U64(0x%08xu, 0x%08xu))\n", name,
                (unsigned)(bits >> 32), (unsigned)(bits & 0xffffffffu));
}

static void add_numbers(wb_call_source *s) {
    const char *real = wb_call_real_bytes(s->call) == 8 ? "f64" : "f32";
    add_real(s, "SCALE", 1 / sqrt((double)s->call->attention.dk));
    add_real(s, "INFINITE", (double)INFINITY);
    wb_text_add(&s->lines, "#define EXP(x) wb_exp_%s(x)\n#define LOG(x) wb_log_%s(x)\n", real,
                real);
}

static void add_argument(wb_call_source *s, const char *name, int number) {
    wb_text_add(&s->lines, "#define %s ARGUMENT_%d\n", name, number);
}

static void add_strides(wb_call_source *s, const char *name, const int64_t strides[4]) {
    const wb_attention_call *a = &s->call->attention;
    for (int d = 0; d < 4; d++) wb_call_word_at(s, name, d, strides[d]);
    wb_call_reaches(s, a->keys * strides[0] + a->queries * strides[1] + a->heads * strides[2] +
                           a->batch * strides[3]);
}

/* How many arguments there are. */
static int add_arguments(wb_call_source *s) {
    static const char *const forward[] = {"RESULT", "SUMS", NULL}, *const backward[] = {
                                                                       "RESULT", "RESULT_K",
                                                                       "RESULT_V", NULL};
    const wb_attention_call *a = &s->call->attention;
    const char *const *results = is_backward(s->call) ? backward : forward;
    int count = is_backward(s->call) ? 6 : 3;
    if (a->has_mask) {
        add_argument(s, "MASK_ARGUMENT", count++);
        add_strides(s, "MASK", a->mask_strides);
    }
    if (a->has_bias) {
        add_argument(s, "BIAS_ARGUMENT", count++);
        add_strides(s, "BIAS", a->bias_strides);
    }
    for (; *results; results++) add_argument(s, *results, count++);
    return count;
}

/* The matrices of q, k or v; a batch has this many columns. */
static void add_columns(wb_call_source *s, const char *name, const int64_t strides[2],
                        int64_t columns) {
    for (int d = 0; d < 2; d++) wb_call_word_at(s, name, d, strides[d]);
    wb_call_reaches(s, columns * strides[0] + s->call->attention.batch * strides[1]);
}

/* The definitions that scores depend on. */
static void add_properties(wb_call_source *s) {
    const wb_attention_call *a = &s->call->attention;
    wb_call_constant(s, "BACKWARD", is_backward(s->call));
    wb_call_constant(s, "CAUSAL", a->is_causal);
    wb_call_constant(s, "MASKED", a->has_mask);
    wb_call_constant(s, "BIASED", a->has_bias);
    wb_call_word(s, "QUERIES", a->queries);
    wb_call_word(s, "KEYS", a->keys);
    wb_call_word(s, "HEADS", a->heads);
}

static void add_sizes(wb_call_source *s) {
    const wb_attention_call *a = &s->call->attention;
    add_properties(s);
    wb_call_constant(s, "DK", a->dk);
    wb_call_constant(s, "DV", a->dv);
    wb_call_word(s, "KV_HEADS", a->kv_heads);
    wb_call_word(s, "SHARING", a->heads / a->kv_heads);
    wb_call_word(s, "SHEETS", a->heads * a->batch);
    wb_call_word(s, "KV_SHEETS", a->kv_heads * a->batch);
    add_columns(s, "Q_STRIDE", a->q_strides, a->queries);
    add_columns(s, "K_STRIDE", a->k_strides, a->keys);
    add_columns(s, "V_STRIDE", a->v_strides, a->keys);
    const int64_t features = wb_call_most(a->dk, a->dv), length = wb_call_most(a->queries, a->keys);
    wb_call_reaches(s, features * a->heads * (length + BLOCK) * a->batch);
}

/* ---- kernels ---- */

/* tile: queries or keys of a group */
static void add_launches(wb_call_source *s, int64_t tile, int64_t most) {
    const wb_attention_call *a = &s->call->attention;
    const int64_t of_queries = wb_call_ceil(a->queries, tile),
                  of_keys = wb_call_ceil(a->keys, tile);
    wb_call_word(s, "QUERY_TILES", of_queries);
    wb_call_word(s, "KEY_TILES", of_keys);
    const int64_t queries = wb_call_least(of_queries * a->heads * a->batch, most),
                  keys = wb_call_least(of_keys * a->kv_heads * a->batch, most);
    if (!is_backward(s->call)) {
        wb_call_launch(s, "k_attend", queries);
        return;
    }
    const int64_t means = wb_call_most(a->queries * a->heads * a->batch, 1);
    wb_call_scratch(s, "MEANS", means * wb_call_real_bytes(s->call));
    wb_call_launch_items(s, "k_means", means, 1);
    wb_call_launch(s, "k_queries", queries);
    wb_call_launch(s, "k_keys", keys);
}

static wb_source *render_tiles(const wb_call *call, const wb_dialect *dialect) {
    const wb_attention_call *a = &call->attention;
    const int64_t tile = call->dtype == WB_F64 ? 32 : 64;
    const int64_t features = wb_call_ceil(wb_call_most(a->dk, a->dv), ACROSS) * ACROSS;
    const int64_t products = 2 * STEP * (tile + 4), sums = 2 * tile * ACROSS;
    wb_call_source s = wb_call_source_new(call, dialect);
    add_numbers(&s);
    add_sizes(&s);
    const int arguments = add_arguments(&s);
    wb_call_constant(&s, "TILE", tile);
    wb_call_constant(&s, "STEP", STEP);
    wb_call_constant(&s, "CHUNK",
                     wb_call_most(wb_call_most(products, sums), STEP * (features + 1)));
    add_launches(&s, tile, MOST_GROUPS);
    return wb_call_source_finish(&s, arguments,
                                 (const char *const[]){call_common_text, call_attention_text,
                                                       call_attention_tile_text, NULL});
}

static wb_source *render_serial(const wb_call *call, const wb_dialect *dialect) {
    const wb_attention_call *a = &call->attention;
    const int64_t width = 64 / wb_call_real_bytes(call);
    const int64_t rows = is_backward(call) ? wb_call_most(a->queries, a->keys) : a->queries;
    const int64_t vectors = wb_call_least(wb_call_most(wb_call_ceil(rows, width), 1), MOST_VECTORS);
    const int64_t slice = (2 * (a->dk + a->dv + BLOCK) + 3) * vectors * width;
    wb_call_source s = wb_call_source_new(call, dialect);
    add_numbers(&s);
    add_sizes(&s);
    const int arguments = add_arguments(&s);
    wb_call_constant(&s, "REAL_BYTES", wb_call_real_bytes(call));
    wb_call_constant(&s, "VECTORS", vectors);
    wb_call_constant(&s, "COLUMNS", COLUMNS);
    wb_call_constant(&s, "BLOCK", BLOCK);
    wb_call_word(&s, "SLICE", slice);
    add_launches(&s, vectors * width, SERIAL_GROUPS);
    wb_call_scratch(&s, "SLICES", SERIAL_GROUPS * slice * wb_call_real_bytes(call));
    return wb_call_source_finish(&s, arguments,
                                 (const char *const[]){call_common_text, call_attention_text,
                                                       call_vector_text, call_attention_serial_text,
                                                       NULL});
}

static int add_arguments_in_products(wb_call_source *s) {
    const wb_attention_call *a = &s->call->attention;
    int count = is_backward(s->call) ? 5 : 2;
    if (a->has_mask) add_argument(s, "MASK_ARGUMENT", count++);
    if (a->has_bias) add_argument(s, "BIAS_ARGUMENT", count++);
    if (a->has_mask) add_strides(s, "MASK", a->mask_strides);
    if (a->has_bias) add_strides(s, "BIAS", a->bias_strides);
    if (!is_backward(s->call)) add_argument(s, "SUMS", count++);
    return count;
}

static wb_source *render_in_products(const wb_call *call, const wb_dialect *dialect) {
    const wb_attention_call *a = &call->attention;
    const int64_t rows = a->queries * a->heads, leading = wb_attention_leading(a->keys);
    const int64_t items = a->keys <= WARP_KEYS ? WARP_ITEMS : dialect->group;
    wb_call_source s = wb_call_source_new(call, dialect);
    add_numbers(&s);
    add_properties(&s);
    wb_call_constant(&s, "IN_PRODUCTS", 1);
    wb_call_constant(&s, "ROW_ITEMS", items);
    wb_call_constant(&s, "PER_ITEM", wb_call_ceil(a->keys, items));
    wb_call_word(&s, "LEADING", leading);
    wb_call_reaches(&s, rows * leading);
    const int arguments = add_arguments_in_products(&s);
    wb_call_launch_items(&s, is_backward(call) ? "k_slopes" : "k_weights", rows * items, 1);
    return wb_call_source_finish(&s, arguments,
                                 (const char *const[]){call_common_text, call_attention_text,
                                                       call_attention_scores_text, NULL});
}

wb_source *wb_call_render_attention(const wb_call *call, const wb_dialect *dialect) {
    if (call->attention.in_products) return render_in_products(call, dialect);
    if (!wb_call_fits_attention(call, dialect)) return NULL;
    return dialect->is_serial ? render_serial(call, dialect) : render_tiles(call, dialect);
}
