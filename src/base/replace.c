#include "base/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform/files.h"

/* Those of the file that is there, another owner only where that is allowed; else those that new
 * files get. */
static bool set_permissions(int file, const char *path) {
    struct stat status;
    const mode_t mask = umask(0);
    (void)umask(mask);
    if (stat(path, &status) != 0) return fchmod(file, 0666 & ~mask) == 0;
    if (fchown(file, status.st_uid, status.st_gid) != 0) errno = 0;
    return fchmod(file, status.st_mode & 07777) == 0;
}

/* The folder's entry on the disk, too; a system that cannot say so is believed. */
static void sync_folder(const char *path) {
    char folder[PATH_MAX];
    (void)snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash) slash[slash == folder] = 0;
    const int opened = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (opened < 0) return;
    (void)fsync(opened);
    (void)close(opened);
}

static bool remove_fresh(const wb_replacement *r, int file) {
    const int why = errno;
    if (file >= 0) (void)close(file);
    (void)unlink(r->fresh);
    errno = why;
    return false;
}

/* Where the link at path leads, from its folder; false: path is no link, or too long a one. */
static bool follow(char *path, size_t size) {
    char target[PATH_MAX], leads_to[2 * PATH_MAX];
    const ssize_t length = readlink(path, target, sizeof target - 1);
    if (length < 0) return false;
    target[length] = 0;
    const char *slash = target[0] == '/' ? NULL : strrchr(path, '/');
    (void)snprintf(leads_to, sizeof leads_to, "%.*s%s", slash ? (int)(slash - path + 1) : 0, path,
                   target);
    if (strlen(leads_to) >= size) return false;
    memcpy(path, leads_to, strlen(leads_to) + 1);
    return true;
}

/* Links are followed, those that lead to no file yet, too. */
static void resolve(const char *path, char *resolved, size_t size) {
    enum { MOST_LINKS = 40 };
    if (realpath(path, resolved)) return;
    memcpy(resolved, path, strlen(path) + 1);
    for (int i = 0; i < MOST_LINKS && follow(resolved, size); i++) {
    }
}

bool wb_replace_begin(wb_replacement *r, const char *path) {
    struct stat status;
    if (strlen(path) >= sizeof r->path) return errno = ENAMETOOLONG, false;
    resolve(path, r->path, sizeof r->path);
    if (stat(r->path, &status) == 0 && !S_ISREG(status.st_mode))
        return errno = S_ISDIR(status.st_mode) ? EISDIR : ENOTSUP, false;
    (void)snprintf(r->fresh, sizeof r->fresh, "%s.XXXXXX", r->path);
    const int file = mkostemp(r->fresh, O_CLOEXEC);
    if (file < 0) return false;
    r->stream = set_permissions(file, r->path) ? fdopen(file, "wb") : NULL;
    return r->stream || remove_fresh(r, file);
}

bool wb_replace_end(wb_replacement *r, bool is_good) {
    is_good = is_good && fflush(r->stream) == 0 && wb_platform_sync_file(fileno(r->stream));
    const int why = errno;
    is_good = fclose(r->stream) == 0 && is_good;
    if (is_good && rename(r->fresh, r->path) == 0) return sync_folder(r->path), true;
    if (!is_good) errno = why;
    return remove_fresh(r, -1);
}
