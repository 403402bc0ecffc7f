/* OpenCL C by the rules of NVIDIA's compiler, as far as clang can say: OpenCL C 1.2 for its target,
 * without extensions that it does not have, warnings as errors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/dialects.h"
#include "support/host_cpp.h"

/* -D: an older clang, which says so. */
#define LANGUAGE                                                                                   \
    "-x cl -cl-std=CL1.2 -target nvptx64-unknown-unknown -cl-no-stdinc -include opencl-c.h "       \
    "-Xclang -cl-ext=-all,+cl_khr_fp64,+cl_khr_global_int32_base_atomics,"                         \
    "+cl_khr_global_int32_extended_atomics,+cl_khr_local_int32_base_atomics,"                      \
    "+cl_khr_local_int32_extended_atomics,+cl_khr_byte_addressable_store "                         \
    "-U__clang_major__ -D__clang_major__=7 -Wno-builtin-macro-redefined "

/* Texts are made: not all that is named in them is used, and x >= x asks whether x is a number. */
#define WARNINGS                                                                                   \
    "-Wall -Wextra -Wpedantic -Werror -Wno-unused -Wno-unused-parameter -Wno-tautological-compare"

bool clang_is_there(char *reason, size_t reason_bytes) {
    static int is_there = -1;
    if (is_there < 0) is_there = system("clang --version >/dev/null 2>&1") == 0;
    if (!is_there) (void)snprintf(reason, reason_bytes, "clang is not installed");
    return is_there;
}

/* False: one of the pragmas in what the preprocessor left is not known to every clang. */
static bool knows_pragmas(const char *text, char log[DIALECT_LOG]) {
    static const char *const known[] = {"#pragma OPENCL EXTENSION ", "#pragma OPENCL FP_CONTRACT ",
                                        "#pragma unroll"};
    for (const char *at = text; (at = strstr(at, "#pragma ")); at++) {
        bool is_known = false;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            is_known = is_known || strncmp(at, known[i], strlen(known[i])) == 0;
        if (is_known) continue;
        (void)snprintf(log, DIALECT_LOG, "not every compiler knows %.*s", (int)strcspn(at, "\n"),
                       at);
        return false;
    }
    return true;
}

bool clang_check(const char *text, char log[DIALECT_LOG]) {
    size_t size = 0;
    char *read = host_cpp_through("clang", text, LANGUAGE "-E -P", &size, log, DIALECT_LOG);
    const bool is_plain = read && knows_pragmas(read, log);
    free(read);
    if (!is_plain) return false;
    char *nothing = host_cpp_through("clang", text, LANGUAGE "-fsyntax-only " WARNINGS, &size, log,
                                     DIALECT_LOG);
    free(nothing);
    return nothing;
}
