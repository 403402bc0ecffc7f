/* Preloaded into a program: lets the FAIL_AT-th allocation fail that Weber's library asks for, and
 * with FAIL_ON=1 all after it as well. Threads and mappings count as allocations. COUNT_TO names a
 * file for their number. What the C library, the loader or the program ask for is left alone; with
 * FAIL_INSIDE=1 what the C library asks for in a call of Weber's counts, too (its streams). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static long counted;
static long fail_at; /* 0: none */
static bool goes_on, looks_inside;
static char early[1 << 16]; /* what dlsym asks for while the real functions are looked up */
static size_t early_used;

static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    void (*free)(void *);
    void *(*mmap)(void *, size_t, int, int, int, off_t);
    int (*pthread_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
} real;

static void look_up(void) {
    static bool looking;
    if (real.free || looking) return;
    looking = true;
    *(void **)&real.malloc = dlsym(RTLD_NEXT, "malloc");
    *(void **)&real.calloc = dlsym(RTLD_NEXT, "calloc");
    *(void **)&real.realloc = dlsym(RTLD_NEXT, "realloc");
    *(void **)&real.aligned_alloc = dlsym(RTLD_NEXT, "aligned_alloc");
    *(void **)&real.mmap = dlsym(RTLD_NEXT, "mmap");
    *(void **)&real.pthread_create = dlsym(RTLD_NEXT, "pthread_create");
    *(void **)&real.free = dlsym(RTLD_NEXT, "free");
    const char *at = getenv("FAIL_AT"), *on = getenv("FAIL_ON"), *inside = getenv("FAIL_INSIDE");
    fail_at = at ? atol(at) : 0;
    goes_on = on && *on == '1';
    looks_inside = inside && *inside == '1';
}

static bool is_of(const void *address, const char *library) {
    Dl_info info;
    return dladdr(address, &info) && info.dli_fname && strstr(info.dli_fname, library);
}

/* Whether the library's code is among the callers, and the loader's is not before it. */
static bool is_below(void) {
    enum { FRAMES = 14 };
    static _Thread_local bool is_looking; /* backtrace allocates at its first call */
    void *frames[FRAMES];
    if (is_looking) return false;
    is_looking = true;
    const int count = backtrace(frames, FRAMES);
    bool found = false;
    for (int i = 3; i < count && !found && !is_of(frames[i], "ld-linux"); i++)
        found = is_of(frames[i], "libweber");
    is_looking = false;
    return found;
}

static bool refuses(const void *caller) {
    if (!is_of(caller, "libweber") && !(looks_inside && is_below())) return false;
    const long number = __atomic_add_fetch(&counted, 1, __ATOMIC_RELAXED);
    return fail_at && (number == fail_at || (goes_on && number > fail_at));
}

#define CALLER __builtin_return_address(0)

void *malloc(size_t size) {
    look_up();
    if (!real.malloc) return NULL;
    if (!refuses(CALLER)) return real.malloc(size);
    errno = ENOMEM;
    return NULL;
}

void *calloc(size_t count, size_t size) {
    look_up();
    if (!real.calloc) { /* dlsym itself: zeroed, never released */
        void *block = early + early_used;
        early_used += (count * size + 15) & ~(size_t)15;
        return early_used <= sizeof early ? block : NULL;
    }
    if (!refuses(CALLER)) return real.calloc(count, size);
    errno = ENOMEM;
    return NULL;
}

void *realloc(void *block, size_t size) {
    look_up();
    if (!refuses(CALLER)) return real.realloc(block, size);
    errno = ENOMEM;
    return NULL;
}

void *aligned_alloc(size_t alignment, size_t size) {
    look_up();
    if (!refuses(CALLER)) return real.aligned_alloc(alignment, size);
    errno = ENOMEM;
    return NULL;
}

void free(void *block) {
    look_up();
    if ((char *)block >= early && (char *)block < early + sizeof early) return;
    if (real.free) real.free(block);
}

void *mmap(void *address, size_t size, int protection, int flags, int file, off_t offset) {
    look_up();
    if (!refuses(CALLER)) return real.mmap(address, size, protection, flags, file, offset);
    errno = ENOMEM;
    return MAP_FAILED;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                   void *argument) {
    look_up();
    if (!refuses(CALLER)) return real.pthread_create(thread, attributes, start, argument);
    return EAGAIN;
}

__attribute__((destructor)) static void tell(void) {
    const char *path = getenv("COUNT_TO");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file) return;
    fprintf(file, "%ld\n", counted);
    fclose(file);
}
