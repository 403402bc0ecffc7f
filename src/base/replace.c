/* Writes a new file beside the old one, makes sure that it is on the disk, and renames it to the
 * old name. The new file is locked while it is written, so that a program can tell it from one that
 * a killed process has left. Links of other users in shared folders are refused. */
#include "base/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "platform/files.h"

/* Gives the new file the permissions of the old one, and its owner where that is allowed. Without
 * an old file it keeps those from open(2). */
static bool set_permissions(int file, const char *path) {
    struct stat status;
    if (stat(path, &status) != 0) return true;
    if (fchown(file, status.st_uid, status.st_gid) != 0) errno = 0;
    return fchmod(file, status.st_mode & 07777) == 0;
}

/* Syncs the folder's entry, too. A system that cannot do that is trusted. */
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

/* Where the link at path leads, from its folder; false: path is not a link, or the link is too
 * long. */
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

/* Whether a stranger has put this link into a folder that all may write to, by the rule of Linux's
 * fs.protected_symlinks: the link is neither the user's nor the folder's owner's. */
static bool is_strangers_link(const char *path) {
    struct stat link, folder;
    char above[PATH_MAX];
    if (lstat(path, &link) != 0 || !S_ISLNK(link.st_mode) || link.st_uid == geteuid()) return false;
    (void)snprintf(above, sizeof above, "%s", path);
    char *slash = strrchr(above, '/');
    if (slash) slash[slash == above] = 0;
    return stat(slash ? above : ".", &folder) == 0 && (folder.st_mode & S_ISVTX) &&
           (folder.st_mode & S_IWOTH) && link.st_uid != folder.st_uid;
}

/* Whether the path, or a folder on the way to it, is such a link. */
static bool has_strangers_link(const char *path) {
    char part[PATH_MAX];
    memcpy(part, path, strlen(path) + 1);
    for (char *slash = part; (slash = strchr(slash + 1, '/')); *slash = '/') {
        *slash = 0;
        if (is_strangers_link(part)) return true;
    }
    return is_strangers_link(part);
}

/* Follows links, also to a file that does not exist yet. False with errno ELOOP: a stranger's link
 * is on the way. */
static bool resolve(const char *path, char *resolved, size_t size) {
    enum { MOST_LINKS = 40 };
    char real[PATH_MAX];
    bool is_good = !has_strangers_link(path);
    memcpy(resolved, path, strlen(path) + 1);
    for (int i = 0; is_good && i < MOST_LINKS && follow(resolved, size); i++)
        is_good = !has_strangers_link(resolved);
    if (!is_good) return errno = ELOOP, false;
    if (realpath(resolved, real)) memcpy(resolved, real, strlen(real) + 1);
    return true;
}

/* "PATH.XXXXXX", with letters and digits that no other file has. */
static void choose_name(wb_replacement *r) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    static uint32_t count; /* __atomic */
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t number = (uint64_t)now.tv_nsec * 2654435761u + (uint64_t)getpid() * 40503u +
                      __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
    char end[8] = ".";
    for (int i = 1; i < 7; i++, number /= 62) end[i] = letters[number % 62];
    (void)snprintf(r->fresh, sizeof r->fresh, "%s%.7s", r->path, end);
}

/* A new file, locked as long as it is open, so that no other program takes it for abandoned; if it
 * was removed before it was locked, another one is made. If it replaces a file, only the user can
 * read it until it has the old one's permissions. */
static int make_fresh(wb_replacement *r) {
    enum { TRIES = 1000 };
    const mode_t mode = access(r->path, F_OK) == 0 ? 0600 : 0666;
    struct stat status;
    for (int i = 0; i < TRIES; i++) {
        choose_name(r);
        const int file = open(r->fresh, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
        if (file < 0 && errno == EEXIST) continue;
        if (file < 0) return -1;
        (void)flock(file, LOCK_EX | LOCK_NB); /* where there are no locks, nothing is abandoned */
        if (fstat(file, &status) == 0 && status.st_nlink > 0) return file;
        (void)close(file);
    }
    return -1;
}

bool wb_replace_is_abandoned(int folder, const char *name) {
    const int file = openat(folder, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    const bool is_abandoned = file >= 0 && flock(file, LOCK_EX | LOCK_NB) == 0;
    if (file >= 0) (void)close(file);
    return is_abandoned;
}

const char *wb_replace_words(int why) {
    if (why == ENOTSUP) return "it must be a regular file, got a pipe or a device";
    if (why == ELOOP)
        return "a link on the way to it belongs to another user, in a folder that all may write "
               "to";
    return strerror(why);
}

bool wb_replace_begin(wb_replacement *r, const char *path) {
    struct stat status;
    if (strlen(path) >= sizeof r->path) return errno = ENAMETOOLONG, false;
    if (!resolve(path, r->path, sizeof r->path)) return false;
    if (stat(r->path, &status) == 0 && !S_ISREG(status.st_mode))
        return errno = S_ISDIR(status.st_mode) ? EISDIR : ENOTSUP, false;
    const int file = make_fresh(r);
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
