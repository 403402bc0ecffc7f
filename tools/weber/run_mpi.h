/* What run.c uses of run_mpi.c: a run by the launcher of MPI. */
#ifndef WEBER_TOOL_RUN_MPI_H
#define WEBER_TOOL_RUN_MPI_H

#include <stdbool.h>

typedef struct mpi_run {
    int count, restarts;
    const char *timeout; /* or NULL */
    const char *hosts;   /* with commas between them; NULL: this machine, or the batch system's */
    char *const *command;
} mpi_run;

/* A new WEBER_SECRET, by which the ranks of a run know one another: in the environment, which the
 * launchers hand on, and on no command line. False with errno set. */
bool tool_make_secret(void);

/* The exit status. */
int tool_run_by_mpi(const mpi_run *r);

#endif
