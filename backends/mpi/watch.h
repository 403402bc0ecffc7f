/* What the system tells about the other ranks of this machine, if it tells anything: MPI does not
 * tell that a rank has died, has stopped or will never join. */
#ifndef WB_MPI_WATCH_H
#define WB_MPI_WATCH_H

#include <pthread.h>
#include <weber/transport.h>

#include "platform/process.h"

/* A rank's process, as it says itself; the same in all versions. */
typedef struct watched {
    int64_t process;
    uint64_t born;
    char machine[64];
} watched;

typedef struct watch_line {
    watched known;                          /* process 0: none, as of a rank of another machine */
    double absent_seconds, stopped_seconds; /* that this process has seen */
} watch_line;

typedef struct watch {
    const wb_seat *seat;
    pthread_mutex_t mutex;
    pid_t launcher;       /* of all ranks of this machine; 0: unknown */
    const char *variable; /* by which it tells them their numbers */
    bool has_joined;
    double last;
    watch_line *lines; /* of each rank */
    pid_t *children;
    int most_children;
    const wb_host *host;
    double timeout;
    pthread_t guard;
    _Atomic bool guard_ends;
} watch;

enum { WATCH_TEXT_BYTES = 128 };

/* False with an error recorded: no memory. Until watch_joined, a rank is the process that the
 * launcher has started for it. */
bool watch_open(watch *w, const wb_host *host, const wb_seat *seat, double timeout);
void watch_close(watch *w);

/* While the ranks join: nothing interrupts MPI_Init, so that this process ends where one of them
 * will never come, with a line that says which; the launcher ends the others then. */
bool watch_begin_guard(watch *w);
void watch_end_guard(watch *w);

/* What this process tells the other ranks about itself. */
watched watch_own(void);
/* all[r]: what rank r has said. */
void watch_joined(watch *w, const watched *all);

double watch_now(void);

/* True where a rank of this machine is gone, with a text that says which. Looks at most four times
 * a second. */
bool watch_finds_lost(watch *w, char *text);

#endif
