/* weber run: what it starts, passes on, ends and says. Programs are scripts; those that use the
 * library are in the other files. */
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "platform/files.h"
#include "support/mpi.h"
#include "support/tool.h"

typedef struct row {
    const char *arguments, *says;
    int status;
} row;

static void check_rows(const row *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const int status = weber(rows[i].arguments);
        if (status != rows[i].status)
            (void)fprintf(stderr, "%s: %d\n%s", rows[i].arguments, status, output);
        expect(status == rows[i].status);
        expect_part(output, rows[i].says);
    }
}

static void arguments_that_are_wrong(void) {
    const row rows[] = {
        {"run", "weber run: -n N is missing\nusage: weber run -n N", 2},
        {"run true", "weber run: -n N is missing", 2},
        {"run -n", "weber run: -n must be a whole number from 1 to 1024, got nothing", 2},
        {"run -n 0 true", "weber run: -n must be a whole number from 1 to 1024, got 0", 2},
        {"run -n 1025 true", "got 1025", 2},
        {"run -n x true", "got x", 2},
        {"run -n 2", "weber run: PROGRAM is missing", 2},
        {"run -n 2 --", "weber run: PROGRAM is missing", 2},
        {"run -n 2 --restarts -1 true", "--restarts must be a whole number from 0 to 1000000", 2},
        {"run -n 2 --timeout 10m true", "a number of seconds above 0, got 10m", 2},
        {"run -n 2 --timeout nan true", "got nan", 2},
        {"run -n 2 --host a true", "weber run: there is no option --host", 2},
        {"run -n 2 --hosts", "--hosts must be names of machines with commas between them", 2},
        {"run --self-test", "weber run: -n N is missing", 2},
        {"run -n 2 --self-test true", "weber run: --self-test takes no PROGRAM", 2},
        {"run --help", "usage: weber run -n N", 0},
    };
    check_rows(rows, sizeof rows / sizeof *rows);
}

static void statuses(void) {
    const row rows[] = {
        {"run -n 2 -- true", "", 0},
        {"run -n 2 sh -c 'exit $WEBER_RANK'", "weber run: rank 1 ended with status 1", 1},
        {"run -n 2 ./nothing", "./nothing cannot be started: No such file or directory", 127},
        {"run -n 3 --restarts 2 sh -c 'echo start $WEBER_RESTART; exit 3'", "] start 2\n", 3},
        {"run -n 2 sh -c 'echo a secret of ${#WEBER_SECRET}'", "] a secret of 32\n", 0},
        {"run -n 2 --restarts 2 sh -c '[ $WEBER_RESTART = 1 ]'", "starts again, 1 of 2", 0},
        /* the cause, though the other one is reaped first */
        {"run -n 2 sh -c '[ $WEBER_RANK = 0 ] && exit 1; sleep 0.3; kill -ABRT $$'",
         "weber run: rank 1 was ended by signal 6", 134},
        /* SIGTERM of weber run is no cause; a stopped one is ended, too */
        {"run -n 2 sh -c '[ $WEBER_RANK = 0 ] && exit 7; kill -STOP $$'", "", 7},
        {"run -n 2 sh -c '[ $WEBER_RANK = 0 ] && exit 7; trap : TERM; while :; do sleep 1; done'",
         "", 7},
    };
    check_rows(rows, sizeof rows / sizeof *rows);
    expect(weber("run -n 2 --restarts 3 ./nothing") == 127);
    expect(!strstr(output, "starts again"));
}

static void streams(void) {
    const row rows[] = {
        {"run -n 2 sh -c 'printf \"no end\"'", "[1] no end\n", 0},
        {"run -n 2 sh -c 'exec >&- 2>&-; exit 4'", "ended with status 4", 4},
    };
    check_rows(rows, sizeof rows / sizeof *rows);
    /* what was printed last, though a child that is left holds the stream */
    expect(weber("run -n 2 sh -c 'sleep 10 & printf last'") == 0);
    expect_part(output, "[1] last\n");
    /* one rank has the input, the others have none */
    stage_write("input", "one\ntwo\n");
    expect(weber("run -n 3 sh -c 'cat; echo end' < input") == 0);
    expect_part(output, "[0] one\n");
    expect_part(output, "[2] end\n");
    expect(!strstr(output, "[1] one") && !strstr(output, "[2] one"));
    expect(weber("run -n 2 seq 20000 | wc -l") == 0);
    expect_part(output, "40000");
}

/* It ends when its reader does; processes that a rank has left behind do not hold it up. */
static void ends_soon(void) {
    double begin = wb_clock();
    (void)weber("run -n 2 sh -c 'while echo line; do :; done' | head -n 1");
    expect(wb_clock() - begin < 10);
    begin = wb_clock();
    expect(weber("run -n 2 sh -c 'sleep 60 & echo gone'") == 0);
    expect_part(output, "[1] gone\n");
    expect(wb_clock() - begin < 10);
}

