/* What tests do otherwise where a sanitizer makes them slow: a tenth of the sizes finds the same
 * faults, and definitions that others are compared with need not be watched. */
#ifndef WB_TESTS_SANITIZED_H
#define WB_TESTS_SANITIZED_H

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#if !defined(SANITIZED) && defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* Released nodes rest before they are used again, as src/array/thread.c has it in builds that look
 * for errors: nodes are asked of the system until so many rest. */
#if SANITIZED || !defined(NDEBUG)
#define NODES_REST 1
#else
#define NODES_REST 0
#endif

/* A function that sanitizers leave as it is, with those that it calls if they say so, too. */
#if SANITIZED
#ifdef __clang__
#define UNWATCHED __attribute__((no_sanitize("address", "undefined")))
#else
#define UNWATCHED __attribute__((no_sanitize("address", "undefined"), optimize("O2")))
#endif
#else
#define UNWATCHED
#endif

#endif
