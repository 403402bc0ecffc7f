/* The inner loops of the pools, of unfold and of fold, one plane at a time. */
#include "../window_plane.h"

#include "../simd.h"
#include "../vectorise.h"

#define REAL       float
#define TYPE(name) name##_f32
#include "window_real.h"

#define REAL       double
#define TYPE(name) name##_f64
#include "window_real.h"
