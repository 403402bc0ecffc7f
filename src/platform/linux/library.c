/* ELF and glibc's loader. */
#include "platform/library.h"

#include <dlfcn.h>
#include <elf.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "platform/process.h"

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

/* A program that is not relocatable has its addresses in the file; a return address comes
 * after the call. */
bool wb_platform_line_command(void *const *addresses, int count, char *text, size_t size_bytes) {
    Dl_info info;
    struct link_map *map = NULL;
    char path[PATH_MAX];
    if (count < 1 || !dladdr1(addresses[0], &info, (void **)&map, RTLD_DL_LINKMAP)) return false;
    const bool is_program = map && map->l_name && !map->l_name[0];
    if (!is_program || !wb_platform_program(path, sizeof path))
        (void)snprintf(path, sizeof path, "%s", info.dli_fname);
    const ElfW(Ehdr) *header = info.dli_fbase;
    const uintptr_t base = header->e_type == ET_EXEC ? 0 : (uintptr_t)info.dli_fbase;
    char word[PATH_MAX + 40];
    if (!wb_platform_quote(path, word, sizeof word)) return false;
    size_t used = (size_t)snprintf(text, size_bytes, "addr2line -pfe %s", word);
    for (int i = 0; i < count && used < size_bytes; i++)
        used += (size_t)snprintf(text + used, size_bytes - used, " 0x%llx",
                                 (unsigned long long)((uintptr_t)addresses[i] - base - 1));
    return used < size_bytes;
}
