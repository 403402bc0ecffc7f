/* The inner loops of the convolutions; conv_plan.h says how they are cut. */
#include "../conv_plan.h"
#include "../depthwise.h"

#include "transpose.h"

/* most output channels of a tile: with three vectors of positions they fill the registers */
enum { TILE_COLUMNS = WB_VECTOR_REGISTERS == 32 ? 8 : 4 };

/* most rows of a depthwise one at a time: planes of 56, 28, 14 and 7 rows are usual */
enum { MOST_ROWS = WB_VECTOR_REGISTERS == 32 ? 7 : 4 };

#define REAL        float
#define VEC         wb_f32v
#define LANES       WB_F32_LANES
#define LOAD        wb_f32v_load
#define STORE       wb_f32v_store
#define LOAD_PART   wb_f32v_load_part
#define STORE_PART  wb_f32v_store_part
#define SET         wb_f32v_set
#define ADD_BY_LANE wb_f32v_add_by_lane
#define SUM         wb_f32v_sum
#define TRANSPOSE   wb_f32_transpose
#define TYPE(name)  name##_f32
#include "conv_real.h"

#define REAL        double
#define VEC         wb_f64v
#define LANES       WB_F64_LANES
#define LOAD        wb_f64v_load
#define STORE       wb_f64v_store
#define LOAD_PART   wb_f64v_load_part
#define STORE_PART  wb_f64v_store_part
#define SET         wb_f64v_set
#define ADD_BY_LANE wb_f64v_add_by_lane
#define SUM         wb_f64v_sum
#define TRANSPOSE   wb_f64_transpose
#define TYPE(name)  name##_f64
#include "conv_real.h"
