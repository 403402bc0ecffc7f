#ifndef WEBER_TOOL_RUN_MPI_H
#define WEBER_TOOL_RUN_MPI_H

typedef struct mpi_run {
    int count, restarts;
    const char *timeout; /* or NULL */
    const char *hosts;   /* with commas between them; NULL: this machine, or the batch system's */
    char *const *command;
} mpi_run;

/* The exit status. */
int tool_run_by_mpi(const mpi_run *r);

#endif
