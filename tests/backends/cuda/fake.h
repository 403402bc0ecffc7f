/* A GPU driver and its compiler that are none: the functions of backends/cuda/driver.h under CUDA's
 * names, or HIP's, over this process's memory and processor. It shows that a backend keeps the
 * driver's rules; how a GPU computes, or how fast, it cannot show.
 *
 * - Work is put off: a stream runs only when somebody waits for it, or for an event in it, or for
 *   one that it waits for itself; and no further than that. So what is read or overwritten without
 *   waiting is seen to be wrong. FAKE_CUDA_EAGER=1 does everything at once instead.
 * - A device's memory cannot be touched by the host (where the processor has protection keys),
 *   begins as NaN, and ends as NaN.
 * - Copies from and to pinned memory read and write it when they run; pageable memory is read at
 *   once, and waited for, as the driver's manual says.
 * - Kernels are compiled by g++ (tests/support/cuda_cpp.h) and kept on disk, in cache/ beside the
 *   library. Every second launch runs blocks and threads in the reverse order. A kernel that is
 *   given memory that is not there, or whose threads part at a barrier, ends the context: every
 *   call fails with the same error from then on.
 * - What a driver would take, but its manual does not promise, is a complaint: counted, and written
 *   to stderr.
 *
 * Variables: FAKE_CUDA_DEVICES (2), FAKE_CUDA_MEMORY (bytes of each, 1 GiB), FAKE_CUDA_PEERS (1:
 * devices reach each other's memory), FAKE_CUDA_FAIL=function:n:code (as fake_fail; function *:
 * any), FAKE_CUDA_ARCHITECTURE (sm_90, gfx90a:...), FAKE_CUDA_IDLE (1: kernels compute nothing and
 * memory begins as zero, so that what time is left is the host's), FAKE_CUDA_HAZARDS (1: two
 * threads that touch memory of their block, with no barrier between them, end the context as
 * well). */
#ifndef WB_TESTS_CUDA_FAKE_H
#define WB_TESTS_CUDA_FAKE_H

#include <stdbool.h>
#include <stddef.h>

/* What is there now, of all devices; then what was done so far. */
typedef struct fake_counts {
    long allocations, pinned, contexts, streams, events, modules, graphs, executables, programs;
    long calls, launches, copies, graph_launches, compilations, complaints;
} fake_counts;

/* These are found by dlsym in the library that stands for the driver. */
typedef fake_counts fake_count_fn(void);

/* How often the function, "cuEventRecord", was called so far; -1: there is none of that name. */
typedef long fake_calls_fn(const char *function);

/* The n-th call of the function from now on (n = 1: the next one) fails with code; NULL: of any
 * function. One that releases something does so nevertheless. n = 0: none fails. */
typedef void fake_fail_fn(const char *function, long n, int code);

/* The function that failed so; "" while none did. */
typedef const char *fake_failed_fn(void);

/* The n-th launch from now on ends its context. */
typedef void fake_fault_fn(long n);

/* Told of each piece of work when it is run: number of its stream, in the order in which they
 * were made, and "launch NAME", "upload", "download", "copy", "fill" or "graph". NULL: nobody is
 * told. */
typedef void fake_witness(int stream, const char *what);
typedef void fake_witness_fn(fake_witness *witness);

/* From now on time is made up: events see no time pass but launch_ms with each launch of an entry
 * with that word in its name, and what is spent. */
typedef void fake_clock_fn(const char *entry, double launch_ms);
typedef void fake_spend_fn(double ms);

/* Work for the stream of a library that stands for a vendor's: step is called, with the memory of
 * devices open, until it says that it is done; other threads may call the driver between. release
 * comes at the end, whatever became of the stream. Refused on a stream that is captured. */
typedef bool fake_host_step(void *argument);
typedef void fake_host_release(void *argument);
typedef int fake_host_fn(void *stream, fake_host_step *step, fake_host_release *release,
                         void *argument);

#endif
