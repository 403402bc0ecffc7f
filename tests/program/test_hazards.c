/* tests/program/cuda/hazards.h: which kernels have hazards in memory of a block, and which have
 * none. Stage `fake` of scripts/test looks for them in the library's own. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/cuda_cpp.h"
#include "support/host_cpp.h"
#include "support/support.h"

enum { THREADS = 64, WARP = 32 };

/* The body of a kernel of 64 threads in two warps; s: int[64] of the block, y: int[64]. */
static const struct row {
    const char *name, *body;
    bool has_hazard;
} rows[] = {
    {"each its own", "s[i] = i; y[i] = s[i];", false},
    {"a neighbour's behind a barrier", "s[i] = i; __syncthreads(); y[i] = s[i ^ 1];", false},
    {"a neighbour's", "s[i] = i; y[i] = s[i ^ 1];", true},
    {"one of another warp's", "s[i] = i; y[i] = s[63 - i];", true},
    {"a neighbour's behind its warp's barrier", "s[i] = i; __syncwarp(); y[i] = s[i ^ 1];", false},
    {"one of another warp behind that", "s[i] = i; __syncwarp(); y[i] = s[63 - i];", true},
    {"written when it was read behind a barrier",
     "s[i] = i; __syncthreads(); y[i] = s[63 - i]; __syncthreads(); s[i] = 0;", false},
    {"written when others read it", "s[i] = i; __syncthreads(); y[i] = s[63 - i]; s[i] = 0;", true},
    {"read by all, written by one", "s[i] = i; __syncthreads(); if (i == 5) s[0] = 7; y[i] = s[0];",
     true},
    {"read by all", "s[i] = i; __syncthreads(); y[i] = s[0];", false},
    {"two threads write", "s[i / 2] = i; __syncthreads(); y[i] = s[i];", true},
    {"bytes of one word", "((char *)s)[i] = (char)i; __syncthreads(); y[i] = s[i / 4];", false},
    {"a tree of sums",
     "s[i] = i; for (int h = 32; h > 0; h /= 2) { __syncthreads(); if (i < h) s[i] += s[i + h]; } "
     "if (i == 0) y[0] = s[0];",
     false},
    {"a tree of sums that all read",
     "s[i] = i; for (int h = 32; h > 0; h /= 2) { __syncthreads(); if (i < h) s[i] += s[i + h]; } "
     "y[i] = s[0];",
     true},
    {"the next block's",
     "if (blockIdx.x == 0 && i == 0) s[0] = 1; if (blockIdx.x == 1) y[i] = s[0];", false},
};

static void *build(const char *body) {
    static char log[1 << 14];
    char text[2048];
    size_t bytes = 0;
    (void)snprintf(text, sizeof text,
                   "extern \"C\" __global__ void k(int *y) {\n    __shared__ int s[%d];\n"
                   "    const int i = (int)threadIdx.x;\n    %s\n}\n",
                   THREADS, body);
    char *cpp = cuda_cpp_text(text, "", WARP);
    void *object = host_cpp_build(cpp, CUDA_CPP_HAZARD_OPTIONS, &bytes, log, sizeof log);
    void *library = object ? host_cpp_open(object, bytes) : NULL;
    if (!library) fail_msg("%s: %s", body, object ? dlerror() : log);
    free(cpp), free(object);
    return library;
}

static void hazards_are_found_and_nothing_else(void **state) {
    (void)state;
    if (!host_cpp_is_there()) skip();
    for (size_t r = 0; r < 2 * sizeof rows / sizeof *rows; r++) {
        const struct row *row = &rows[r / 2];
        const bool is_reversed = r % 2; /* the order of turns makes no difference */
        const unsigned grid[3] = {2, 1, 1}, block[3] = {THREADS, 1, 1};
        int numbers[THREADS], *y = numbers;
        void *parameters[] = {&y};
        char text[256];
        void *library = build(row->body);
        assert_null(cuda_cpp_hazard(library, text, sizeof text));
        assert_true(cuda_cpp_launch(library, cuda_cpp_find(library, "k"), grid, block, parameters,
                                    is_reversed));
        const char *found = cuda_cpp_hazard(library, text, sizeof text);
        if (!found == row->has_hazard) fail_msg("%s: %s", row->name, found ? found : "no hazard");
        (void)dlclose(library);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(hazards_are_found_and_nothing_else)};
    return cmocka_run_group_tests_name("program/test_hazards", tests, NULL, NULL);
}
