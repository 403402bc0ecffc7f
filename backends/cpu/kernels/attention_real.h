/* Attention for one element type (see attention.h): keys in blocks, queries in strips. The scores
 * of a strip (keys, queries) lie column by column; largest score and sum of a query are carried
 * from block to block, and what y holds so far shrinks when a larger one comes. */

typedef struct TYPE(strip) {
    const wb_attention_piece *piece;
    REAL scale;
    int64_t first_key, keys; /* of the block that the strip sees */
    int64_t query, count;
    bool is_first, is_last; /* block of the strip */
} TYPE(strip);

/* The score of hidden keys: so far below all others that its exponential is 0. */
#define HIDDEN ((REAL)-1e30)

/* C (rows, columns) (+)= A (rows, k) B (k, columns). packed: A lies in panels. */
static void TYPE(product)(TYPE(tile) t, int64_t rows, int64_t columns, bool packed, bool adjacent) {
    const int64_t height = TILE_VECTORS * LANES, all = (rows + LANES - 1) / LANES;
    const int most = all < TILE_VECTORS ? (int)all : TILE_VECTORS;
    const REAL *a = t.a;
    REAL *c = t.c;
    for (int64_t column = 0; column < columns && rows > 0;) {
        const int width = TYPE(tile_width)(most, columns - column);
        for (int64_t row = 0; row < rows; row += height) {
            const int64_t left = rows - row < height ? rows - row : height;
            const int vectors = (int)((left + LANES - 1) / LANES);
            t.rows = (int)left - (vectors - 1) * LANES;
            t.a = a + row * (packed ? t.k : 1);
            t.c = c + row;
            TYPE(tiles)[adjacent][vectors - 1][width](&t);
        }
        t.b += width * (adjacent ? 1 : t.step_b);
        c += width * t.ldc;
        column += width;
    }
}

/* x (depth, count) turned into panels, all of them of the same height. */
static void TYPE(pack_keys)(int64_t depth, int64_t count, const REAL *x, int64_t ld, REAL *to) {
    const int64_t height = TILE_VECTORS * LANES;
    for (int64_t row = 0; row < count; row += LANES) {
        const int64_t panel = row / height * height;
        const int rows = count - row < LANES ? (int)(count - row) : LANES;
        TYPE(pack_turned)
        (depth, rows, x + row * ld, ld, to + panel * depth + (row - panel), height);
    }
}

/* ---- a query's scores ---- */

static void TYPE(add_bias)(const wb_attention_piece *p, int64_t query, int64_t key, int64_t count,
                           REAL scale, REAL *s) {
    const int64_t step = p->call->bias_strides[0];
    const REAL *bias = (const REAL *)p->bias + query * p->call->bias_strides[1] + key * step;
    if (step == 1)
        for (int64_t j = 0; j < count; j++) s[j] = s[j] * scale + bias[j];
    else
        for (int64_t j = 0; j < count; j++) s[j] = s[j] * scale + *bias;
}

static void TYPE(hide)(const wb_attention_piece *p, int64_t query, int64_t key, int64_t count,
                       REAL scale, REAL *s) {
    const int64_t step = p->call->mask_strides[0];
    const uint8_t *mask = p->mask + query * p->call->mask_strides[1] + key * step;
    if (step == 1)
        for (int64_t j = 0; j < count; j++) s[j] = mask[j] ? s[j] * scale : HIDDEN;
    else
        for (int64_t j = 0; j < count; j++) s[j] = *mask ? s[j] * scale : HIDDEN;
}

/* Scale, bias and mask applied to the scores; the scale that is left to be applied. */
static REAL TYPE(prepare)(const wb_attention_piece *p, int64_t query, int64_t key, int64_t count,
                          REAL scale, REAL *s) {
    if (p->bias) {
        TYPE(add_bias)(p, query, key, count, scale, s);
        scale = 1;
    }
    if (p->mask) {
        TYPE(hide)(p, query, key, count, scale, s);
        scale = 1;
    }
    return scale;
}

/* The code below works on whole vectors: there is room after the scores of a query. */
enum { TYPE(WAYS) = 2 * LANES };

static REAL TYPE(largest)(int64_t count, const REAL *s) {
    REAL lanes[TYPE(WAYS)];
    for (int k = 0; k < TYPE(WAYS); k++) lanes[k] = -(REAL)INFINITY;
    for (int64_t j = 0; j < count; j += TYPE(WAYS))
        for (int k = 0; k < TYPE(WAYS); k++) lanes[k] = s[j + k] > lanes[k] ? s[j + k] : lanes[k];
    for (int k = 0; k < LANES; k++)
        lanes[k] = lanes[k + LANES] > lanes[k] ? lanes[k + LANES] : lanes[k];
    return LARGEST(LOAD(lanes));
}

