/* Kernels in CUDA C and HIP as C++ for host_cpp_build, and one launch of them on the CPU
 * (tests/program/cuda/cuda_cpp.h). */
#ifndef WB_TESTS_CUDA_CPP_H
#define WB_TESTS_CUDA_CPP_H

#include <stdbool.h>
#include <stddef.h>

#define CUDA_CPP_HEADER         WB_TESTS_DIR "/program/cuda/cuda_cpp.h"
#define CUDA_CPP_HAZARDS_HEADER WB_TESTS_DIR "/program/cuda/hazards.h"
#define CUDA_CPP_OPTIONS                                                                           \
    "-std=gnu++17 -O1 -fwrapv -fno-gnu-unique -fno-math-errno -fno-strict-aliasing "               \
    "-ffp-contract=off"

/* With these and CUDA_CPP_HAZARDS defined, launches find hazards. The sanitizer's library is not
 * wanted. */
#define CUDA_CPP_HAZARD_OPTIONS                                                                    \
    CUDA_CPP_OPTIONS " -DCUDA_CPP_HAZARDS -fsanitize=thread "                                      \
                     "--param tsan-instrument-func-entry-exit=0 -nodefaultlibs -lgcc_s"

/* The text of a C++ file that has all kernels of `text`, for host_cpp_build with CUDA_CPP_OPTIONS;
 * to be freed. definitions: lines in front of it. */
char *cuda_cpp_text(const char *text, const char *definitions, int warp);

/* A kernel of an object from host_cpp_open. */
typedef struct cuda_cpp_entry {
    const char *name;
    int count; /* of its parameters */
    const unsigned short *sizes;
    const bool *are_pointers;
    void (*item)(void **parameters);
} cuda_cpp_entry;

/* NULL: there is none of that name. */
const cuda_cpp_entry *cuda_cpp_find(void *object, const char *name);

/* Runs all blocks, one after another, in the reverse order where is_reversed. Shared memory begins
 * as NaN in each. False: a block's threads do not meet at the same barriers. */
bool cuda_cpp_launch(void *object, const cuda_cpp_entry *entry, const unsigned grid[3],
                     const unsigned block[3], void **parameters, bool is_reversed);

/* The first hazard in the launches of the object so far, as text; NULL: none was found. */
const char *cuda_cpp_hazard(void *object, char *text, size_t text_bytes);

#endif
