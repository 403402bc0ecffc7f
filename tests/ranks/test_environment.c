/* Where a process stands, by what launchers tell it: those that can be joined, those that cannot,
 * and a program that a rank starts. */
#include <string.h>

#include <weber.h>

#include "ranks/transport.h"
#include "support/mpi.h"
#include "support/ranks.h"
#include "support/support.h"

typedef struct row {
    const char *name;
    const char *variables[6][2];
    int rank, size, local_rank, local_size;
    const char *says; /* an error instead */
} row;

static const row rows[] = {
    {"nobody", {{NULL}}, 0, 1, 0, 1, NULL},
    {"srun --mpi=pmix, as many tasks on each node",
     {{"PMIX_RANK", "5"},
      {"SLURM_STEP_NUM_TASKS", "8"},
      {"SLURM_LOCALID", "1"},
      {"SLURM_NODEID", "1"},
      {"SLURM_STEP_TASKS_PER_NODE", "4(x2)"}},
     5,
     8,
     1,
     4,
     NULL},
    {"srun --mpi=pmix, without --ntasks-per-node",
     {{"PMIX_RANK", "6"},
      {"SLURM_STEP_NUM_TASKS", "7"},
      {"SLURM_LOCALID", "0"},
      {"SLURM_NODEID", "3"},
      {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"}},
     6,
     7,
     0,
     1,
     NULL},
    {"srun --mpi=pmi2: the step is not the job",
     {{"PMI_RANK", "2"},
      {"PMI_SIZE", "4"},
      {"SLURM_LOCALID", "0"},
      {"SLURM_NODEID", "1"},
      {"SLURM_STEP_TASKS_PER_NODE", "2,2"},
      {"SLURM_NTASKS_PER_NODE", "8"}},
     2,
     4,
     0,
     2,
     NULL},
    {"a layout that is none",
     {{"PMI_RANK", "2"},
      {"PMI_SIZE", "4"},
      {"SLURM_LOCALID", "0"},
      {"SLURM_NODEID", "1"},
      {"SLURM_STEP_TASKS_PER_NODE", "2(x,(x9"},
      {"SLURM_NTASKS_PER_NODE", "2"}},
     2,
     4,
     0,
     2,
     NULL},
    {"jsrun",
     {{"JSM_NAMESPACE_RANK", "3"},
      {"JSM_NAMESPACE_SIZE", "4"},
      {"JSM_NAMESPACE_LOCAL_RANK", "1"},
      {"JSM_NAMESPACE_LOCAL_SIZE", "2"},
      {"PMIX_RANK", "3"}},
     3,
     4,
     1,
     2,
     NULL},
    {"PALS with PMI",
     {{"PALS_RANKID", "3"},
      {"PMI_RANK", "3"},
      {"PMI_SIZE", "4"},
      {"PMI_LOCAL_RANK", "1"},
      {"PMI_LOCAL_SIZE", "2"}},
     3,
     4,
     1,
     2,
     NULL},
    {"Flux with PMI",
     {{"FLUX_TASK_RANK", "3"},
      {"FLUX_JOB_SIZE", "4"},
      {"FLUX_TASK_LOCAL_ID", "1"},
      {"FLUX_JOB_NNODES", "2"},
      {"PMI_RANK", "3"},
      {"PMI_SIZE", "4"}},
     3,
     4,
     1,
     2,
     NULL},
    {"Flux with PMIx",
     {{"FLUX_TASK_RANK", "3"},
      {"FLUX_JOB_SIZE", "4"},
      {"FLUX_TASK_LOCAL_ID", "3"},
      {"FLUX_JOB_NNODES", "1"},
      {"PMIX_RANK", "3"}},
     3,
     4,
     3,
     4,
     NULL},
    {"Flux without either",
     {{"FLUX_TASK_RANK", "3"}, {"FLUX_JOB_SIZE", "4"}, {"FLUX_JOB_ID", "x"}},
     0,
     0,
     0,
     0,
     "Flux started this process as rank 3 of 4 (FLUX_TASK_RANK), but gives Weber no way to join "
     "the other ranks; use flux run -o pmi=simple (MPICH)"},
    {"torchrun",
     {{"RANK", "1"},
      {"WORLD_SIZE", "2"},
      {"LOCAL_RANK", "1"},
      {"LOCAL_WORLD_SIZE", "2"},
      {"MASTER_ADDR", "127.0.0.1"},
      {"TORCHELASTIC_RUN_ID", "none"}},
     0,
     0,
     0,
     0,
     "torchrun started this process as rank 1 of 2 (RANK), but gives Weber no way to join the "
     "other ranks; use weber run -n N (one machine), mpiexec or srun"},
    {"torchrun with one process", {{"RANK", "0"}, {"WORLD_SIZE", "1"}}, 0, 1, 0, 1, NULL},
    {"a RANK of something else", {{"RANK", "captain"}, {"WORLD_SIZE", "2"}}, 0, 1, 0, 1, NULL},
    {"weber run inside torchrun's shell",
     {{"RANK", "1"},
      {"WORLD_SIZE", "2"},
      {"WEBER_RUN", "/x"},
      {"WEBER_RANK", "0"},
      {"WEBER_SIZE", "3"}},
     0,
     3,
     0,
     3,
     NULL},
    {"PMIx alone",
     {{"PMIX_RANK", "2"}, {"PMIX_NAMESPACE", "a"}},
     0,
     0,
     0,
     0,
     "a launcher of PMIx started this process as rank 2 (PMIX_RANK)"},
    {"PALS alone",
     {{"PALS_RANKID", "2"}},
     0,
     0,
     0,
     0,
     "PALS started this process as rank 2 (PALS_RANKID)"},
};

static const row *current;

static void be_alone(void) {
    static const char *const names[] = {"WEBER_RANK",       "WEBER_SIZE", "WEBER_LOCAL_RANK",
                                        "WEBER_LOCAL_SIZE", "WEBER_RUN",  "WEBER_JOINED"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) (void)unsetenv(names[i]);
}

static void surround(void) {
    be_alone();
    for (int i = 0; i < 6 && current->variables[i][0]; i++)
        (void)setenv(current->variables[i][0], current->variables[i][1], 1);
}

static void read_seat(void) {
    wb_seat seat;
    surround();
    const bool is_read = wb_seat_read(&seat);
    if (current->says) {
        CHECK(!is_read && strstr(wb_error_message(), current->says));
        exit(0);
    }
    CHECK(is_read && seat.rank == current->rank && seat.size == current->size);
    if (seat.local_rank == current->local_rank && seat.local_size == current->local_size) exit(0);
    (void)fprintf(stderr, "%d of %d\n", seat.local_rank, seat.local_size);
    exit(1);
}

static void launchers_say_where_a_process_stands(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        current = &rows[i];
        if (ranks_run(1, read_seat)) fail_msg("%s", rows[i].name);
    }
}

/* ---- a program that does not ask ---- */

static void train_alone(void) {
    surround();
    wb_scope_open();
    wb_layer *model = wb_chain(wb_dense(3, 4), wb_batchnorm(4), wb_dense(4, 2));
    wb_optimiser *o = wb_setup(wb_adam(), model);
    wb_loader *data = wb_loader_new(.x = wb_ones(WB_F32, 3, 8), .batchsize = 4);
    wb_batch batch = {0};
    while (wb_next(data, &batch)) CHECK(wb_eval(wb_apply(model, batch.x)) == WB_OK);
    CHECK(!wb_failed() && !wb_distributed_initialized());
    wb_free(o), wb_free(model), wb_free(data);
    exit(0);
}

static void who_does_not_ask_runs_alone(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        current = &rows[i];
        if (ranks_run(1, train_alone)) fail_msg("%s", rows[i].name);
    }
}

