/* What formulas and derivatives give where their parts are infinite. */
#include <weber/losses.h>

#define EDGES "edges/limits.def"
#include "edges/run.h"

int main(void) { return run_in_all_modes(run_edges); }
