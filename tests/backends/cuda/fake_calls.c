/* The doorway of all functions: lock, counts, errors on demand; and the functions' names. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake_driver.h"

fake_counts fake_count;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- names ---- */

static const char *const names[] = {
#ifdef FAKE_HIP
#define X(result, name, parameters) [FAKE_OWN_##name] = "hip" #name,
    GPU_HIP_LIST(X)
#undef X
#else
#define X(name, parameters) [FAKE_OWN_##name] = "cu" #name,
    GPU_CUDA_LIST(X)
#undef X
#define X(name, parameters) [FAKE_OWN_##name] = "nvrtc" #name,
        GPU_NVRTC_LIST(X)
#undef X
#endif
#define X(name, cuda, hip, parameters) [FAKE_##name] = FAKE_NAME(cuda, hip),
        GPU_DRIVER_LIST(X)
#undef X
#define X(result, name, cuda, hip, parameters) [FAKE_COMPILER_##name] = FAKE_NAME(cuda, hip),
            GPU_COMPILER_LIST(X)
#undef X
};

static long calls[FAKE_FUNCTION_COUNT]; /* of each */

/* ---- errors on demand ---- */

static struct {
    char function[64]; /* "": any */
    long left;
    int code;
    const char *failed;
} failing;

static void fail_from_environment(void) {
    static bool is_read;
    const char *text = getenv("FAKE_CUDA_FAIL");
    if (is_read) return;
    is_read = true;
    if (!text ||
        sscanf(text, "%63[^:]:%ld:%d", failing.function, &failing.left, &failing.code) != 3)
        return;
    if (strcmp(failing.function, "*") == 0) failing.function[0] = 0;
}

static bool has_to_fail(const char *name) {
    if (failing.left <= 0 || (failing.function[0] && strcmp(failing.function, name) != 0))
        return false;
    return --failing.left == 0;
}

gpu_code fake_enter(fake_function function) {
    pthread_mutex_lock(&lock);
    fail_from_environment();
    fake_count.calls++, calls[function]++;
    if (!has_to_fail(names[function])) return GPU_SUCCESS;
    failing.failed = names[function];
    return failing.code;
}

void fake_enter_unnamed(void) { pthread_mutex_lock(&lock); }

void fake_leave(const int *entered) {
    (void)entered;
    pthread_mutex_unlock(&lock);
}

void fake_pause(void) {
    const struct timespec moment = {0, 50000};
    pthread_mutex_unlock(&lock);
    (void)nanosleep(&moment, NULL);
    pthread_mutex_lock(&lock);
}

/* ---- what tests ask ---- */

FAKE_EXPORT fake_count_fn fake_count_now;
FAKE_EXPORT fake_calls_fn fake_calls_of;
FAKE_EXPORT fake_fail_fn fake_fail;
FAKE_EXPORT fake_failed_fn fake_failed;

fake_counts fake_count_now(void) {
    pthread_mutex_lock(&lock);
    const fake_counts now = fake_count;
    pthread_mutex_unlock(&lock);
    return now;
}

long fake_calls_of(const char *function) {
    int i = 0;
    while (i < FAKE_FUNCTION_COUNT && strcmp(names[i], function) != 0) i++;
    if (i == FAKE_FUNCTION_COUNT) return -1;
    pthread_mutex_lock(&lock);
    const long count = calls[i];
    pthread_mutex_unlock(&lock);
    return count;
}

void fake_fail(const char *function, long n, int code) {
    pthread_mutex_lock(&lock);
    fail_from_environment();
    (void)snprintf(failing.function, sizeof failing.function, "%s", function ? function : "");
    failing.left = n, failing.code = code, failing.failed = NULL;
    pthread_mutex_unlock(&lock);
}

const char *fake_failed(void) { return failing.failed ? failing.failed : ""; }

/* ---- what the parts share ---- */

void fake_complain(const char *format, ...) {
    va_list arguments;
    fake_count.complaints++;
    (void)fputs("fake driver: ", stderr);
    va_start(arguments, format);
    (void)vfprintf(stderr, format, arguments);
    va_end(arguments);
    (void)fputc('\n', stderr);
}

long fake_number(const char *variable, long otherwise) {
    const char *text = getenv(variable);
    return text && text[0] ? strtol(text, NULL, 10) : otherwise;
}

bool fake_is_idle(void) {
    static int idle = -1;
    if (idle < 0) idle = fake_number("FAKE_CUDA_IDLE", 0) != 0;
    return idle;
}

static fake_object *newest;

void *fake_object_new(fake_kind kind, size_t size_bytes) {
    fake_object *o = calloc(1, size_bytes);
    if (!o) return NULL;
    o->kind = kind;
    o->older = newest;
    return newest = o;
}

void *fake_object_of(fake_kind kind, const void *handle) {
    union {
        const void *handle;
        fake_object *object;
    } cast = {.handle = handle};
    return handle && cast.object->kind == kind ? cast.object : NULL;
}
