/* All inner loops of the convolutions for one element type; undefines the type at the end. */
#include "conv_box.h"

/* they use the box */
#include "conv_block.h"
#include "conv_piece.h"
#include "depthwise_lanes.h"
#include "depthwise_planes.h"

#undef REAL
#undef VEC
#undef LANES
#undef LOAD
#undef STORE
#undef LOAD_PART
#undef STORE_PART
#undef SET
#undef SUM
#undef ADD_BY_LANE
#undef TRANSPOSE
#undef TYPE
