/* Apple's runtime and Metal for tests: the functions and messages of backends/metal/objc.def over
 * this process's memory and processor. It shows that the backend keeps Apple's rules; whether
 * Apple's compiler takes a text, how fast a GPU is, and its real hazards it cannot show.
 *
 * - Work is put off: a command buffer runs only when somebody waits for it, or for what comes after
 *   it; and no further than that. What is read or overwritten without waiting is seen to be wrong.
 * - Objects count their references. A message to a released one ends the process, and so does what
 *   Apple's validation ends it for: an encoder that is used after its end or never ended, a second
 *   encoder beside an open one, a second commit, a wait without a commit, an index above 30, bytes
 *   above 4,095, a kernel whose buffers are not bound.
 * - Buffers begin as NaN, with NaN around them, and end unmapped. Private ones have no contents.
 * - Kernels are compiled by g++ (tests/support/metal_cpp.h) and kept on disk. Every second launch
 *   runs groups and threads in the reverse order.
 * - What would leak, or is right only by luck, is a complaint: counted, and written to stderr. So
 *   are an autoreleased object without a pool, pools that are popped in the wrong order, a compile
 *   with fast math, a write around a buffer.
 *
 * Variables: FAKE_METAL_DEVICES (1), FAKE_METAL_MEMORY (bytes of each, 1 GiB), FAKE_METAL_UNIFIED
 * (1), FAKE_METAL_FAMILY (1007, Apple7; the highest), FAKE_METAL_OLD (0; 1: before macOS 15,
 * without setMathMode:; 2: macOS 12, without matrices that begin within a buffer),
 * FAKE_METAL_THREADS (1024, of a pipeline), FAKE_METAL_SIMD (32), FAKE_METAL_MPS (1),
 * FAKE_METAL_FAIL=selector:n:code (as fake_fail; selector *: any). */
#ifndef WB_TESTS_METAL_FAKE_H
#define WB_TESTS_METAL_FAKE_H

#include <stdbool.h>

/* What is there now; then what was done so far. Devices are not counted: they stay. */
typedef struct fake_counts {
    long objects, pools, buffers, references; /* references: to devices */
    long messages, commits, launches, products, compilations, archive_hits, complaints;
} fake_counts;

/* These are found by dlsym in the library that stands for Apple's. */
typedef fake_counts fake_count_fn(void);

/* The n-th call from now on (n = 1: the next one) of a message that may fail does, if it is
 * `selector` (NULL: any): it gives nil or NO, with an NSError of this code where it has one; commit
 * makes the command buffer end with this MTLCommandBufferError. n = 0: none fails. */
typedef void fake_fail_fn(const char *selector, long n, long code);

/* The selector that failed so; "" while none did. */
typedef const char *fake_failed_fn(void);

/* The device is removed: what was committed and is not done ends with deviceRemoved, as does all
 * that comes, and new objects are nil. False: it is back. */
typedef void fake_remove_fn(bool is_removed);

/* Writes all objects that are there to stderr, but for devices. */
typedef void fake_print_fn(void);

#endif
