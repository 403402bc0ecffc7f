/* Elements of two vectors a and b, one after the other, for an element type with LANES lanes (not
 * guarded: included once for each):
 *
 *     EVEN(a, b), ODD(a, b)            those at even places, at odd places
 *     MIX_LOW(a, b), MIX_HIGH(a, b)    of the first halves, of the second, in turn */
#undef EVEN_LANES
#undef ODD_LANES
#undef MIX_LOW_LANES
#undef MIX_HIGH_LANES
#undef EVEN
#undef ODD
#undef MIX_LOW
#undef MIX_HIGH

#if LANES == 16
#define EVEN_LANES     0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define ODD_LANES      1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#define MIX_LOW_LANES  0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define MIX_HIGH_LANES 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#elif LANES == 8
#define EVEN_LANES     0, 2, 4, 6, 8, 10, 12, 14
#define ODD_LANES      1, 3, 5, 7, 9, 11, 13, 15
#define MIX_LOW_LANES  0, 8, 1, 9, 2, 10, 3, 11
#define MIX_HIGH_LANES 4, 12, 5, 13, 6, 14, 7, 15
#elif LANES == 4
#define EVEN_LANES     0, 2, 4, 6
#define ODD_LANES      1, 3, 5, 7
#define MIX_LOW_LANES  0, 4, 1, 5
#define MIX_HIGH_LANES 2, 6, 3, 7
#elif LANES == 2
#define EVEN_LANES     0, 2
#define ODD_LANES      1, 3
#define MIX_LOW_LANES  0, 2
#define MIX_HIGH_LANES 1, 3
#endif

#if LANES == 1
#define EVEN(a, b)     (a)
#define ODD(a, b)      (b)
#define MIX_LOW(a, b)  (a)
#define MIX_HIGH(a, b) (b)
#else
#define EVEN(a, b)     __builtin_shufflevector(a, b, EVEN_LANES)
#define ODD(a, b)      __builtin_shufflevector(a, b, ODD_LANES)
#define MIX_LOW(a, b)  __builtin_shufflevector(a, b, MIX_LOW_LANES)
#define MIX_HIGH(a, b) __builtin_shufflevector(a, b, MIX_HIGH_LANES)
#endif
