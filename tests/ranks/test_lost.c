/* A rank that is killed, ends or stops: at each of four places, which bench_ranks has, in a program
 * of three. The others end within ten seconds and say which rank it was. bench/ranks/failures has
 * each rank. */
#include "platform/process.h"
#include "support/mpi.h"
#include "support/tool.h"

typedef struct row {
    const char *phase, *action;
    int rank, status; /* of weber run */
    const char *says;
} row;

static const row rows[] = {
    {"start", "kill", 0, 137, "rank 0 was ended by signal 9"},
    {"sum", "kill", 1, 137, "distributed: rank 1 has died"},
    {"step", "kill", 2, 137, "distributed: rank 2 has died"},
    {"end", "kill", 0, 137, "distributed: rank 0 has died"},
    {"start", "exit", 1, 1, "rank 1 of 3 has ended before it joined the group"},
    {"sum", "exit", 2, 1, "distributed: rank 2 has ended"},
    {"step", "exit", 0, 1, "distributed: rank 0 has ended"},
    {"end", "exit", 1, 1, "distributed: rank 1 has ended"},
    {"start", "stop", 2, 1, "rank 2 of 3 has stopped before it joined the group"},
    {"sum", "stop", 0, 1, "distributed: rank 0 has stopped"},
    {"step", "stop", 1, 1, "distributed: rank 1 has stopped"},
    {"end", "stop", 2, 1, "distributed: rank 2 has stopped"},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* A launcher of MPI ends the others of one that is killed; which rank's status it gives is its own
 * affair. It may also end them when one has failed before MPI_Init, before they have said so. */
static const row mpi_rows[] = {
    {"start", "exit", 1, -1, ""},
    {"start", "stop", 2, -1, "rank 2 has stopped"},
    {"sum", "exit", 2, -1, "rank 2 has ended"},
    {"step", "stop", 1, -1, "rank 1 has stopped"},
};
enum { MPI_ROWS = sizeof mpi_rows / sizeof *mpi_rows };

/* WEBER_TIMEOUT is longer than what would end a rank that waits for it.
 * Most of the time they wait: all programs run side by side. `timeout` ends one that hangs, with
 * status 124. Open MPI's launchers remove each other's folders unless each has its own. */
static void run_side_by_side(const char *launcher, const row *list, int count) {
    char script[4096], weber[512], program[512];
    (void)snprintf(weber, sizeof weber, "%s", stage_build("bin/weber"));
    (void)snprintf(program, sizeof program, "%s", stage_build("bench/bench_ranks"));
    size_t at = 0;
    for (int i = 0; i < count; i++)
        at += (size_t)snprintf(
            script + at, sizeof script - at,
            "(timeout -k 1 90 %s -n 3 \"$P\" fail %s %d %s >%d 2>&1; echo =$? >>%d) &\n", launcher,
            list[i].phase, list[i].rank, list[i].action, i, i);
    (void)snprintf(script + at, sizeof script - at, "wait\n");
    (void)setenv("W", weber, 1), (void)setenv("P", program, 1);
    (void)setenv("WEBER_TIMEOUT", "100", 1), (void)setenv("WEBER_NUM_THREADS", "1", 1);
    expect(system(script) == 0);
}

static void the_others_say_which_and_end(void) {
    char name[16];
    run_side_by_side("\"$W\" run", rows, ROWS);
    for (int i = 0; i < ROWS; i++) {
        char status[16];
        (void)snprintf(name, sizeof name, "%d", i);
        (void)snprintf(status, sizeof status, "=%d\n", rows[i].status);
        expect_part(stage_read(name), rows[i].says);
        expect_part(stage_read(name), status);
    }
}

static void they_say_so_by(const char *launcher) {
    char name[16];
    set_mpi_environment();
    run_side_by_side(launcher, mpi_rows, MPI_ROWS);
    for (int i = 0; i < MPI_ROWS; i++) {
        (void)snprintf(name, sizeof name, "%d", i);
        expect_part(stage_read(name), mpi_rows[i].says);
        expect(!strstr(stage_read(name), "=124\n") && !strstr(stage_read(name), "=0\n"));
    }
}

static void by_open_mpi(void) {
    if (has_mpi("mpirun.openmpi", "openmpi") && wb_platform_knows_processes())
        they_say_so_by(OPEN_MPI);
}

static void by_mpich(void) {
    if (has_mpi("mpirun.mpich", "mpich") && wb_platform_knows_processes()) they_say_so_by(MPICH);
}

int main(void) {
    const struct CMUnitTest tests[] = {SCENE(the_others_say_which_and_end), SCENE(by_open_mpi),
                                       SCENE(by_mpich)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
