/* Of the library that hipRTC stands on: which architectures it knows. The fake driver has one of
 * them. */
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int amd_comgr_get_isa_count(size_t *count);
EXPORT int amd_comgr_get_isa_name(size_t index, const char **name);

int amd_comgr_get_isa_count(size_t *count) {
    *count = 1;
    return 0;
}

int amd_comgr_get_isa_name(size_t index, const char **name) {
    *name = "amdgcn-amd-amdhsa--gfx90a";
    return index == 0 ? 0 : 1;
}
