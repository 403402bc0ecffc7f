/* Two operations in one loop, for each pair in WB_PAIR_LIST. The second and the third operand can
 * each be an array or a single number, so each pair has four loops per type. */
#include "pairs.h"

#define LOOPS(type, T, name, expression)                                                           \
    WB_LOOP_OF_TWO(WB_PAIR_NAME(type, name, ), T, yp[i], zp[i], expression)                        \
    WB_LOOP_OF_TWO(WB_PAIR_NAME(type, name, _by), T, y0, zp[i], expression)                        \
    WB_LOOP_OF_TWO(WB_PAIR_NAME(type, name, _to), T, yp[i], z0, expression)                        \
    WB_LOOP_OF_TWO(WB_PAIR_NAME(type, name, _by_to), T, y0, z0, expression)
#define LOOPS_OF_PAIR(name, expression)                                                            \
    LOOPS(f32, float, name, expression)                                                            \
    LOOPS(f64, double, name, expression)

WB_PAIR_LIST(LOOPS_OF_PAIR)
