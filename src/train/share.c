/* Sends rank 0's checkpoint to ranks that cannot see its file. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "models/checkpoint.h"
#include "ops/collective.h"
#include "platform/process.h"
#include "ranks/ranks.h"
#include "train/training.h"

enum { PIECE_BYTES = 16 << 20, NAME_BYTES = PATH_MAX };

static wb_status fail(const char *name, const char *what) {
    return wb_fail(WB_ERROR_IO, "wb_train: %s: %s: %s", name, what, strerror(errno));
}

/* ---- on rank 0 ---- */

static wb_status open_source(const char *name, FILE **file, int64_t *bytes) {
    *file = fopen(name, "rb");
    if (!*file || fseek(*file, 0, SEEK_END) != 0 || (*bytes = ftell(*file)) < 0 ||
        fseek(*file, 0, SEEK_SET) != 0)
        return fail(name, "the checkpoint cannot be read");
    return WB_OK;
}

/* ---- on the others ---- */

/* A file of the same format that is this process's alone. */
static wb_status open_copy(const char *like, char *name, FILE **file) {
    const char *folder = wb_platform_trusted_variable("TMPDIR"), *end = strrchr(like, '.');
    (void)snprintf(name, NAME_BYTES, "%s/weber-checkpoint-XXXXXX%s",
                   folder && *folder ? folder : "/tmp", end ? end : "");
    const int place = mkstemps(name, end ? (int)strlen(end) : 0);
    *file = place >= 0 ? fdopen(place, "wb") : NULL;
    if (*file) return WB_OK;
    if (place >= 0) (void)close(place), (void)unlink(name);
    name[0] = 0;
    return fail(folder && *folder ? folder : "/tmp", "no file can be made for rank 0's checkpoint");
}

/* ---- on all ---- */

static wb_status send(const char *name, FILE *file, int64_t bytes) {
    char *piece = wb_alloc(PIECE_BYTES);
    const bool leads = wb_ranks_own() == 0;
    wb_status status = piece ? WB_OK : WB_ERROR_MEMORY;
    for (int64_t left = bytes; left > 0 && status == WB_OK;) {
        const size_t n = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
        if (leads && fread(piece, 1, n, file) != n) status = fail(name, "cannot be read");
        if (status == WB_OK) status = wb_bcast_now((int64_t)n, piece);
        if (status == WB_OK && !leads && fwrite(piece, 1, n, file) != n)
            status = fail(name, "cannot be written");
        left -= (int64_t)n;
    }
    wb_release(piece);
    return status;
}

wb_status wb_training_share(const char *path, int64_t number, char *copy) {
    char name[NAME_BYTES];
    FILE *file = NULL;
    int64_t bytes = 0;
    copy[0] = 0;
    if (!wb_checkpoint_file(path, number, name)) return wb_error_status();
    const bool leads = wb_ranks_own() == 0;
    wb_status status = leads ? open_source(name, &file, &bytes) : open_copy(name, copy, &file);
    if (status == WB_OK) status = wb_bcast_now(sizeof bytes, &bytes);
    if (status == WB_OK) status = send(leads ? name : copy, file, bytes);
    if (file && fclose(file) != 0 && status == WB_OK) status = fail(copy, "cannot be written");
    return status;
}