/* ---- a program that a rank starts ---- */

static const char *own_program;
static const char *way; /* before its name */

static int be_started(void) {
    return wb_total_workers() == atoi(getenv("TEST_WORKERS")) && !wb_failed() ? 0 : 9;
}

static void start_one(void) {
    char command[512];
    CHECK(wb_total_workers() == 2);
    (void)snprintf(command, sizeof command, "%s %s", way, own_program);
    CHECK(system(command) == 0);
    CHECK(wb_item(wb_allreduce(wb_number(1), WB_REDUCE_SUM)) == 2);
}

static void it_is_a_group_of_its_own(void **state) {
    (void)state;
    way = "TEST_WORKERS=1";
    assert_int_equal(ranks_run(2, start_one), 0);
}

/* A launcher that a rank starts. */
static void so_are_several(void **state) {
    (void)state;
    static char text[512], tool[256];
    set_mpi_environment();
    (void)snprintf(tool, sizeof tool, "%s", stage_build("bin/weber"));
    const char *const launchers[][2] = {{OPEN_MPI, "openmpi"}, {MPICH, "mpich"}, {tool, ""}};
    for (int i = 0; i < 3; i++) {
        const bool is_weber = !launchers[i][1][0];
        if (!is_weber && !has_mpi(launchers[i][0], launchers[i][1])) continue;
        (void)snprintf(text, sizeof text, "TEST_WORKERS=3 %s%s -n 3", launchers[i][0],
                       is_weber ? " run" : "");
        way = text;
        if (ranks_run(2, start_one)) fail_msg("%s", text);
    }
}

/* The same where MPI has started the rank. */
static void below_mpi_too(void **state) {
    (void)state;
    char command[512];
    const char *const launchers[][2] = {{OPEN_MPI, "openmpi"}, {MPICH, "mpich"}};
    set_mpi_environment();
    for (int i = 0; i < 2; i++) {
        if (!has_mpi(launchers[i][0], launchers[i][1])) continue;
        (void)snprintf(command, sizeof command, "TEST_STARTS=1 %s -n 2 %s", launchers[i][0],
                       own_program);
        if (system(command) != 0) fail_msg("%s", command);
    }
}

int main(int count, char **arguments) {
    (void)count;
    own_program = arguments[0];
    if (getenv("TEST_WORKERS")) return be_started();
    if (getenv("TEST_STARTS")) {
        way = "TEST_WORKERS=1";
        start_one();
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launchers_say_where_a_process_stands),
        cmocka_unit_test(who_does_not_ask_runs_alone),
        cmocka_unit_test(it_is_a_group_of_its_own),
        cmocka_unit_test(so_are_several),
        cmocka_unit_test(below_mpi_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
