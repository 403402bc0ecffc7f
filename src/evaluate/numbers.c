/* WEBER_DEBUG=nan: which operation made the first NaN or infinity. Plans are fused as usual, but
 * every array stays in memory; if a root is bad, the search goes back along the recipes to the
 * first bad value. */
#include <stdio.h>
#include <string.h>

#include "array/view.h"
#include "base/memory.h"
#include "base/switch.h"
#include "evaluate/tape.h"

bool wb_watches_numbers(void) {
    static wb_switch nan = {.variable = "WEBER_DEBUG", .word = "nan"};
    return wb_is_on(&nan);
}

static bool is_number(const wb_array *x) {
    return x->op == WB_OP_full || x->op == WB_OP_late ||
           (x->flags & (WB_NODE_INTERNED | WB_NODE_WEAK));
}

void wb_numbers_store(wb_tape *tape) {
    for (int64_t i = 0; i < tape->count; i++) {
        const wb_array *x = tape->at[i].node;
        tape->at[i].marks &= (uint8_t)~WB_TAPE_DONATED;
        if ((tape->at[i].marks & WB_TAPE_LEAF) || wb_is_evaluated(x) || wb_has_results(x) ||
            is_number(x) || !wb_dtype_is_float((wb_dtype)x->dtype))
            continue;
        tape->at[i].marks |= WB_TAPE_STORED;
    }
}

/* ---- the values of one array ---- */

typedef enum badness { FINITE, INFINITE, NOT_A_NUMBER } badness;

typedef struct found {
    badness what;
    int64_t index[WB_MAX_DIMS]; /* of the first that is NaN, or else infinite */
} found;

/* By its bits: infinite if those of the exponent are all set and no other but the sign. */
static badness judge(const char *at, wb_dtype dtype) {
    static const struct bits {
        uint64_t exponent, fraction;
    } of[WB_DTYPE_COUNT] = {[WB_F32] = {0x7F800000, 0x007FFFFF},
                            [WB_F64] = {0x7FF0000000000000, 0x000FFFFFFFFFFFFF},
                            [WB_F16] = {0x7C00, 0x03FF},
                            [WB_BF16] = {0x7F80, 0x007F}};
    uint64_t bits = 0;
    if (wb_dtype_size(dtype) == 2) {
        uint16_t half;
        memcpy(&half, at, sizeof half);
        bits = half;
    } else if (wb_dtype_size(dtype) == 4) {
        uint32_t single;
        memcpy(&single, at, sizeof single);
        bits = single;
    } else
        memcpy(&bits, at, sizeof bits);
    if ((bits & of[dtype].exponent) != of[dtype].exponent) return FINITE;
    return bits & of[dtype].fraction ? NOT_A_NUMBER : INFINITE;
}

/* bytes: those of the first element. */
static void search(const wb_array *x, const wb_layout *layout, const char *bytes, found *f) {
    const int64_t size = (int64_t)wb_dtype_size((wb_dtype)x->dtype), count = wb_count(x);
    int64_t index[WB_MAX_DIMS] = {0}, place = 0;
    for (int64_t i = 0; i < count && f->what != NOT_A_NUMBER; i++) {
        const badness what = judge(bytes + place * size, (wb_dtype)x->dtype);
        if (what > f->what) f->what = what, memcpy(f->index, index, sizeof index);
        for (int d = 0; d < x->ndim; d++) {
            place += layout->strides[d];
            if (++index[d] < x->sizes[d]) break;
            place -= layout->strides[d] * x->sizes[d];
            index[d] = 0;
        }
    }
}

/* What lies between the first and the last element is read, too. Finite where nothing can be
 * read. */
