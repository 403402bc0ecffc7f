/* What all parts use: lock, counts, errors on demand, complaints. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake_metal.h"

fake_counts fake_count;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int fake_enter(void) { return pthread_mutex_lock(&lock); }

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

/* ---- errors on demand ---- */

static struct {
    char name[120]; /* "": any */
    long left, code;
    char failed[120];
    bool is_removed;
} failing;

static void fail_from_environment(void) {
    static bool is_read;
    const char *text = is_read ? NULL : getenv("FAKE_METAL_FAIL");
    const char *code = text ? strrchr(text, ':') : NULL;
    is_read = true;
    if (!code) return;
    const char *number = code;
    while (number > text && *--number != ':') continue; /* selectors have colons */
    (void)snprintf(failing.name, sizeof failing.name, "%.*s", (int)(number - text), text);
    if (strcmp(failing.name, "*") == 0) failing.name[0] = 0;
    failing.left = strtol(number + 1, NULL, 10);
    failing.code = strtol(code + 1, NULL, 10);
}

bool fake_has_to_fail(const char *name, long *code) {
    fail_from_environment();
    if (failing.left <= 0 || (failing.name[0] && strcmp(failing.name, name) != 0)) return false;
    if (--failing.left > 0) return false;
    (void)snprintf(failing.failed, sizeof failing.failed, "%s", name);
    *code = failing.code;
    return true;
}

bool fake_fails(mtl_selector selector, mtl_errors errors) {
    const char *name = fake_selector_name(selector);
    long code = 0;
    char text[200];
    if (!fake_has_to_fail(name, &code)) return false;
    (void)snprintf(text, sizeof text, "%s was told to fail", name);
    (void)fake_error_set(errors, "FakeErrorDomain", code, text);
    return true;
}

bool fake_is_removed(void) { return failing.is_removed; }

/* ---- complaints ---- */

static void say(const char *format, va_list arguments) {
    (void)fputs("fake metal: ", stderr);
    (void)vfprintf(stderr, format, arguments);
    (void)fputc('\n', stderr);
}

void fake_complain(const char *format, ...) {
    va_list arguments;
    fake_count.complaints++;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
}

void fake_abort(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
    abort();
}

long fake_number(const char *variable, long otherwise) {
    const char *text = getenv(variable);
    return text && text[0] ? strtol(text, NULL, 10) : otherwise;
}

/* ---- what tests ask ---- */

FAKE_EXPORT fake_count_fn fake_count_now;
FAKE_EXPORT fake_fail_fn fake_fail;
FAKE_EXPORT fake_failed_fn fake_failed;
FAKE_EXPORT fake_remove_fn fake_remove;

fake_counts fake_count_now(void) {
    FAKE_ENTER();
    return fake_count;
}

void fake_fail(const char *selector, long n, long code) {
    FAKE_ENTER();
    fail_from_environment();
    (void)snprintf(failing.name, sizeof failing.name, "%s", selector ? selector : "");
    failing.left = n, failing.code = code, failing.failed[0] = 0;
}

const char *fake_failed(void) { return failing.failed; }

void fake_remove(bool is_removed) {
    FAKE_ENTER();
    failing.is_removed = is_removed;
}
