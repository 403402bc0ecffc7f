/* Divides the cores of a machine among its ranks, which would compete for them otherwise. */
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "platform/threads.h"
#include "ranks/transport.h"

/* Open MPI binds each process to one core if there are few, unless the user asks for another
 * policy. */
static bool is_bound_unasked(const wb_seat *seat) {
    return seat->starter && strcmp(seat->starter, "Open MPI") == 0 &&
           getenv("OMPI_MCA_orte_bound_at_launch") && !getenv("OMPI_MCA_hwloc_base_binding_policy");
}

void wb_ranks_share_cores(const wb_seat *seat) {
    const char *asked = getenv("WEBER_NUM_THREADS");
    const bool is_default = wb_threads() == wb_platform_cores();
    const bool was_bound = is_bound_unasked(seat);
    if (was_bound) wb_platform_use_all_cores();
    if ((seat->local_size == 1 && !was_bound) || (asked && *asked) || !is_default) return;
    const int cores = wb_platform_cores();
    wb_set_threads(cores > seat->local_size ? cores / seat->local_size : 1);
}
