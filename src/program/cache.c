/* Each entry is one file: a header, the name, the data. A checksum covers them. It is written under
 * another name and then renamed; an entry that is damaged or belongs to another name is treated as
 * missing. */
#include "program/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "platform/process.h"
#include "program/text.h"

/* In front of an entry's name and its data. */
typedef struct header {
    char magic[8];
    uint64_t name_bytes, data_bytes, checksum;
} header;

static const char magic[8] = {'w', 'e', 'b', 'e', 'r', 'k', '0', '1'};

/* FNV-1a, eight bytes at a time. */
static uint64_t hash_bytes(uint64_t hash, const void *data, size_t size_bytes) {
    const unsigned char *at = data;
    for (; size_bytes >= 8; at += 8, size_bytes -= 8) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        hash = (hash ^ word) * 0x100000001B3ull;
        hash ^= hash >> 32;
    }
    for (; size_bytes > 0; at++, size_bytes--) hash = (hash ^ *at) * 0x100000001B3ull;
    return hash;
}

static uint64_t checksum(const char *name, const void *data, size_t size_bytes) {
    return hash_bytes(wb_text_hash(0, name), data, size_bytes);
}

/* ---- the folder ---- */

static bool is_set(const char *value) { return value && value[0]; }

/* False where there is to be no cache. */
static bool choose_folder(char path[PATH_MAX]) {
    const char *own = wb_platform_trusted_variable("WEBER_CACHE"),
               *xdg = wb_platform_trusted_variable("XDG_CACHE_HOME"),
               *home = wb_platform_trusted_variable("HOME");
    int size = 0;
    if (own)
        size = is_set(own) ? snprintf(path, PATH_MAX, "%s", own) : 0;
    else if (is_set(xdg) && xdg[0] == '/') /* relative ones are invalid: XDG Base Directory */
        size = snprintf(path, PATH_MAX, "%s/weber", xdg);
    else if (is_set(home))
        size = snprintf(path, PATH_MAX, "%s/.cache/weber", home);
    return size > 0 && size < PATH_MAX;
}

bool wb_cache_wanted(void) {
    char path[PATH_MAX];
    return choose_folder(path);
}

/* Makes the folder, and those above it. */
static bool make_folder(char *path) {
    for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        const bool made = mkdir(path, 0700) == 0 || errno == EEXIST || errno == EISDIR ||
                          errno == EROFS || errno == EACCES;
        *slash = '/';
        if (!made) return false;
    }
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

/* No other user may be able to write there. */
static bool is_ours(const struct stat *s) {
    return s->st_uid == geteuid() && (s->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* Appends /NAME of harmless letters. */
static bool append(char path[PATH_MAX], const char *name) {
    size_t size = strlen(path);
    if (size + strlen(name) + 2 > PATH_MAX) return false;
    path[size++] = '/';
    for (const char *at = name; *at; at++) {
        const bool is_harmless = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
                                 (*at >= '0' && *at <= '9') || *at == '_' || *at == '-';
        path[size++] = is_harmless ? *at : '_';
    }
    path[size] = 0;
    return true;
}

/* The backend's folder, checked; makes it if asked to. */
static bool find_folder(char path[PATH_MAX], const char *backend, bool make) {
    struct stat s;
    if (!choose_folder(path) || (make && !make_folder(path))) return false;
    if (stat(path, &s) != 0 || !S_ISDIR(s.st_mode) || !is_ours(&s)) return false;
    if (!append(path, backend) || (make && mkdir(path, 0700) != 0 && errno != EEXIST)) return false;
    return lstat(path, &s) == 0 && S_ISDIR(s.st_mode) && is_ours(&s);
}

static bool find_file(char path[PATH_MAX], const char *backend, const char *name, bool make) {
    char file[32];
    (void)snprintf(file, sizeof file, "%016llx", (unsigned long long)wb_text_hash(0, name));
    return find_folder(path, backend, make) && append(path, file);
}

/* ---- files ---- */

static bool read_all(int file, void *data, size_t size_bytes) {
    for (char *at = data; size_bytes > 0;) {
        const ssize_t more = read(file, at, size_bytes);
        if (more < 0 && errno == EINTR) continue;
        if (more <= 0) return false;
        at += more, size_bytes -= (size_t)more;
    }
    return true;
}

static bool write_all(int file, const void *data, size_t size_bytes) {
    for (const char *at = data; size_bytes > 0;) {
        const ssize_t more = write(file, at, size_bytes);
        if (more < 0 && errno == EINTR) continue;
        if (more <= 0) return false;
        at += more, size_bytes -= (size_t)more;
    }
    return true;
}

/* The header of an entry of this name whose file is as long as it has to be. */
static bool read_header(int file, const char *name, header *h) {
    struct stat s;
    if (fstat(file, &s) != 0 || !S_ISREG(s.st_mode) || !is_ours(&s)) return false;
    const uint64_t size = (uint64_t)s.st_size, name_bytes = strlen(name);
    return read_all(file, h, sizeof *h) && memcmp(h->magic, magic, sizeof magic) == 0 &&
           h->name_bytes == name_bytes && h->data_bytes < size &&
           size == sizeof *h + name_bytes + h->data_bytes;
}

/* Name and data in one block; the data is moved to its beginning. */
static void *read_entry(int file, const char *name, size_t *size_bytes) {
    header h;
    if (!read_header(file, name, &h)) return NULL;
    char *block = wb_alloc(wb_bytes((int64_t)(h.name_bytes + h.data_bytes + 1)));
    if (!block) return NULL;
    const bool is_whole = read_all(file, block, (size_t)(h.name_bytes + h.data_bytes)) &&
                          memcmp(block, name, (size_t)h.name_bytes) == 0;
    memmove(block, block + h.name_bytes, (size_t)h.data_bytes);
    if (is_whole && checksum(name, block, (size_t)h.data_bytes) == h.checksum) {
        *size_bytes = (size_t)h.data_bytes;
        return block;
    }
    wb_release(block);
    return NULL;
}

bool wb_cache_read(const char *backend, const char *name, void **data, size_t *size_bytes) {
    char path[PATH_MAX];
    *data = NULL;
    if (!find_file(path, backend, name, false)) return false;
    const int file = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0) return false;
    *data = read_entry(file, name, size_bytes);
    (void)close(file);
    return *data != NULL;
}

void wb_cache_write(const char *backend, const char *name, const void *data, size_t size_bytes) {
    char path[PATH_MAX], part[PATH_MAX + 16];
    if (!find_file(path, backend, name, true)) return;
    header h = {.name_bytes = strlen(name),
                .data_bytes = size_bytes,
                .checksum = checksum(name, data, size_bytes)};
    memcpy(h.magic, magic, sizeof magic);
    (void)snprintf(part, sizeof part, "%s.XXXXXX", path);
    const int file = mkstemp(part); /* 0600 */
    if (file < 0) return;
    bool written = write_all(file, &h, sizeof h) && write_all(file, name, (size_t)h.name_bytes) &&
                   write_all(file, data, size_bytes);
    written = close(file) == 0 && written;
    if (!written || rename(part, path) != 0) (void)unlink(part);
}
