/* Sums and products of whole numbers. */
#define EDGES "edges/sums.def"
#include "edges/run.h"

int main(void) { return run_in_all_modes(run_edges); }
