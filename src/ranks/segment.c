/* One piece of shared memory: a header, a line for each rank, two windows for each rank's data.
 * Each rank locks one byte of the file. The system releases that lock when the rank dies, so the
 * others can see it. The first failure leaves its text for all. */
#include "ranks/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "platform/files.h"
#include "platform/threads.h"
#include "ranks/told.h"

#define LAYOUT 0x57424c33u /* of wb_shared; changes with it */

enum { NOBODY_FAILED, WRITING, WRITTEN }; /* failure */

/* Bytes before the windows of the rank; of rank `ranks`, before the end. */
static size_t windows_at(int ranks, int rank) {
    const size_t lines = sizeof(wb_shared) + sizeof(wb_rank_line) * (size_t)ranks;
    const size_t rounded = (lines + WB_SEGMENT_LINE - 1) / WB_SEGMENT_LINE * WB_SEGMENT_LINE;
    return rounded + 2 * (size_t)rank * WB_WINDOW_BYTES;
}

char *wb_segment_window(const wb_segment *s, int rank, uint32_t step) {
    return (char *)s->shared + windows_at(s->ranks, rank) + (size_t)(step & 1) * WB_WINDOW_BYTES;
}

/* ---- beginning and end ---- */

static bool fail_at(const char *what, const char *name) {
    (void)wb_fail(WB_ERROR_IO, "distributed: %s %s: %s", what, name, strerror(errno));
    return false;
}

/* Checks that the file belongs to the user alone, so that no other user can have opened it. */
static bool is_own(int file, const char *name) {
    struct stat about;
    if (fstat(file, &about) != 0) return fail_at("cannot look at the shared memory", name);
    const char *fault = about.st_uid != geteuid()    ? "belongs to another user"
                        : (about.st_mode & 077) != 0 ? "can be opened by other users"
                                                     : NULL;
    if (fault) (void)wb_fail(WB_ERROR_IO, "distributed: the shared memory %s %s", name, fault);
    return !fault;
}

/* All ranks make it the same size, and its bytes are 0 at first. */
static bool map(wb_segment *s, const char *name) {
    errno = wb_platform_grow_shared(s->file, s->bytes);
    if (errno) {
        const int64_t mib = (int64_t)(s->bytes >> 20) + 1;
        (void)wb_fail(WB_ERROR_IO,
                      "distributed: %d ranks need %lld MiB of shared memory in %s: %s "
                      "(containers: --shm-size)",
                      s->ranks, (long long)mib, wb_platform_shared_place, strerror(errno));
        return false;
    }
    void *memory = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, s->file, 0);
    if (memory == MAP_FAILED) return fail_at("cannot map the shared memory", name);
    s->shared = memory;
    return true;
}

static bool take_place(const wb_segment *s, const char *name) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = s->rank, .l_len = 1};
    if (fcntl(s->file, F_SETLK, &lock) == 0) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT,
                  "distributed: another process is rank %d of the run %s already", s->rank, name);
    return false;
}

/* The first rank writes what the others must agree with. */
static bool agree(const wb_segment *s) {
    uint32_t none = 0, nobody = 0;
    wb_shared *shared = s->shared;
    (void)atomic_compare_exchange_strong(&shared->layout, &none, LAYOUT);
    (void)atomic_compare_exchange_strong(&shared->ranks, &nobody, (uint32_t)s->ranks);
    if (atomic_load(&shared->layout) == LAYOUT && atomic_load(&shared->ranks) == (uint32_t)s->ranks)
        return true;
    (void)wb_fail(
        WB_ERROR_ARGUMENT,
        "distributed: the ranks must have the same version of Weber and the same size of group; "
        "rank %d differs from the first: layout %x of %u ranks, here %x of %d",
        s->rank, atomic_load(&shared->layout), atomic_load(&shared->ranks), LAYOUT, s->ranks);
    return false;
}

bool wb_segment_open(wb_segment *s, const char *name, int rank, int ranks) {
    *s = (wb_segment){.rank = rank, .ranks = ranks, .bytes = windows_at(ranks, ranks)};
    s->file = wb_platform_open_shared(name, O_CREAT | O_RDWR | O_CLOEXEC);
    if (s->file < 0) return fail_at("cannot open the shared memory", name);
    return is_own(s->file, name) && map(s, name) && take_place(s, name) && agree(s);
}

void wb_segment_close(wb_segment *s) {
    if (s->shared) (void)munmap(s->shared, s->bytes);
    if (s->file >= 0) (void)close(s->file);
    s->shared = NULL, s->file = -1;
}

bool wb_segment_is_held(const wb_segment *s, int rank) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = rank, .l_len = 1};
    return fcntl(s->file, F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

/* ---- a failure ---- */

void wb_segment_tell(const wb_segment *s, const char *text) {
    wb_shared *shared = s->shared;
    uint32_t nobody = NOBODY_FAILED;
    if (!atomic_compare_exchange_strong(&shared->failure, &nobody, WRITING)) return;
    (void)snprintf(shared->text, sizeof shared->text, "%s", text);
    atomic_store(&shared->failed_rank, (uint32_t)s->rank);
    atomic_store(&shared->failure, WRITTEN);
    for (int r = 0; r < s->ranks; r++) wb_platform_wake(&shared->lines[r].step);
}

bool wb_segment_is_told(const wb_segment *s) {
    return atomic_load(&s->shared->failure) != NOBODY_FAILED;
}

wb_status wb_segment_fail_as_told(const wb_segment *s) {
    char text[WB_SEGMENT_TEXT_BYTES];
    const wb_shared *shared = s->shared;
    for (int i = 0; i < 1000 && atomic_load(&shared->failure) == WRITING; i++)
        (void)usleep(1000); /* not for ever: it may have died in between */
    wb_copy_told(text, sizeof text, shared->text, sizeof shared->text);
    return wb_fail(WB_ERROR_LOST, "distributed: rank %u has failed: %s",
                   atomic_load(&shared->failed_rank), text);
}
