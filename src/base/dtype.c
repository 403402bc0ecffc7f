/* The element types: name, size, whether they are floats, and which type an operation on two of
 * them gives. As in Julia, an integer and a float give the float's type, even i64 and f16. */
#include <weber/dtype.h>

static const struct {
    const char *name;
    size_t size;
} rows[WB_DTYPE_COUNT] = {
#define X(NAME, text, bytes, type) [WB_##NAME] = {#text, bytes},
    WB_DTYPE_LIST(X)
#undef X
};

const char *wb_dtype_name(wb_dtype dtype) {
    return (unsigned)dtype < WB_DTYPE_COUNT ? rows[dtype].name : "unknown";
}

size_t wb_dtype_size(wb_dtype dtype) {
    return (unsigned)dtype < WB_DTYPE_COUNT ? rows[dtype].size : 0;
}

bool wb_dtype_is_float(wb_dtype dtype) {
    return dtype == WB_F32 || dtype == WB_F64 || dtype == WB_F16 || dtype == WB_BF16;
}

/* Julia's rules: bool with any type gives that type, two integers the wider one, an integer and a
 * float the float; f16 and bf16 give f32. */
wb_dtype wb_promote(wb_dtype a, wb_dtype b) {
    enum {
        F = WB_F32,
        D = WB_F64,
        H = WB_F16,
        B = WB_BF16,
        I = WB_I32,
        L = WB_I64,
        U = WB_U8,
        O = WB_BOOL
    };
    static const uint8_t table[WB_DTYPE_COUNT][WB_DTYPE_COUNT] = {
        /*             f32 f64 f16 bf16 i32 i64 u8 bool */
        [WB_F32] = {F, D, F, F, F, F, F, F}, [WB_F64] = {D, D, D, D, D, D, D, D},
        [WB_F16] = {F, D, H, F, H, H, H, H}, [WB_BF16] = {F, D, F, B, B, B, B, B},
        [WB_I32] = {F, D, H, B, I, L, I, I}, [WB_I64] = {F, D, H, B, L, L, L, L},
        [WB_U8] = {F, D, H, B, I, L, U, U},  [WB_BOOL] = {F, D, H, B, I, L, U, O},
    };
    const bool are_types = (unsigned)a < WB_DTYPE_COUNT && (unsigned)b < WB_DTYPE_COUNT;
    return are_types ? (wb_dtype)table[a][b] : WB_DTYPE_COUNT;
}
