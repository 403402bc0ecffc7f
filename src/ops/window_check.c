/* Examples of the window operations for the gradient checker. */
#include "ops/check.h"

#define DESC(...)  ((wb_window_desc){.start_ = 0, __VA_ARGS__})
#define SIZES(...) ((const int64_t[]){__VA_ARGS__})

CHECK(conv_forward,
      SQUARE(wb_conv_op(SQUARE(x), y, .stride = {2, 1}, .pad = WB_EACH(1, 0), .pad_more = {1, 0},
                        .groups = 2)),
      2, {{4, {4, 3, 2, 2}}, {4, {2, 2, 1, 4}}}, -1.5, 1.5)
CHECK(conv_data, SQUARE(wb_conv_data_make(SQUARE(x), y, SIZES(5, 1, 2), DESC(.dilation = {2}))), 2,
      {{3, {3, 2, 2}}, {3, {2, 1, 2}}}, -1.5, 1.5)
CHECK(conv_filter,
      SQUARE(wb_conv_filter_make(SQUARE(x), y, SIZES(2, 1, 2), DESC(.cross_correlation = true))), 2,
      {{3, {4, 1, 2}}, {3, {3, 2, 2}}}, -1.5, 1.5)
CHECK(maxpool, SQUARE(wb_maxpool_op(SQUARE(x), .kernel = {2, 2}, .stride = {1, 2})), 1,
      {{4, {3, 4, 1, 2}}}, 0.2, 3)
CHECK(pool_scatter, SQUARE(wb_maxpool_op(MUL(x, x), .kernel = {2})), 1, {{3, {4, 2, 1}}}, 0.2, 3)
CHECK(pool_gather, wb_maxpool_op(MUL(x, SQUARE(x)), .kernel = {2}, .pad = {1}), 1, {{3, {4, 2, 1}}},
      0.2, 3)
CHECK(meanpool, SQUARE(wb_meanpool_op(SQUARE(x), .kernel = {2, 2}, .pad = WB_EACH(1, 0))), 1,
      {{4, {3, 4, 1, 2}}}, -2, 2)
CHECK(meanpool_data, wb_meanpool_op(MUL(x, SQUARE(x)), .kernel = {2}, .stride = {1}), 1,
      {{3, {4, 2, 1}}}, -2, 2)
CHECK(unfold, SQUARE(wb_unfold(SQUARE(x), .kernel = {2, 2}, .pad = WB_EACH(1, 0))), 1,
      {{4, {3, 3, 2, 1}}}, -2, 2)
CHECK(fold, SQUARE(wb_fold_make(SQUARE(x), 3, SIZES(4, 2, 2), DESC(.kernel = {2}))), 1,
      {{3, {3, 4, 2}}}, -2, 2)