/* What the ranks have started goes with them after a failure. */
static void children_go_too(void) {
    expect(weber("run -n 2 sh -c 'sleep 61.25 & [ $WEBER_RANK = 1 ] && exit 3; wait'") == 3);
    expect(weber("run -n 2 sh -c 'pgrep -f \"sleep 61[.]25\"; true'") == 0);
    expect(!strstr(output, "[0] "));
}

/* Nor does a rank outlive weber run itself. */
static void goes_with_the_tool(void) {
    const double begin = wb_clock();
    (void)weber("run -n 2 sh -c 'kill -KILL $PPID; exec sleep 62.25'");
    while (weber("run -n 1 pgrep -f \"sleep 62[.]25\"") == 0 && wb_clock() - begin < 2)
        (void)usleep(20000);
    expect(wb_clock() - begin < 2);
}

/* What a run that was killed left in shared memory, the next one removes; not what is in use. */
static void clears_what_was_left(void) {
    char command[1024];
    (void)weber("run -n 2 sh -c '[ $WEBER_RANK = 1 ] || { echo $WEBER_RUN >name; "
                "kill -KILL $PPID; }; exec sleep 63.25'");
    expect(weber("run -n 1 true") == 0);
    (void)snprintf(command, sizeof command,
                   "run -n 1 sh -c 'test -s name && ! test -e \"%s$(cat name)-ended\"'",
                   wb_platform_shared_place);
    expect(weber(command) == 0);
    if (access(wb_platform_shared_place, F_OK) != 0) return; /* no folder to look into */
    (void)snprintf(command, sizeof command,
                   "run -n 1 sh -c '\"%s\" run -n 1 true; test -e %s$WEBER_RUN-ended'",
                   stage_build("bin/weber"), wb_platform_shared_place);
    expect(weber(command) == 0);
}

/* Those that have joined do not wait for one that never will. */
static void ends_before_it_joins(void) {
    char command[1024];
    (void)snprintf(command, sizeof command,
                   "run -n 2 sh -c '[ $WEBER_RANK = 1 ] || exec \"%s\" ranks'",
                   stage_build("bin/weber"));
    const double begin = wb_clock();
    expect(weber(command) == 1);
    expect_part(output, "distributed: rank 1 of 2 has ended before it joined the group");
    expect(wb_clock() - begin < 10);
}

/* What the tool inherits: SIGCHLD ignored, few files, few cores. */
static void inherits(void) {
    char command[1024];
    const char *tool = stage_build("bin/weber");
    (void)snprintf(command, sizeof command,
                   "run -n 1 sh -c 'trap \"\" CHLD; "
                   "exec timeout 20 \"%s\" run -n 2 sh -c \"exit 3\"'",
                   tool);
    expect(weber(command) == 3);
    (void)snprintf(command, sizeof command,
                   "run -n 1 sh -c 'ulimit -n 40; exec \"%s\" run -n 100 sleep 60'", tool);
    expect(weber(command) == 1);
    expect_part(output, "weber run: no process can be made: Too many open files");

    cpu_set_t before, one;
    int core = 0;
    expect(sched_getaffinity(0, sizeof before, &before) == 0);
    while (!CPU_ISSET(core, &before)) core++;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    (void)unsetenv("WEBER_NUM_THREADS");
    expect(sched_setaffinity(0, sizeof one, &one) == 0);
    expect(weber("run -n 1 sh -c 'echo has $WEBER_NUM_THREADS'") == 0);
    expect_part(output, "has 1\n");
    expect(sched_setaffinity(0, sizeof before, &before) == 0);
}

