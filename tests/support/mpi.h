/* Programs that the launchers of MPI start, in a scene or a test of their own. */
#ifndef WB_TESTS_MPI_H
#define WB_TESTS_MPI_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/stage.h"

#define OPEN_MPI "mpirun.openmpi --oversubscribe --bind-to none"
#define MPICH    "mpirun.mpich"

/* The launcher, and Weber's transport for it. */
static inline bool has_mpi(const char *command, const char *plugin) {
    char text[256];
    (void)snprintf(text, sizeof text, "command -v %s >/dev/null", command);
    if (system(text) != 0) return false;
    (void)snprintf(text, sizeof text, "weber/transport_%s.so", plugin);
    return access(stage_build(text), F_OK) == 0;
}

/* What the launchers and Weber read. What MPI's libraries keep to their end is not ours to free. */
static inline void set_mpi_environment(void) {
    const char *options = getenv("ASAN_OPTIONS");
    char text[512];
    (void)snprintf(text, sizeof text, "%s:detect_leaks=0", options ? options : "");
    (void)setenv("ASAN_OPTIONS", options ? text : text + 1, 1);
    (void)setenv("WEBER_PLUGIN_PATH", stage_build("weber"), 1);
    (void)setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    (void)setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
}

#endif
