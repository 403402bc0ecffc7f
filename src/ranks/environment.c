/* A process's rank in its group, from the variables of the program that started it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "ranks/transport.h"

enum { RANK, SIZE, LOCAL_RANK, LOCAL_SIZE, NUMBERS };
enum { MOST = (1 << 20) - 1 }; /* of a number */

/* What a starter tells a process. Sources: Open MPI's FAQ "running", section on environment
 * variables; MPICH's Hydra wiki; pals.h of HPE's PALS (cray-pals), which sets PMI's variables, too;
 * srun(1); the manual of jsrun (IBM JSM); flux-environment(7); torchrun's documentation. */
typedef struct starter {
    const char *name;
    const char *variables[NUMBERS]; /* NULL: none says it */
    const char *job;                /* one that is another one in each job; or NULL */
    const char *use;                /* if no group can be joined by it: what to use */
} starter;

#define USE_WEBER "use weber run -n N (one machine), mpiexec or srun --mpi=... (several)"

/* The first row whose rank and size are set counts; for starters that cannot be joined the rank is
 * enough. */
static const starter starters[] = {
    {"weber run",
     {"WEBER_RANK", "WEBER_SIZE", "WEBER_LOCAL_RANK", "WEBER_LOCAL_SIZE"},
     "WEBER_RUN",
     NULL},
    {"Open MPI",
     {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
      "OMPI_COMM_WORLD_LOCAL_SIZE"},
     "PMIX_NAMESPACE",
     NULL},
    {"Open MPI", /* jsrun */
     {"JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_LOCAL_RANK",
      "JSM_NAMESPACE_LOCAL_SIZE"},
     "PMIX_NAMESPACE",
     NULL},
    {"MPICH", {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"}, "PMI_FD", NULL},
    {"Open MPI", /* srun --mpi=pmix */
     {"PMIX_RANK", "SLURM_STEP_NUM_TASKS"},
     "PMIX_NAMESPACE",
     NULL},
    {"Open MPI", /* flux run -o pmi=pmix */
     {"PMIX_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID"},
     "PMIX_NAMESPACE",
     NULL},
    {"a launcher of PMIx", {"PMIX_RANK"}, "PMIX_NAMESPACE", USE_WEBER},
    {"Flux",
     {"FLUX_TASK_RANK", "FLUX_JOB_SIZE"},
     "FLUX_JOB_ID",
     "use flux run -o pmi=simple (MPICH) or -o pmi=pmix (Open MPI)"},
    {"PALS", {"PALS_RANKID"}, "PALS_APID", USE_WEBER},
    {"torchrun", {"RANK", "WORLD_SIZE"}, "MASTER_ADDR", USE_WEBER},
};
enum { STARTERS = sizeof starters / sizeof *starters };

/* False with an error recorded if the variable is set, and is not a number from 0 to MOST. */
static bool read_number(const char *name, bool *is_set, int *number) {
    const char *text = name ? getenv(name) : NULL;
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

/* The number of tasks of node `node` in "2(x3),1": two on each of three nodes, one on the next. 0:
 * it is not there. */
static int tasks_of_node(const char *layout, int node) {
    while (*layout) {
        char *end;
        const long tasks = strtol(layout, &end, 10);
        long nodes = 1;
        if (end == layout) return 0;
        if (strncmp(end, "(x", 2) == 0) nodes = strtol(end + 2, &end, 10), end += *end == ')';
        if (node < nodes) return tasks > 0 && tasks <= MOST ? (int)tasks : 0;
        node -= (int)(nodes > 0 && nodes <= MOST ? nodes : 1);
        layout = end + (*end == ',');
        if (layout == end && *end) return 0;
    }
    return 0;
}

/* The layout of the step, which need not be that of the job (SLURM_NTASKS_PER_NODE). */
static bool read_slurm_size(wb_seat *seat) {
    const char *layout = getenv("SLURM_STEP_TASKS_PER_NODE");
    bool has_node, has_size;
    int node = 0, size = 0;
    if (!read_number("SLURM_NODEID", &has_node, &node) ||
        !read_number("SLURM_NTASKS_PER_NODE", &has_size, &size))
        return false;
    const int tasks = layout && has_node ? tasks_of_node(layout, node) : 0;
    if (tasks || has_size) seat->local_size = tasks ? tasks : size;
    return true;
}

/* Flux says how many nodes there are; its tasks are shared out among them. */
static bool read_flux_size(wb_seat *seat) {
    bool has_nodes;
    int nodes = 0;
    if (!read_number("FLUX_JOB_NNODES", &has_nodes, &nodes)) return false;
    if (has_nodes && nodes > 0) seat->local_size = (seat->size + nodes - 1) / nodes;
    return true;
}

/* What a row has no variable for, or an empty one. */
static bool read_places(wb_seat *seat, bool has_rank, bool has_size) {
    static const char *const ranks[] = {"PMI_LOCAL_RANK", "SLURM_LOCALID", "FLUX_TASK_LOCAL_ID"};
    bool is_set = has_rank;
    for (int i = 0; i < 3 && !is_set; i++)
        if (!read_number(ranks[i], &is_set, &seat->local_rank)) return false;
    if (has_size || !is_set) return true;
    if (!read_number("PMI_LOCAL_SIZE", &has_size, &seat->local_size)) return false;
    return has_size || (read_slurm_size(seat) && read_flux_size(seat));
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

/* weber run's variables must be set all or none. */
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

/* ---- processes that a rank has started ---- */

/* What a row says of this process; "" if it says nothing. */
static void identity_of(const starter *row, char *text, size_t size) {
    const char *rank = getenv(row->variables[RANK]), *job = row->job ? getenv(row->job) : NULL;
    text[0] = 0;
    if (rank && *rank)
        (void)snprintf(text, size, ";%s=%s;%s", row->variables[RANK], rank, job ? job : "");
}

enum { IDENTITY_BYTES = 160, MARK_BYTES = 24 + STARTERS * IDENTITY_BYTES };

/* Processes that a rank starts inherit the variables of its starter. So a rank marks them as
 * used. */
void wb_seat_mark(void) {
    char text[MARK_BYTES];
    int used = snprintf(text, sizeof text, "%ld", (long)getpid());
    for (int i = 0; i < STARTERS; i++) {
        char identity[IDENTITY_BYTES];
        identity_of(&starters[i], identity, sizeof identity - 1);
        used += snprintf(text + used, sizeof text - (size_t)used, "%s", identity);
    }
    (void)snprintf(text + used, sizeof text - (size_t)used, ";");
    (void)setenv("WEBER_JOINED", text, 1);
}

/* True if the variables of the row belong to the rank that has started this process. */
static bool is_inherited(const starter *row) {
    const char *mark = getenv("WEBER_JOINED");
    char identity[IDENTITY_BYTES];
    identity_of(row, identity, sizeof identity - 1);
    if (!mark || !identity[0] || strtol(mark, NULL, 10) == (long)getpid()) return false;
    (void)strcat(identity, ";");
    return strstr(mark, identity) != NULL;
}

/* ---- reading ---- */

/* Other programs use these names, too (RANK), so a value that is not a number is ignored: -1. */
static int loose_number(const char *name) {
    const char *text = name ? getenv(name) : NULL;
    char *end;
    const long value = text && *text ? strtol(text, &end, 10) : -1;
    return value >= 0 && value <= MOST && !*end ? (int)value : -1;
}

/* Fails if the row's starter has started this process as one of several ranks, or of an unknown
 * number. */
static wb_status refuse(const starter *row) {
    const int rank = loose_number(row->variables[RANK]), size = loose_number(row->variables[SIZE]);
    if (rank < 0 || (row->variables[SIZE] && size <= 1)) return WB_OK;
    char of[32] = "";
    if (size > 0) (void)snprintf(of, sizeof of, " of %d", size);
    return wb_fail(WB_ERROR_UNSUPPORTED,
                   "distributed: %s started this process as rank %d%s (%s), but gives Weber no way "
                   "to join the other ranks; %s",
                   row->name, rank, of, row->variables[RANK], row->use);
}

static bool take_seat(const starter *row, const bool *is_set, const int *numbers, wb_seat *seat) {
    seat->starter = row->name;
    seat->run = row == starters ? getenv("WEBER_RUN") : NULL;
    seat->rank = numbers[RANK], seat->size = numbers[SIZE];
    seat->local_rank = is_set[LOCAL_RANK] ? numbers[LOCAL_RANK] : seat->rank;
    seat->local_size = is_set[LOCAL_SIZE] ? numbers[LOCAL_SIZE] : seat->size;
    return read_places(seat, is_set[LOCAL_RANK], is_set[LOCAL_SIZE]) && check(seat);
}

bool wb_seat_read(wb_seat *seat) {
    *seat = (wb_seat){.size = 1, .local_size = 1};
    bool is_child = false;
    for (int i = 0; i < STARTERS; i++) {
        const starter *row = &starters[i];
        int numbers[NUMBERS] = {0};
        bool is_set[NUMBERS];
        if (is_inherited(row)) {
            is_child = true;
            continue;
        }
        if (row->use) {
            if (refuse(row) != WB_OK) return false;
            continue;
        }
        for (int k = 0; k < NUMBERS; k++)
            if (!read_number(row->variables[k], &is_set[k], &numbers[k])) return false;
        if (i == 0 && !check_run(is_set)) return false;
        if (is_set[SIZE] && is_set[RANK]) return take_seat(row, is_set, numbers, seat);
    }
    return is_child || check_tasks();
}
