/* C numbers beside arrays of whole numbers, and types of results. */
#define EDGES "edges/whole_numbers.def"
#include "edges/run.h"

int main(void) { return run_in_all_modes(run_edges); }
