/* The derivative of attention for one element type (see attention.h). With P = e^(s - sums), the
 * weights once more, and the mean of a query, m = y' dy:
 *
 *     dv += P dy;  ds = P (v' dy - m) / sqrt(dk);  dk += ds q;  dq += ds k
 *
 * Keys in blocks, which each block of queries meets; scores (keys, queries) column by column. */

typedef struct TYPE(meeting) {
    const wb_attention_group *group;
    const wb_attention_piece *head; /* arrays of one head of the group */
    const REAL *dy, *means;
    REAL *dq;
    TYPE(strip) strip; /* the keys, and the queries */
} TYPE(meeting);

static void TYPE(make_means)(const wb_attention_group *g) {
    const wb_attention_call *c = g->call;
    const int64_t heads = c->heads / c->kv_heads;
    for (int64_t i = 0; i < c->queries; i++)
        for (int64_t h = 0; h < heads; h++) {
            const int64_t place = (i * c->heads + h) * c->dv;
            const REAL *y = (const REAL *)g->y + place, *dy = (const REAL *)g->dy + place;
            VEC sum = SET(0);
            int64_t d = 0;
            for (; d + LANES <= c->dv; d += LANES) sum += LOAD(y + d) * LOAD(dy + d);
            if (d < c->dv)
                sum += LOAD_PART(y + d, (int)(c->dv - d)) * LOAD_PART(dy + d, (int)(c->dv - d));
            ((REAL *)g->means)[h * c->queries + i] = SUM(sum);
        }
}

/* Scores become weights, cotangents of weights those of scores. */
static void TYPE(differ)(const TYPE(meeting) * m, int64_t query, REAL *s, REAL *slope) {
    const wb_attention_call *c = m->group->call;
    const int64_t count = TYPE(seen)(&m->strip, query);
    const REAL sum = ((const REAL *)m->head->sums)[query], mean = m->means[query];
    const REAL scale = TYPE(prepare)(m->head, query, m->strip.first_key, count, m->strip.scale, s);
    const REAL whole = m->strip.scale;
    if (sum == -(REAL)INFINITY) { /* all scores are: the limit is their mean */
        const int64_t end = query + c->keys - c->queries + 1, all = c->is_causal ? end : c->keys;
        for (int64_t j = 0; j < count; j++) s[j] = 1 / (REAL)(all < c->keys ? all : c->keys);
    } else {
        for (int64_t j = 0; j < count; j++) s[j] = EXP(s[j] * scale - sum);
    }
    for (int64_t j = 0; j < count; j++) slope[j] = s[j] * (slope[j] - mean) * whole;
    for (int64_t j = count; j < m->strip.keys; j++) s[j] = slope[j] = 0;
}

/* The five products of a block of keys and one of queries. */
static void TYPE(meet)(const TYPE(meeting) * m) {
    const wb_attention_group *g = m->group;
    const wb_attention_call *c = g->call;
    const TYPE(strip) *strip = &m->strip;
    const int64_t ldq = c->dk * c->heads, ldy = c->dv * c->heads, ldk = c->dk * c->kv_heads,
                  ldv = c->dv * c->kv_heads, height = TILE_VECTORS * LANES;
    REAL *weights = g->weights, *slopes = g->slopes;
    const REAL *q = (const REAL *)m->head->q + strip->query * ldq, *dy = m->dy + strip->query * ldy;
    TYPE(tile)
    tile = {.a = g->packed_k,
            .b = q,
            .c = weights,
            .k = c->dk,
            .step_a = height,
            .step_b = ldq,
            .ldc = g->block};
    TYPE(product)(tile, strip->keys, strip->count, true, false);
    tile.a = g->packed_v, tile.b = dy, tile.c = slopes, tile.k = c->dv, tile.step_b = ldy;
    TYPE(product)(tile, strip->keys, strip->count, true, false);
    for (int64_t i = 0; i < strip->count; i++)
        TYPE(differ)(m, strip->query + i, weights + i * g->block, slopes + i * g->block);
    tile = (TYPE(tile)){.a = dy,
                        .b = weights,
                        .c = (REAL *)g->dv + strip->first_key * ldv,
                        .k = strip->count,
                        .step_a = ldy,
                        .step_b = g->block,
                        .ldc = ldv,
                        .add = true};
    TYPE(product)(tile, c->dv, strip->keys, false, true);
    tile.a = q, tile.b = slopes, tile.c = (REAL *)g->dk + strip->first_key * ldk;
    tile.step_a = ldq, tile.ldc = ldk;
    TYPE(product)(tile, c->dk, strip->keys, false, true);
    tile.a = (const REAL *)g->k + strip->first_key * ldk, tile.step_a = ldk, tile.k = strip->keys;
    tile.c = m->dq + strip->query * ldq, tile.ldc = ldq, tile.add = strip->first_key > g->first_key;
    TYPE(product)(tile, c->dk, strip->count, false, false);
}

