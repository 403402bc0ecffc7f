#include "support/functions.h"

unary_fn *const unary[WB_OP_COUNT] = {
#define WB_UNARY(name, ...) [WB_OP_##name] = wb_##name,
#define WB_MACRO(name, ...) [WB_OP_##name] = wb_##name,
#include <weber/ops.def>
};

binary_fn *const binary[WB_OP_COUNT] = {
#define WB_BINARY(name, ...) [WB_OP_##name] = wb_##name,
#include <weber/ops.def>
};
