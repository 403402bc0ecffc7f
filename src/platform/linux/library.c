/* ELF and glibc's loader. */
#include "platform/library.h"

#include <dlfcn.h>
#include <elf.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool wb_platform_library_is_whole(FILE *file, char *why, size_t why_bytes) {
    ElfW(Ehdr) header;
    struct stat status;
    if (fstat(fileno(file), &status) != 0 || fread(&header, sizeof header, 1, file) != 1)
        return true;
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phentsize != sizeof(ElfW(Phdr)))
        return true;
    for (int i = 0; i < header.e_phnum; i++) {
        ElfW(Phdr) part;
        const long at = (long)(header.e_phoff + (size_t)i * sizeof part);
        if (fseek(file, at, SEEK_SET) != 0 || fread(&part, sizeof part, 1, file) != 1)
            return (void)snprintf(why, why_bytes, "file too short"), false;
        const bool fits = part.p_offset <= (size_t)status.st_size &&
                          part.p_filesz <= (size_t)status.st_size - part.p_offset;
        if (fits) continue;
        (void)snprintf(why, why_bytes, "the file is cut short: it has %lld bytes",
                       (long long)status.st_size);
        return false;
    }
    return true;
}

/* "FILE: what is wrong" */
const char *wb_platform_loader_words(const char *message, const char *file) {
    const size_t length = strlen(file);
    if (message && strncmp(message, file, length) == 0 && strncmp(message + length, ": ", 2) == 0)
        message += length + 2;
    return message;
}

bool wb_platform_loader_says_absent(const char *message) {
    return strstr(message, "No such file") || strstr(message, "cannot open");
}

static int is_named(struct dl_phdr_info *info, size_t size, void *name) {
    const char *file = strrchr(info->dlpi_name, '/');
    (void)size;
    file = file ? file + 1 : info->dlpi_name;
    return strncmp(file, name, strlen(name)) == 0;
}

bool wb_platform_is_loaded(const char *begin) {
    union {
        const char *read;
        void *any; /* only read */
    } wanted = {.read = begin};
    return dl_iterate_phdr(is_named, wanted.any) != 0;
}

/* The loader's own list names the program "" and other files as they were opened. */
bool wb_platform_library_of(const void *address, char *path, size_t size_bytes) {
    Dl_info info;
    struct link_map *map = NULL;
    if (!dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) || !map || !map->l_name)
        return false;
    if (map->l_name[0] != '/') return false;
    return snprintf(path, size_bytes, "%s", map->l_name) < (int)size_bytes;
}
