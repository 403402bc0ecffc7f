/* Kernels in Metal's language as C++ (tests/program/metal): built by the host's g++, checked by
 * clang, and one launch of them on the CPU.
 *
 * What g++ would not notice is refused here: pointers without an address space, or with the wrong
 * one (where clang is installed), double, long long, positions of two widths. */
#ifndef WB_TESTS_METAL_CPP_H
#define WB_TESTS_METAL_CPP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* the language's version, 3.0, where nobody asks for one */
enum { METAL_CPP_VERSION = 300 };

enum { METAL_CPP_BUFFERS = 256, METAL_CPP_THREADS = 1024, METAL_CPP_SIMD = 32 };

/* The bytes of a shared object with all kernels of the text, to be freed. version: of the language,
 * 300 for 3.0. NULL: the log says why, with the text's lines. */
void *metal_cpp_build(const char *text, int version, size_t *size_bytes, char *log,
                      size_t log_bytes);

/* True if clang is there to check address spaces. */
bool metal_cpp_has_clang(void);

/* What decides what a text becomes, beside the text: of the headers and of how they are used. */
uint64_t metal_cpp_hash(void);

typedef struct metal_cpp_places metal_cpp_places;

/* A kernel of an object from host_cpp_open. */
typedef struct metal_cpp_entry {
    const char *name;
    int threads, count; /* at most so many threads in a group; buffers */
    const int *buffers; /* where they are bound */
    void (*item)(void *const *buffers, const metal_cpp_places *places);
} metal_cpp_entry;

/* NULL: there is none of that name. */
const metal_cpp_entry *metal_cpp_find(void *object, const char *name);

/* Runs all groups, one after another, in the reverse order where is_reversed. Memory of the group
 * begins as NaN in each. buffers: METAL_CPP_BUFFERS addresses. False: a group's threads do not meet
 * at the same barriers. */
bool metal_cpp_launch(void *object, const metal_cpp_entry *entry, const uint32_t groups[3],
                      const uint32_t threads[3], void *const *buffers, bool is_reversed);

#endif
