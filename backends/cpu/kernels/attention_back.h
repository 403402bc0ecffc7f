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

/* Scores become weights, cotangents of weights those of scores; 0 where the query sees no key. */
static void TYPE(differ)(const TYPE(meeting) * m, int64_t query, REAL *s, REAL *slope) {
    const int64_t count = TYPE(seen)(&m->strip, query);
    const int64_t whole = (count + TYPE(WAYS) - 1) / TYPE(WAYS) * TYPE(WAYS);
    const REAL sum = ((const REAL *)m->head->sums)[query], mean = m->means[query];
    const REAL scale = TYPE(prepare)(m->head, query, m->strip.first_key, count, m->strip.scale, s);
    const REAL after = m->strip.scale;
    for (int64_t j = 0; j < whole; j += TYPE(WAYS))
        for (int k = 0; k < TYPE(WAYS); k++) {
            const REAL x = s[j + k] * scale - sum;
            const REAL weight = EXP_LOW(x > 0 ? 0 : x); /* rounding may take it above */
            s[j + k] = weight;
            slope[j + k] = weight * (slope[j + k] - mean) * after;
        }
    for (int64_t j = count; j < m->strip.keys; j++) s[j] = slope[j] = 0;
}

/* As many columns at a time as fill tiles: what the diagonal hides from them is left out. */
enum { TYPE(COLUMNS) = 12 };

/* C (keys, queries) = packed (depth, keys)' x (depth, queries), for the keys that are visible. */
static void TYPE(meet_scores)(const TYPE(meeting) * m, const REAL *packed, int64_t depth,
                              const REAL *x, int64_t ld, REAL *c) {
    const TYPE(strip) *strip = &m->strip;
    for (int64_t i = 0; i < strip->count; i += TYPE(COLUMNS)) {
        const int64_t left = strip->count - i, n = left < TYPE(COLUMNS) ? left : TYPE(COLUMNS);
        const TYPE(tile) tile = {.a = packed,
                                 .b = x + i * ld,
                                 .c = c + i * m->group->block,
                                 .k = depth,
                                 .step_a = TILE_VECTORS * LANES,
                                 .step_b = ld,
                                 .ldc = m->group->block};
        TYPE(product)(tile, TYPE(seen)(strip, strip->query + i + n - 1), n, true, false);
    }
}

/* C (depth, keys) += x (depth, queries) s (keys, queries)', of the queries that see them. */
static void TYPE(meet_keys)(const TYPE(meeting) * m, const REAL *x, int64_t depth, int64_t ld,
                            const REAL *s, REAL *c, int64_t ldc) {
    const TYPE(strip) *strip = &m->strip;
    const wb_attention_call *call = m->group->call;
    const int64_t ahead = strip->query + call->keys - call->queries - strip->first_key;
    for (int64_t j = 0; j < strip->keys; j += TYPE(COLUMNS)) {
        const int64_t left = strip->keys - j, n = left < TYPE(COLUMNS) ? left : TYPE(COLUMNS);
        const int64_t first = call->is_causal && j > ahead ? j - ahead : 0;
        const TYPE(tile) tile = {.a = x + first * ld,
                                 .b = s + j + first * m->group->block,
                                 .c = c + j * ldc,
                                 .k = strip->count - first,
                                 .step_a = ld,
                                 .step_b = m->group->block,
                                 .ldc = ldc,
                                 .add = true};
        TYPE(product)(tile, depth, n, false, true);
    }
}

/* dq (dk, queries) (+)= k (dk, keys) s (keys, queries), of the keys that are seen. */
static void TYPE(meet_queries)(const TYPE(meeting) * m, const REAL *k, int64_t ldk, const REAL *s,
                               REAL *dq, int64_t ldq) {
    const TYPE(strip) *strip = &m->strip;
    for (int64_t i = 0; i < strip->count; i += TYPE(COLUMNS)) {
        const int64_t left = strip->count - i, n = left < TYPE(COLUMNS) ? left : TYPE(COLUMNS);
        const TYPE(tile) tile = {.a = k,
                                 .b = s + i * m->group->block,
                                 .c = dq + i * ldq,
                                 .k = TYPE(seen)(strip, strip->query + i + n - 1),
                                 .step_a = ldk,
                                 .step_b = m->group->block,
                                 .ldc = ldq,
                                 .add = strip->first_key > m->group->first_key};
        TYPE(product)(tile, m->group->call->dk, n, false, false);
    }
}

/* The five products of a block of keys and one of queries. */
static void TYPE(meet)(const TYPE(meeting) * m) {
    const wb_attention_group *g = m->group;
    const wb_attention_call *c = g->call;
    const TYPE(strip) *strip = &m->strip;
    /* of dq, dk and dv, which are dense */
    const int64_t ldq = c->dk * c->heads, ldk = c->dk * c->kv_heads, ldv = c->dv * c->kv_heads;
    const int64_t ldy = c->dv * c->heads, of_q = c->q_strides[0], of_k = c->k_strides[0];
    const int64_t key = strip->first_key;
    REAL *weights = g->weights, *slopes = g->slopes;
    const REAL *q = (const REAL *)m->head->q + strip->query * of_q;
    const REAL *k = (const REAL *)g->k + key * of_k, *dy = m->dy + strip->query * ldy;
    TYPE(meet_scores)(m, g->packed_k, c->dk, q, of_q, weights);
    TYPE(meet_scores)(m, g->packed_v, c->dv, dy, ldy, slopes);
    for (int64_t i = 0; i < strip->count; i++)
        TYPE(differ)(m, strip->query + i, weights + i * g->block, slopes + i * g->block);
    TYPE(meet_keys)(m, dy, c->dv, ldy, weights, (REAL *)g->dv + key * ldv, ldv);
    TYPE(meet_keys)(m, q, c->dk, of_q, slopes, (REAL *)g->dk + key * ldk, ldk);
    TYPE(meet_queries)(m, k, of_k, slopes, m->dq + strip->query * ldq, ldq);
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
    const int64_t ldk = c->dk * c->kv_heads, ldv = c->dv * c->kv_heads; /* of dk and dv */
    const int64_t of_k = c->k_strides[0], of_v = c->v_strides[0];
    TYPE(make_means)(g);
    for (int64_t key = g->first_key; key < g->end_key; key += g->block) {
        const int64_t left = g->end_key - key, count = left < g->block ? left : g->block;
        TYPE(pack_keys)(c->dk, count, (const REAL *)g->k + key * of_k, of_k, g->packed_k);
        TYPE(pack_keys)(c->dv, count, (const REAL *)g->v + key * of_v, of_v, g->packed_v);
        TYPE(clear)(c->dk, count, (REAL *)g->dk + key * ldk, ldk);
        TYPE(clear)(c->dv, count, (REAL *)g->dv + key * ldv, ldv);
        for (int64_t h = 0; h < c->heads / c->kv_heads; h++) TYPE(meet_head)(g, h, key, count);
    }
}

#undef HIDDEN
