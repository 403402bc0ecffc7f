/* What a weber run that was killed has left in shared memory. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform/files.h"
#include "tool.h"

enum { NAME_BYTES = 80 };
static const char ending[] = "-ended";

/* "weber-PROCESS-DIGITS-ended", which is there as long as its run. */
static bool is_of_run(const char *name) {
    long process;
    int end = 0;
    return strlen(name) + 2 < NAME_BYTES &&
           sscanf(name, "weber-%ld-%*16[0-9a-f]%n", &process, &end) == 1 && end > 0 &&
           strcmp(name + end, ending) == 0;
}

/* True if the file is the user's and no process holds a lock on it: weber run and ranks lock their
 * files as long as they run. True also if there is no file. */
static bool is_free(const char *name) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct stat about;
    const int file = wb_platform_open_shared(name, O_RDWR | O_CLOEXEC);
    if (file < 0) return true;
    const bool found = fstat(file, &about) == 0 && about.st_uid == geteuid() &&
                       fcntl(file, F_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
    (void)close(file);
    return found;
}

static void clear(const char *name) {
    char ended[NAME_BYTES + 1], memory[NAME_BYTES + 1];
    (void)snprintf(ended, sizeof ended, "/%.*s", NAME_BYTES - 1, name);
    (void)snprintf(memory, sizeof memory, "%.*s", (int)(strlen(ended) + 1 - sizeof ending), ended);
    if (!is_free(ended) || !is_free(memory)) return;
    wb_platform_unlink_shared(memory);
    wb_platform_unlink_shared(ended);
}

void tool_clear_leftovers(void) {
    DIR *folder = opendir(wb_platform_shared_place);
    for (const struct dirent *e; folder && (e = readdir(folder));)
        if (is_of_run(e->d_name)) clear(e->d_name);
    if (folder) (void)closedir(folder);
}

bool tool_hold(int file) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(file, F_SETLK, &lock) == 0;
}