/* By a launcher that says which one it is and how it was called. */
static void by_mpiexec(void) {
    const row rows[] = {
        {"run -n 3 --mpi prog -x 1", "-n 3 -l prog -x 1 \n", 0},
        {"run -n 3 --hosts a,b -- prog", "-n 3 -l -hosts a,b prog \n", 0},
        {"run -n 2 --mpi --restarts 1 --timeout 9 fail", "starts again, 1 of 1", 5},
    };
    stage_write("mpiexec", "#!/bin/sh\n[ \"$1\" = --version ] && exec echo HYDRA build details\n"
                           "printf '%s ' \"$@\"; echo\n[ \"$4\" != fail ] || exit 5\n");
    expect(chmod(stage_path("mpiexec"), 0700) == 0);
    (void)setenv("WEBER_MPIEXEC", stage_path("mpiexec"), 1);
    check_rows(rows, sizeof rows / sizeof *rows);
    expect(weber("run -n 2 --mpi prog $(seq 6000) | tail -c 12") == 0); /* all of them */
    expect_part(output, " 5999 6000 ");
    stage_write("mpiexec",
                "#!/bin/sh\n[ \"$1\" = --version ] && exec echo 'mpiexec (OpenRTE) 4.1.4'\n"
                "printf '%s ' \"$@\"; echo\n");
    expect(weber("run -n 2 --hosts a:2,b --timeout 9 prog") == 0);
    expect_part(output, "-n 2 --bind-to none --oversubscribe --tag-output --host a:2,b -x WEBER_");
    expect_part(output, "-x WEBER_TIMEOUT");
    expect_part(output, "-x WEBER_SECRET "); /* its name alone */
    stage_write("mpiexec", "#!/bin/sh\necho another\n");
    expect(weber("run -n 2 --mpi prog") == 127);
    expect_part(output, "is neither Open MPI's nor MPICH's (Debian: openmpi-bin, mpich)");
    (void)unsetenv("WEBER_MPIEXEC");
}

/* What ends a run goes on to the launcher, but what was ignored from the start. */
static void ends_mpiexec(void) {
    char command[1024];
    stage_write("mpiexec", "#!/bin/sh\n[ \"$1\" = --version ] && exec echo HYDRA build details\n"
                           "trap 'exit 9' $5\nkill -$5 $PPID\n"
                           "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.1; done\n");
    expect(chmod(stage_path("mpiexec"), 0700) == 0);
    (void)setenv("WEBER_MPIEXEC", stage_path("mpiexec"), 1);
    const row rows[] = {
        {"run -n 2 --mpi prog TERM", "", 9},
        {"run -n 2 --mpi --restarts 1 prog QUIT", "", 9},
    };
    check_rows(rows, sizeof rows / sizeof *rows);
    expect(!strstr(output, "starts again"));
    const char *tool = stage_build("bin/weber");
    (void)snprintf(command, sizeof command,
                   "run -n 1 sh -c 'trap \"\" HUP; exec \"%s\" run -n 2 --mpi prog HUP'", tool);
    expect(weber(command) == 0);
    (void)snprintf(command, sizeof command,
                   "run -n 1 sh -c 'trap \"\" CHLD; exec \"%s\" run -n 2 --mpi prog TERM'", tool);
    expect(weber(command) == 9);
    (void)unsetenv("WEBER_MPIEXEC");
}

/* ---- the self-test ---- */

static void tests_itself(void) {
    expect(weber("run -n 3 --self-test") == 0);
    expect_part(output, "[2] rank 2 of 3 by local: 2 of 3 on ");
    expect_part(output, "[0] sums: exact; bits: the same on all ranks\n");
    expect_part(output, "[0] sum of 67108864 bytes: ");
    expect_part(output, "[0] another size on one rank: refused by all\n");
    expect(!strstr(output, "takes memory of"));
    expect(weber("run -n 1 --self-test") == 0);
    expect_part(output, "rank 0 of 1 by none");
}

/* No MPI of Debian 12 takes memory of GPUs; the two differ in what they can be asked. */
static void tests_mpi(void) {
    set_mpi_environment();
    if (has_mpi("mpirun.openmpi", "openmpi")) {
        (void)setenv("WEBER_MPIEXEC", "mpirun.openmpi", 1);
        expect(weber("run -n 2 --mpi --self-test") == 0);
        expect_part(output, "rank 1 of 2 by MPI");
        expect_part(output, "Open MPI v");
        expect_part(output, " accepts memory of CUDA: no, of ROCm: not known; Weber passes it ");
        expect_part(output, "another size on one rank: refused by all");
    }
    if (has_mpi("mpirun.mpich", "mpich")) {
        (void)setenv("WEBER_MPIEXEC", "mpirun.mpich", 1);
        expect(weber("run -n 2 --mpi --self-test") == 0);
        expect_part(output, "MPICH Version:");
        expect_part(output, " accepts memory of CUDA: no, of ROCm: no; Weber passes it memory of");
    }
    (void)unsetenv("WEBER_MPIEXEC");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SCENE(arguments_that_are_wrong),
        SCENE(statuses),
        SCENE(streams),
        SCENE(ends_soon),
        SCENE(children_go_too),
        SCENE(inherits),
        SCENE(by_mpiexec),
        SCENE(ends_mpiexec),
        SCENE(ends_before_it_joins),
        SCENE(tests_itself),
        SCENE(tests_mpi),
        SCENE(goes_with_the_tool),
        SCENE(clears_what_was_left),
    };
    return cmocka_run_group_tests_name("ranks/test_run", tests, NULL, NULL);
}