/* s becomes e^(scale (s - top)); their sum. */
static double TYPE(exponentials)(int64_t count, REAL scale, REAL top, REAL *s) {
    REAL lanes[TYPE(WAYS)] = {0};
    for (int64_t j = 0; j < count; j += TYPE(WAYS))
        for (int k = 0; k < TYPE(WAYS); k++) {
            const REAL e = EXP_LOW((s[j + k] - top) * scale);
            s[j + k] = e, lanes[k] += e;
        }
    return TOTAL(LOAD(lanes)) + TOTAL(LOAD(lanes + LANES));
}

/* The same where the largest is infinite: 1 there, as in the limit; -inf follows the scores. */
static double TYPE(limits)(int64_t count, REAL scale, REAL top, REAL *s) {
    double sum = 0;
    for (int64_t j = 0; j < count; j++) {
        s[j] = s[j] == top ? 1 : EXP((s[j] - top) * scale);
        sum += (double)s[j];
    }
    return sum;
}

/* ---- strips ---- */

/* How many of the block's keys the query sees. */
static int64_t TYPE(seen)(const TYPE(strip) * strip, int64_t query) {
    const wb_attention_call *c = strip->piece->call;
    const int64_t end = query + c->keys - c->queries + 1 - strip->first_key;
    if (!c->is_causal || end >= strip->keys) return strip->keys;
    return end > 0 ? end : 0;
}

/* The scores of one query become weights, up to a factor that is carried; by how much what y holds
 * has to shrink. */
static REAL TYPE(weigh)(const TYPE(strip) * strip, int64_t query, REAL *s) {
    const wb_attention_piece *p = strip->piece;
    const int64_t count = TYPE(seen)(strip, query), place = query - p->first;
    const int64_t whole = (count + TYPE(WAYS) - 1) / TYPE(WAYS) * TYPE(WAYS);
    REAL *largest = (REAL *)p->largest + place;
    double *total = p->total + place;
    const REAL scale = TYPE(prepare)(p, query, strip->first_key, count, strip->scale, s);
    const REAL before = strip->is_first ? -(REAL)INFINITY : *largest;
    for (int64_t j = count; j < whole; j++) s[j] = -(REAL)INFINITY;
    const REAL here = TYPE(largest)(whole, s), top = here > before ? here : before;
    const bool is_finite = top - top == 0;
    const double sum =
        is_finite ? TYPE(exponentials)(whole, scale, top, s) : TYPE(limits)(count, scale, top, s);
    const REAL factor = top == before ? 1 : EXP((before - top) * scale);
    for (int64_t j = is_finite ? whole : count; j < strip->keys; j++) s[j] = 0;
    *largest = top;
    *total = strip->is_first ? sum : *total * (double)factor + sum;
    return factor;
}

static void TYPE(shrink)(int64_t count, REAL factor, REAL *y) {
    if (factor == 1) return;
    for (int64_t d = 0; d < count; d++) y[d] *= factor;
}

/* True for a query that sees no key: all are hidden, or have scores of -inf. If a score is NaN, the
 * total is NaN. */
static bool TYPE(saw_none)(const wb_attention_piece *p, int64_t place) {
    const REAL top = ((const REAL *)p->largest)[place];
    const bool is_nan = p->total[place] != p->total[place];
    return !is_nan && (top == -(REAL)INFINITY || (p->mask && top == HIDDEN));
}

/* y / total, 0 where no key was seen. */
static void TYPE(finish)(const TYPE(strip) * strip, int64_t query, REAL *y) {
    const wb_attention_piece *p = strip->piece;
    const bool saw_none = TYPE(saw_none)(p, query - p->first);
    const REAL factor = (REAL)(1 / p->total[query - p->first]);
    for (int64_t d = 0; d < p->call->dv; d++) y[d] = saw_none ? 0 : y[d] * factor;
}

/* The logarithms of the sums; infinity where no key was seen. */
static void TYPE(finish_sums)(const wb_attention_piece *p) {
    const double scale = p->bias || p->mask ? 1 : 1 / k_sqrt_f64((double)p->call->dk);
    const REAL *largest = p->largest;
    double *total = p->total;
    REAL *sums = (REAL *)p->sums + p->first;
    for (int64_t i = 0; i < p->count; i++) {
        const double sum = (double)largest[i] * scale + k_log_f64(total[i]);
        sums[i] = TYPE(saw_none)(p, i) ? (REAL)INFINITY : (REAL)sum;
    }
}

/* False where the diagonal hides a value from some of the strip's queries that is infinite or NaN:
 * their weights are 0, and 0 times it is NaN. */
