/* The run's keys at x, `inner` apart, for neighbours first .. end - 1; positions go to y. For one
 * type, KEY (argmax.c). */

static void LOOK(const wb_index_call *k, const void *keys, int64_t from, int64_t count,
                 int64_t first, int64_t end, int64_t *y) {
    const KEY *x = (const KEY *)keys + from * k->inner;
    KEY largest[LANES];
    for (int64_t i = first; i < end; i++) largest[i - first] = x[i], y[i] = from;
    for (int64_t s = 1; s < count; s++) {
        x += k->inner;
        for (int64_t i = first; i < end; i++) {
            const KEY key = x[i], most = largest[i - first];
            const bool is_nan = IS_NAN(key), was_nan = IS_NAN(most);
            if (!(key > most || (is_nan && !was_nan))) continue;
            largest[i - first] = key, y[i] = from + s;
        }
    }
}

#undef KEY
#undef LOOK
