/* Sums over ranks of one type: NUMBER, with names by TYPE and sums by ADD (reduce.c). */

static void TYPE(_two)(wb_reduction reduction, const NUMBER *a, const NUMBER *b, int count,
                       NUMBER *out) {
    if (reduction == WB_REDUCE_MAX)
        for (int i = 0; i < count; i++) out[i] = LARGER(a[i], b[i]);
    else if (reduction == WB_REDUCE_MIN)
        for (int i = 0; i < count; i++) out[i] = SMALLER(a[i], b[i]);
    else
        for (int i = 0; i < count; i++) out[i] = ADD(a[i], b[i]);
}

/* What ranks lo .. hi - 1 give together; the result for a single rank is that rank's own memory. */
static const NUMBER *TYPE(_tile)(wb_reduction reduction, int lo, int hi, const void *const *parts,
                                 int64_t at, int count, NUMBER *out) {
    if (hi - lo == 1) return (const NUMBER *)parts[lo] + at;
    NUMBER room[TILE];
    const int middle = lo + wb_power_below(hi - lo);
    const NUMBER *a = TYPE(_tile)(reduction, lo, middle, parts, at, count, out);
    const NUMBER *b = TYPE(_tile)(reduction, middle, hi, parts, at, count, room);
    TYPE(_two)(reduction, a, b, count, out);
    return out;
}

static void TYPE()(wb_reduction reduction, int ranks, const void *const *parts, int64_t count,
                   void *to) {
    for (int64_t at = 0; at < count; at += TILE) {
        const int n = (int)(count - at < TILE ? count - at : TILE);
        NUMBER *out = (NUMBER *)to + at;
        (void)TYPE(_tile)(reduction, 0, ranks, parts, at, n, out); /* two or more */
        if (reduction == WB_REDUCE_MEAN)
            for (int i = 0; i < n; i++) out[i] = (NUMBER)(out[i] / (NUMBER)ranks);
    }
}

#undef NUMBER
#undef TYPE
#undef ADD
