/* Cores for the ranks of one machine, which would fight for them otherwise. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "ranks/transport.h"

/* Open MPI binds each of few processes to one core, unless its user asks for another policy. */
static bool is_bound_unasked(const wb_seat *seat) {
    return seat->starter && strcmp(seat->starter, "Open MPI") == 0 &&
           getenv("OMPI_MCA_orte_bound_at_launch") && !getenv("OMPI_MCA_hwloc_base_binding_policy");
}

static void unbind(void) {
    cpu_set_t all;
    memset(&all, 0xff, sizeof all);
    (void)sched_setaffinity(0, sizeof all, &all); /* the system leaves out what is not there */
}

static int usable(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

void wb_ranks_share_cores(const wb_seat *seat) {
    const char *asked = getenv("WEBER_NUM_THREADS");
    const bool is_default = wb_cpu_threads() == usable();
    const bool was_bound = is_bound_unasked(seat);
    if (was_bound) unbind();
    if ((seat->local_size == 1 && !was_bound) || (asked && *asked) || !is_default) return;
    const int cores = usable();
    wb_cpu_set_threads(cores > seat->local_size ? cores / seat->local_size : 1);
}
