/* Matrix products of one instruction set, attention and minimal filtering, which are made of their
 * tiles: the same text for float and for double. */
#include <math.h>
#include <stdbool.h>

#include "attention.h"
#include "gemm_kernel.h"
#include "math_functions.h"
#include "simd.h"
#include "transpose.h"
#include "winograd.h"

#define MULTIPLY_ADD(sum, a, b) ((sum) + (a) * (b))

#define REAL        float
#define TYPE(name)  name##_f32
#define VEC         wb_f32v
#define LANES       WB_F32_LANES
#define LOAD        wb_f32v_load
#define LOAD_FOUR   wb_f32v_load_four
#define LOAD_PART   wb_f32v_load_part
#define LOAD_EDGE   wb_f32v_load_edge
#define STORE       wb_f32v_store
#define STORE_PART  wb_f32v_store_part
#define SET         wb_f32v_set
#define SUM         wb_f32v_sum
#define TOTAL       wb_f32v_total
#define LARGEST     wb_f32v_largest
#define EXP         k_exp_f32
#define EXP_LOW     k_exp_low_f32
#define ADD_BY_LANE wb_f32v_add_by_lane
#define TRANSPOSE   wb_f32_transpose
#include "gemm_piece.h"
/* of its tiles: */
#include "attention_real.h"
/* and of these: */
#include "attention_back.h"
#include "winograd_real.h"

void WB_ISA_NAME(gemm_f32)(const wb_gemm_piece *piece) { piece_run_f32(piece); }
void WB_ISA_NAME(attention_f32)(const wb_attention_piece *piece) { attention_run_f32(piece); }
void WB_ISA_NAME(attention_back_f32)(const wb_attention_group *g) { attention_back_run_f32(g); }

#undef REAL
#undef TYPE
#undef VEC
#undef LANES
#undef LOAD
#undef LOAD_FOUR
#undef LOAD_PART
#undef LOAD_EDGE
#undef STORE
#undef STORE_PART
#undef SET
#undef SUM
#undef TOTAL
#undef LARGEST
#undef EXP
#undef EXP_LOW
#undef ADD_BY_LANE
#undef TRANSPOSE

#define REAL        double
#define TYPE(name)  name##_f64
#define VEC         wb_f64v
#define LANES       WB_F64_LANES
#define LOAD        wb_f64v_load
#define LOAD_FOUR   wb_f64v_load_four
#define LOAD_PART   wb_f64v_load_part
#define LOAD_EDGE   wb_f64v_load_edge
#define STORE       wb_f64v_store
#define STORE_PART  wb_f64v_store_part
#define SET         wb_f64v_set
#define SUM         wb_f64v_sum
#define TOTAL       wb_f64v_total
#define LARGEST     wb_f64v_largest
#define EXP         k_exp_f64
#define EXP_LOW     k_exp_f64
#define ADD_BY_LANE wb_f64v_add_by_lane
#define TRANSPOSE   wb_f64_transpose
#include "gemm_piece.h"
/* of its tiles: */
#include "attention_real.h"
/* and of these: */
#include "attention_back.h"
#include "winograd_real.h"

void WB_ISA_NAME(gemm_f64)(const wb_gemm_piece *piece) { piece_run_f64(piece); }
void WB_ISA_NAME(attention_f64)(const wb_attention_piece *piece) { attention_run_f64(piece); }
void WB_ISA_NAME(attention_back_f64)(const wb_attention_group *g) { attention_back_run_f64(g); }