static found look_into(const wb_array *x) {
    found f = {FINITE, {0}};
    const int64_t size = (int64_t)wb_dtype_size((wb_dtype)x->dtype);
    const wb_layout layout = wb_layout_of(x);
    int64_t first = 0, last = 0;
    if (wb_is_lost(x) || wb_count(x) == 0) return f;
    for (int d = 0; d < x->ndim; d++) {
        const int64_t reach = (x->sizes[d] - 1) * layout.strides[d];
        *(reach < 0 ? &first : &last) += reach;
    }
    const size_t bytes = (size_t)((last - first + 1) * size);
    char *copy = wb_alloc(bytes);
    if (copy && wb_buffer_read(x->buffer, (x->offset + first) * size, copy, bytes) == WB_OK)
        search(x, &layout, copy - first * size, &f);
    wb_release(copy);
    return f;
}

static bool number_of(const wb_array *x, double *number) {
    if (x->op != WB_OP_late) return wb_constant_value(x, number);
    *number = wb_value_of(x->late[0]);
    return true;
}

static found look_at(const wb_array *x) {
    double number;
    if (!wb_dtype_is_float((wb_dtype)x->dtype)) return (found){FINITE, {0}};
    if (x->buffer) return look_into(x);
    if (!number_of(x, &number)) return (found){FINITE, {0}};
    return (found){number - number == 0 ? FINITE : number == number ? INFINITE : NOT_A_NUMBER, {0}};
}

/* ---- the way back ---- */

/* The worst operand, or NULL: all are finite. */
static const wb_array *worst_operand(const wb_array *x, found *f) {
    const wb_array *worst = NULL, *maker = wb_maker_of(x);
    *f = (found){FINITE, {0}};
    for (int i = 0; i < maker->ninputs; i++) {
        const found of = look_at(maker->inputs[i]);
        if (of.what > f->what) *f = of, worst = maker->inputs[i];
    }
    return worst;
}

/* "forward, Dense(2 => 3), layer 1 of Chain: matmul" */
typedef char place_text[600];

static const char *place_of(const wb_array *x, place_text text) {
    const char *layer = wb_layer_of(x);
    (void)snprintf(text, sizeof(place_text), "%s, %s%s%s", wb_direction_of(x), layer,
                   *layer ? ": " : "", wb_operation_of(x));
    return text;
}

static const char *name_of(badness what) { return what == INFINITE ? "an infinity" : "NaN"; }

/* x made the bad value from finite operands. */
static wb_status fail_at(const wb_array *x, const found *f) {
    place_text place;
    return wb_fail(WB_ERROR_NUMBER, "nan: %s gives %s at %s of %s, and its operands are finite",
                   place_of(x, place), name_of(f->what), wb_sizes_text(x->ndim, f->index),
                   wb_text_of(x));
}

/* leaf was bad before the plan; reader is the operation that read it or, if an infinity became NaN
 * later, the one that made the NaN. */
static wb_status fail_before(const wb_array *reader, const wb_array *leaf, const found *f) {
    place_text place;
    return wb_fail(WB_ERROR_NUMBER, "nan: %s gives %s: the input %s already has %s at %s",
                   place_of(reader, place), name_of(look_at(reader).what), wb_text_of(leaf),
                   name_of(f->what), wb_sizes_text(leaf->ndim, f->index));
}

/* The search follows a NaN first, and infinities to where they come from. */
static wb_status blame(const wb_array *root, found f) {
    const wb_array *x = root, *reader = NULL, *turned = NULL;
    for (;;) {
        found of;
        const wb_array *next = worst_operand(x, &of);
        if (!next) break;
        if (!turned && f.what == NOT_A_NUMBER && of.what == INFINITE) turned = x;
        reader = x, x = next, f = of;
    }
    const bool is_given = wb_maker_of(x)->ninputs == 0;
    return is_given && reader ? fail_before(turned ? turned : reader, x, &f) : fail_at(x, &f);
}

wb_status wb_numbers_check(const wb_tape *tape) {
    for (int64_t i = 0; i < tape->count; i++) {
        const wb_array *x = tape->at[i].node;
        if (!(tape->at[i].marks & WB_TAPE_ROOT) || !x->buffer) continue;
        const found f = look_at(x);
        if (f.what != FINITE) return blame(x, f);
    }
    return WB_OK;
}
