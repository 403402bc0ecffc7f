/* Mach-O and dyld. */
#include "platform/library.h"

#include <dlfcn.h>
#include <limits.h>
#include <mach-o/dyld.h>
#include <mach-o/loader.h>
#include <string.h>

/* dyld compares the header with the file's length itself. */
bool wb_platform_library_is_whole(FILE *file, char *why, size_t why_bytes) {
    return (void)file, (void)why, (void)why_bytes, true;
}

/* "dlopen(FILE, 0x0006): what is wrong" */
const char *wb_platform_loader_words(const char *message, const char *file) {
    static const char begin[] = "dlopen(", end[] = "): ";
    const size_t length = strlen(file);
    if (!message || strncmp(message, begin, sizeof begin - 1) != 0) return message;
    if (strncmp(message + sizeof begin - 1, file, length) != 0) return message;
    const char *words = strstr(message + sizeof begin - 1 + length, end);
    return words ? words + sizeof end - 1 : message;
}

/* "tried: 'PATH' (no such file), 'PATH' (no such file, not in dyld cache)"; what is there and
 * cannot be used has another reason in one of the brackets. */
bool wb_platform_loader_says_absent(const char *message) {
    static const char no_file[] = "(no such file", elsewhere[] = "(not in dyld cache";
    bool is_any = false;
    for (const char *at = message; (at = strstr(at, "' (")); at += 2) {
        const char *why = at + 2;
        if (strncmp(why, no_file, sizeof no_file - 1) != 0 &&
            strncmp(why, elsewhere, sizeof elsewhere - 1) != 0)
            return false;
        is_any = true;
    }
    return is_any || strstr(message, "image not found") || strstr(message, "no such file");
}

bool wb_platform_is_loaded(const char *begin) {
    for (uint32_t i = 0; i < _dyld_image_count(); i++) {
        const char *path = _dyld_get_image_name(i);
        const char *slash = path ? strrchr(path, '/') : NULL;
        const char *file = slash ? slash + 1 : path;
        if (file && strncmp(file, begin, strlen(begin)) == 0) return true;
    }
    return false;
}

bool wb_platform_library_of(const void *address, char *path, size_t size_bytes) {
    Dl_info info;
    if (!dladdr(address, &info) || !info.dli_fname || info.dli_fname[0] != '/') return false;
    const struct mach_header *header = info.dli_fbase;
    if (!header || header->filetype == MH_EXECUTE) return false;
    return snprintf(path, size_bytes, "%s", info.dli_fname) < (int)size_bytes;
}

bool wb_platform_line_command(void *const *addresses, int count, char *text, size_t size_bytes) {
    Dl_info info;
    char word[PATH_MAX + 40];
    if (count < 1 || !dladdr(addresses[0], &info)) return false;
    if (!wb_platform_quote(info.dli_fname, word, sizeof word)) return false;
    size_t used = (size_t)snprintf(text, size_bytes, "atos -o %s -l %p", word, info.dli_fbase);
    for (int i = 0; i < count && used < size_bytes; i++)
        used += (size_t)snprintf(text + used, size_bytes - used, " %p", addresses[i]);
    return used < size_bytes;
}