static bool TYPE(hides_finite)(const TYPE(strip) * strip) {
    const wb_attention_call *c = strip->piece->call;
    VEC sum = SET(0);
    for (int64_t j = TYPE(seen)(strip, strip->query); j < strip->keys; j++) {
        const REAL *v = (const REAL *)strip->piece->v + (strip->first_key + j) * c->v_strides[0];
        int64_t d = 0;
        for (; d + LANES <= c->dv; d += LANES) sum += LOAD(v + d) * SET(0);
        if (d < c->dv) sum += LOAD_PART(v + d, (int)(c->dv - d)) * SET(0);
    }
    return SUM(sum) == 0;
}

/* y (dv, queries) (+)= v (dv, keys) weights (keys, queries); if a hidden value is not finite, query
 * by query, each with the keys that it sees. */
static void TYPE(weigh_values)(const TYPE(strip) * strip, REAL *y, int64_t ldy) {
    const wb_attention_piece *p = strip->piece;
    const int64_t ldv = p->call->v_strides[0];
    const bool together = TYPE(hides_finite)(strip);
    const int64_t step = together ? strip->count : 1;
    for (int64_t i = 0; i < strip->count; i += step) {
        const TYPE(tile) tile = {.a = (const REAL *)p->v + strip->first_key * ldv,
                                 .b = (const REAL *)p->scores + i * p->block,
                                 .c = y + i * ldy,
                                 .k = together ? strip->keys : TYPE(seen)(strip, strip->query + i),
                                 .step_a = ldv,
                                 .step_b = p->block,
                                 .ldc = ldy,
                                 .add = !strip->is_first};
        TYPE(product)(tile, p->call->dv, step, false, false);
    }
}

static void TYPE(run_strip)(const TYPE(strip) * strip) {
    const wb_attention_piece *p = strip->piece;
    const wb_attention_call *c = p->call;
    const int64_t ldq = c->q_strides[0], ldy = c->dv * c->heads;
    REAL *scores = p->scores, *y = (REAL *)p->y + strip->query * ldy;
    const TYPE(tile) of_scores = {.a = p->packed,
                                  .b = (const REAL *)p->q + strip->query * ldq,
                                  .c = scores,
                                  .k = c->dk,
                                  .step_a = TILE_VECTORS * LANES,
                                  .step_b = ldq,
                                  .ldc = p->block};
    TYPE(product)(of_scores, strip->keys, strip->count, true, false);
    for (int64_t i = 0; i < strip->count; i++) {
        const REAL factor = TYPE(weigh)(strip, strip->query + i, scores + i * p->block);
        if (!strip->is_first) TYPE(shrink)(c->dv, factor, y + i * ldy);
    }
    TYPE(weigh_values)(strip, y, ldy);
    for (int64_t i = 0; i < strip->count && strip->is_last; i++)
        TYPE(finish)(strip, strip->query + i, y + i * ldy);
}

/* All queries of the piece with one block of keys. */
static void TYPE(run_block)(const wb_attention_piece *p, int64_t first_key) {
    const wb_attention_call *c = p->call;
    const int64_t end = p->first + p->count, offset = c->keys - c->queries;
    for (int64_t query = p->first; query < end; query += WB_ATTENTION_STRIP) {
        const int64_t left = end - query;
        TYPE(strip)
        strip = {.piece = p,
                 .scale = (REAL)(1 / k_sqrt_f64((double)c->dk)),
                 .first_key = first_key,
                 .query = query,
                 .count = left < WB_ATTENTION_STRIP ? left : WB_ATTENTION_STRIP,
                 .is_first = first_key == 0};
        int64_t seen = c->is_causal ? query + strip.count + offset : c->keys;
        seen = (seen < 0 ? 0 : seen < c->keys ? seen : c->keys) - first_key;
        strip.is_last = seen <= p->block;
        strip.keys = strip.is_last ? seen : p->block;
        if (strip.keys > 0 || strip.is_first) TYPE(run_strip)(&strip);
    }
}

static void TYPE(attention_run)(const wb_attention_piece *p) {
    const wb_attention_call *c = p->call;
    const int64_t ldk = c->k_strides[0];
    int64_t seen = c->is_causal ? p->first + p->count + c->keys - c->queries : c->keys;
    if (seen > c->keys) seen = c->keys;
    for (int64_t key = 0; key == 0 || key < seen; key += p->block) {
        const int64_t count = seen - key < p->block ? seen - key : p->block;
        TYPE(pack_keys)(c->dk, count, (const REAL *)p->k + key * ldk, ldk, p->packed);
        TYPE(run_block)(p, key);
    }
    TYPE(finish_sums)(p);
}