/* One head of the group. */
static wb_attention_piece TYPE(head_of)(const wb_attention_group *g, int64_t h) {
    const wb_attention_call *c = g->call;
    wb_attention_piece head = {.call = c,
                               .q = (const REAL *)g->q + h * c->dk,
                               .sums = (REAL *)(uintptr_t)g->sums + h * c->queries};
    if (g->bias) head.bias = (const REAL *)g->bias + h * c->bias_strides[2];
    if (g->mask) head.mask = g->mask + h * c->mask_strides[2];
    return head;
}

/* All queries of a head with one block of keys. Where they see none of the part's first, dq becomes
 * 0. */
static void TYPE(meet_head)(const wb_attention_group *g, int64_t h, int64_t key, int64_t count) {
    const wb_attention_call *c = g->call;
    const wb_attention_piece head = TYPE(head_of)(g, h);
    TYPE(meeting)
    m = {.group = g,
         .head = &head,
         .dy = (const REAL *)g->dy + h * c->dv,
         .means = (const REAL *)g->means + h * c->queries,
         .dq = (REAL *)g->dq + h * c->dk,
         .strip = {
             .piece = &head, .scale = (REAL)(1 / k_sqrt_f64((double)c->dk)), .first_key = key}};
    for (int64_t query = 0; query < c->queries; query += WB_ATTENTION_QUERY_BLOCK) {
        const int64_t left = c->queries - query;
        m.strip.query = query;
        m.strip.count = left < WB_ATTENTION_QUERY_BLOCK ? left : WB_ATTENTION_QUERY_BLOCK;
        m.strip.keys = count;
        m.strip.keys = TYPE(seen)(&m.strip, query + m.strip.count - 1);
        if (m.strip.keys > 0 || key == g->first_key) TYPE(meet)(&m);
    }
}

static void TYPE(clear)(int64_t rows, int64_t columns, REAL *x, int64_t ld) {
    for (int64_t j = 0; j < columns; j++) memset(x + j * ld, 0, (size_t)rows * sizeof(REAL));
}

static void TYPE(attention_back_run)(const wb_attention_group *g) {
    const wb_attention_call *c = g->call;
    const int64_t ldk = c->dk * c->kv_heads, ldv = c->dv * c->kv_heads;
    TYPE(make_means)(g);
    for (int64_t key = g->first_key; key < g->end_key; key += g->block) {
        const int64_t left = g->end_key - key, count = left < g->block ? left : g->block;
        TYPE(pack_keys)(c->dk, count, (const REAL *)g->k + key * ldk, ldk, g->packed_k);
        TYPE(pack_keys)(c->dv, count, (const REAL *)g->v + key * ldv, ldv, g->packed_v);
        TYPE(clear)(c->dk, count, (REAL *)g->dk + key * ldk, ldk);
        TYPE(clear)(c->dv, count, (REAL *)g->dv + key * ldv, ldv);
        for (int64_t h = 0; h < c->heads / c->kv_heads; h++) TYPE(meet_head)(g, h, key, count);
    }
}

#undef HIDDEN
