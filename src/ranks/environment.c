/* Where a process stands in its group, from the variables of who started it. */
#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "ranks/transport.h"

enum { RANK, SIZE, LOCAL_RANK, LOCAL_SIZE, NUMBERS };
enum { MOST = (1 << 20) - 1 }; /* of a number */

/* One row for each starter, the first whose size is set counts. Sources: Open MPI's FAQ "running",
 * section on environment variables; MPICH's Hydra wiki; torchrun's documentation. */
static const struct {
    const char *starter, *names[NUMBERS];
} starters[] = {
    {"weber run", {"WEBER_RANK", "WEBER_SIZE", "WEBER_LOCAL_RANK", "WEBER_LOCAL_SIZE"}},
    {"Open MPI",
     {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
      "OMPI_COMM_WORLD_LOCAL_SIZE"}},
    {"MPICH", {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"}},
    {"Open MPI", /* srun --mpi=pmix */
     {"PMIX_RANK", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"}},
};

/* False with an error recorded if the variable is set, and is no number from 0 to MOST. */
static bool read_number(const char *name, bool *is_set, int *number) {
    const char *text = getenv(name);
    *is_set = text && *text;
    if (!*is_set) return true;
    char *end;
    errno = 0;
    const long value = strtol(text, &end, 10);
    if (!errno && !*end && value >= 0 && value <= MOST) {
        *number = (int)value;
        return true;
    }
    (void)wb_fail(WB_ERROR_ARGUMENT,
                  "distributed: %s must be a whole number from 0 to %d, got \"%s\"", name, MOST,
                  text);
    return false;
}

static bool check(const wb_seat *l) {
    if (l->size >= 1 && l->rank < l->size && l->local_size >= 1 && l->local_rank < l->local_size)
        return true;
    (void)wb_fail(WB_ERROR_ARGUMENT,
                  "distributed: the environment of %s says rank %d of %d, and %d of %d on this "
                  "machine; a rank must be below the number of ranks",
                  l->starter, l->rank, l->size, l->local_rank, l->local_size);
    return false;
}

/* Under srun, what a row has no variable for. */
static bool read_slurm(wb_seat *seat) {
    bool has_rank, has_size;
    int rank = 0, size = 0;
    if (!read_number("SLURM_LOCALID", &has_rank, &rank) ||
        !read_number("SLURM_NTASKS_PER_NODE", &has_size, &size))
        return false;
    if (has_rank) seat->local_rank = rank;
    if (has_rank && has_size) seat->local_size = size;
    return true;
}

/* srun without MPI: each of its tasks would be a group of one. */
static bool check_tasks(void) {
    const char *step = getenv("SLURM_STEP_ID");
    bool has_tasks;
    int tasks = 1;
    if (!step || !*step) return true; /* a batch script's shell, or no Slurm */
    if (!read_number("SLURM_STEP_NUM_TASKS", &has_tasks, &tasks)) return false;
    if (tasks <= 1) return true;
    (void)wb_fail(WB_ERROR_UNSUPPORTED,
                  "distributed: srun started %d tasks without MPI, which would be %d groups of "
                  "one; use srun --mpi=pmix (Open MPI) or --mpi=pmi2 (MPICH)",
                  tasks, tasks);
    return false;
}

/* Of weber run's own: all or none. */
static bool check_run(const bool *is_set) {
    const char *run = getenv("WEBER_RUN");
    const bool has_run = run && *run;
    if (has_run == is_set[RANK] && has_run == is_set[SIZE]) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT,
                  "distributed: WEBER_RUN, WEBER_RANK and WEBER_SIZE must be set together, as by "
                  "weber run, but %s is not set",
                  !has_run        ? "WEBER_RUN"
                  : !is_set[RANK] ? "WEBER_RANK"
                                  : "WEBER_SIZE");
    return false;
}

bool wb_timeout_read(double *seconds) {
    const char *text = getenv("WEBER_TIMEOUT");
    *seconds = 600;
    if (!text || !*text) return true;
    char *end;
    *seconds = strtod(text, &end);
    if (!*end && *seconds > 0) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT,
                  "distributed: WEBER_TIMEOUT must be a number of seconds above 0, got \"%s\"",
                  text);
    return false;
}

bool wb_seat_read(wb_seat *seat) {
    *seat = (wb_seat){.size = 1, .local_size = 1};
    for (size_t i = 0; i < sizeof starters / sizeof *starters; i++) {
        int numbers[NUMBERS] = {0};
        bool is_set[NUMBERS];
        for (int k = 0; k < NUMBERS; k++)
            if (!read_number(starters[i].names[k], &is_set[k], &numbers[k])) return false;
        if (i == 0 && !check_run(is_set)) return false;
        if (!is_set[SIZE] || !is_set[RANK]) continue;
        seat->starter = starters[i].starter;
        seat->run = i == 0 ? getenv("WEBER_RUN") : NULL;
        seat->rank = numbers[RANK], seat->size = numbers[SIZE];
        seat->local_rank = is_set[LOCAL_RANK] ? numbers[LOCAL_RANK] : seat->rank;
        seat->local_size = is_set[LOCAL_SIZE] ? numbers[LOCAL_SIZE] : seat->size;
        if (!is_set[LOCAL_RANK] && !read_slurm(seat)) return false;
        return check(seat);
    }
    return check_tasks();
}
