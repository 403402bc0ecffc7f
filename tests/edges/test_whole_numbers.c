/* C numbers beside arrays of whole numbers, and types that results have. */
#include <weber/gradient.h>
#include <weber/layers.h>

#include "support/support.h"

static wb_array *dropped(wb_array *x, double p, bool training) {
    wb_layer *layer = wb_dropout(p);
    const bool before = wb_training(training);
    wb_array *y = wb_apply(layer, x);
    (void)wb_training(before);
    wb_free(layer);
    return y;
}

#define EDGES "edges/whole_numbers.def"
#include "edges/run.h"

int main(void) { return run_in_all_modes(run_edges); }
