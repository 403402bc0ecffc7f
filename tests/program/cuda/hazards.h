/* Hazards in memory of a block: two threads touch a byte of it, one of them writes, and no barrier
 * is between them. g++ calls a function before each access (-fsanitize=thread); these take the
 * place of the sanitizer's own. A barrier of a warp orders threads of that warp alone.
 *
 * Of those that have read a byte the last two are remembered, and the last that wrote it. */

#define CUDA_CPP_UNSEEN __attribute__((no_sanitize("thread")))

enum { CUDA_CPP_THREADS = 1024, CUDA_CPP_SHARED_BYTES = 1 << 18 };

/* Barriers that a thread has passed in a block. */
struct cuda_cpp_epoch {
    unsigned block, group, warp;
};

struct cuda_cpp_touch {
    cuda_cpp_epoch at;
    short thread;
};

struct cuda_cpp_byte {
    cuda_cpp_touch writer, readers[2];
};

static cuda_cpp_epoch cuda_cpp_epochs[CUDA_CPP_THREADS];
static cuda_cpp_byte cuda_cpp_bytes[CUDA_CPP_SHARED_BYTES];

extern "C" {
unsigned cuda_cpp_block; /* number of the one that runs, from 1 on; who runs them counts */
/* The first hazard: threads, and the byte; threads[1] < 0: none so far. */
struct {
    int threads[2];
    long byte;
    int has_written[2];
} cuda_cpp_hazard = {{-1, -1}, 0, {0, 0}};
}

CUDA_CPP_UNSEEN static cuda_cpp_epoch &cuda_cpp_now(int thread) {
    cuda_cpp_epoch &now = cuda_cpp_epochs[thread];
    if (now.block != cuda_cpp_block) now = {cuda_cpp_block, 0, 0};
    return now;
}

CUDA_CPP_UNSEEN static void cuda_cpp_passed(int size) {
    cuda_cpp_epoch &now = cuda_cpp_now(cuda_cpp_lane());
    (size ? now.warp : now.group)++;
}

CUDA_CPP_UNSEEN static bool cuda_cpp_is_ordered(const cuda_cpp_touch &before, int thread,
                                                const cuda_cpp_epoch &now) {
    if (before.at.block != now.block || before.at.group != now.group) return true;
    if (before.thread == thread) return true;
    return before.thread / CUDA_CPP_WARP == thread / CUDA_CPP_WARP && before.at.warp != now.warp;
}

CUDA_CPP_UNSEEN static void cuda_cpp_touched(const void *address, int size, bool writes) {
    const char *at = (const char *)address;
    if (at < __start_cuda_shared || at >= __stop_cuda_shared || cuda_cpp_hazard.threads[1] >= 0)
        return;
    const int thread = cuda_cpp_lane();
    const cuda_cpp_epoch now = cuda_cpp_now(thread);
    const long first = at - __start_cuda_shared;
    for (long i = first; i < first + size && i < CUDA_CPP_SHARED_BYTES; i++) {
        cuda_cpp_byte &byte = cuda_cpp_bytes[i];
        const cuda_cpp_touch *others[] = {&byte.writer, &byte.readers[0], &byte.readers[1]};
        for (int k = 0; k < (writes ? 3 : 1); k++)
            if (!cuda_cpp_is_ordered(*others[k], thread, now))
                cuda_cpp_hazard = {{others[k]->thread, thread}, i, {k == 0, writes}};
        const cuda_cpp_touch self = {now, (short)thread};
        if (writes) {
            byte.writer = self;
        } else {
            if (byte.readers[0].thread != thread) byte.readers[1] = byte.readers[0];
            byte.readers[0] = self;
        }
    }
}

#define CUDA_CPP_ACCESS(name, size, writes)                                                        \
    __attribute__((visibility("hidden"))) CUDA_CPP_UNSEEN void __tsan_##name(void *at) {           \
        cuda_cpp_touched(at, size, writes);                                                        \
    }
#define CUDA_CPP_ACCESSES(size)                                                                    \
    CUDA_CPP_ACCESS(read##size, size, false)                                                       \
    CUDA_CPP_ACCESS(write##size, size, true)                                                       \
    CUDA_CPP_ACCESS(unaligned_read##size, size, false)                                             \
    CUDA_CPP_ACCESS(unaligned_write##size, size, true)

extern "C" {
CUDA_CPP_ACCESS(read1, 1, false)
CUDA_CPP_ACCESS(write1, 1, true)
CUDA_CPP_ACCESSES(2)
CUDA_CPP_ACCESSES(4)
CUDA_CPP_ACCESSES(8)
CUDA_CPP_ACCESSES(16)
__attribute__((visibility("hidden"))) CUDA_CPP_UNSEEN void __tsan_init() {}
__attribute__((visibility("hidden"))) CUDA_CPP_UNSEEN void __tsan_read_range(void *at, long size) {
    cuda_cpp_touched(at, (int)size, false);
}
__attribute__((visibility("hidden"))) CUDA_CPP_UNSEEN void __tsan_write_range(void *at, long size) {
    cuda_cpp_touched(at, (int)size, true);
}
}
