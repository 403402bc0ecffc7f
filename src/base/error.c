/* The pending error of each thread. The first error stays until it is cleared, and later ones do
 * not replace it. Its message begins with the layers in which it arose. An error that nobody read
 * is logged when its thread or the program ends. */
#include "base/error.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/switch.h"
#include "platform/library.h"
#include "platform/plain.h"

static _Thread_local struct {
    wb_status status;
    bool was_read, was_told; /* the message, by the user; that a call was not run because of it */
    uint64_t count;          /* of all errors of the thread */
    wb_place *place;
    char message[WB_MESSAGE_BYTES];
} pending __attribute__((tls_model("initial-exec")));

const char *wb_status_text(wb_status status) {
    static const char *const texts[] = {
#define X(name, text) [WB_##name] = text,
        WB_STATUS_LIST(X)
#undef X
    };
    const size_t count = sizeof texts / sizeof *texts;
    return (size_t)status < count ? texts[status] : "unknown status";
}

void wb_place_push(wb_place *place) {
    place->outer = pending.place;
    pending.place = place;
}

void wb_place_pop(wb_place *place) { pending.place = place->outer; }

wb_place *wb_place_innermost(void) { return pending.place; }

wb_place *wb_places_leave(void) {
    wb_place *place = pending.place;
    pending.place = NULL;
    return place;
}

void wb_places_return(wb_place *place) { pending.place = place; }

size_t wb_places_text(char *text, size_t size) {
    size_t used = 0;
    for (const wb_place *p = pending.place; p && used + 1 < size; p = p->outer) {
        p->describe(p, text + used, size - used);
        const size_t length = strlen(text + used);
        used += length;
        const char *separator = p->outer ? (length ? ", " : "") : ": ";
        used += (size_t)snprintf(text + used, size - used, "%s", separator);
    }
    return used < size ? used : size - 1;
}

/* ---- errors that were never read ---- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;

static void tell_unread(void) {
    if (pending.status == WB_OK || pending.was_read) return;
    wb_log_line(WB_LOG_ERROR, "an error was never read: %s", pending.message);
    pending.was_read = true;
}

static void thread_ends(void *unused) {
    (void)unused;
    tell_unread();
}

static void watch_ends(void) {
    (void)atexit(tell_unread); /* on the thread that calls exit */
    (void)pthread_key_create(&key, thread_ends);
}

wb_status wb_not_run(const char *function) {
    if (!pending.was_told)
        wb_log_line(WB_LOG_WARN, "%s: not run: an earlier error is pending: %s", function,
                    pending.message);
    pending.was_told = true;
    return pending.status;
}

/* WEBER_DEBUG=where */
static void add_caller(void) {
    static wb_switch where = {.variable = "WEBER_DEBUG", .word = "where"};
    enum { MOST = 12 };
    void *addresses[MOST];
    char command[600];
    if (!wb_is_on(&where)) return;
    const int count = wb_platform_callers(addresses, MOST);
    if (wb_platform_line_command(addresses, count, command, sizeof command))
        wb_error_add("called at: %s", command);
}

wb_status wb_fail(wb_status status, const char *format, ...) {
    if (pending.status != WB_OK) return status;
    (void)pthread_once(&once, watch_ends);
    (void)pthread_setspecific(key, &pending);
    pending.was_read = pending.was_told = false;
    pending.status = status;
    pending.count++;
    const size_t used = wb_places_text(pending.message, sizeof pending.message);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(pending.message + used, sizeof pending.message - used, format, args);
    va_end(args);
    add_caller();
    return status;
}

uint64_t wb_error_count(void) { return pending.count; }

wb_status wb_error_prefix(uint64_t since, const char *format, ...) {
    char message[WB_MESSAGE_BYTES];
    va_list args;
    if (pending.status == WB_OK || pending.count == since) return pending.status;
    va_start(args, format);
    const int used = vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (used < 0 || (size_t)used >= sizeof message) return pending.status;
    (void)snprintf(message + used, sizeof message - (size_t)used, "%s", pending.message);
    memcpy(pending.message, message, sizeof message);
    return pending.status;
}

void wb_error_add(const char *format, ...) {
    char words[700];
    va_list args;
    if (pending.status == WB_OK) return;
    va_start(args, format);
    (void)vsnprintf(words, sizeof words, format, args);
    va_end(args);
    const size_t used = strlen(pending.message);
    if (strstr(pending.message, words) || used + strlen(words) + sizeof "; " > WB_MESSAGE_BYTES)
        return;
    (void)snprintf(pending.message + used, sizeof pending.message - used, "; %s", words);
}

bool wb_check_start(const char *function, wb_start start) {
    if (start == WB_MADE_) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT,
                  "%s: the desc lacks its defaults: make it by WB_DESC, as wb_dense_desc d = "
                  "WB_DESC(dense, 2, 3), or call the macro (weber/desc.h)",
                  function);
    return false;
}

bool wb_check_list(const char *function, int64_t count, const void *list) {
    if (count == 0 || (count > 0 && list)) return true;
    if (count < 0)
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: a list must not have a negative length, got %lld",
                      function, (long long)count);
    else
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: a list of %lld entries is NULL", function,
                      (long long)count);
    return false;
}

void *wb_fail_argument_null(const char *function, const char *what) {
    (void)wb_fail(WB_ERROR_ARGUMENT, "%s: %s is NULL", function, what);
    return NULL;
}

bool wb_failed(void) { return pending.status != WB_OK; }
wb_status wb_error_status(void) { return pending.status; }
const char *wb_error_text(void) { return pending.status == WB_OK ? "" : pending.message; }
const char *wb_error_message(void) {
    pending.was_read = true;
    return wb_error_text();
}
void wb_clear_error(void) { pending.status = WB_OK; }

int wb_report(const char *what) {
    if (pending.status == WB_OK) return 0;
    wb_log_line(WB_LOG_ERROR, "%s: %s", what ? what : "weber", pending.message);
    wb_clear_error();
    return 1;
}

bool wb_try(wb_status status) {
    if (status == WB_OK) return true;
    wb_log_line(WB_LOG_INFO, "not done: %s", wb_error_text());
    wb_clear_error();
    return false;
}

wb_status wb_take_error(char *text, size_t size_bytes) {
    const wb_status status = pending.status;
    if (text && size_bytes) (void)snprintf(text, size_bytes, "%s", wb_error_text());
    wb_clear_error();
    return status;
}

void wb_error_put_aside(wb_error_aside *aside) {
    aside->status = pending.status;
    if (pending.status == WB_OK) return;
    aside->was_read = pending.was_read, aside->was_told = pending.was_told;
    memcpy(aside->message, pending.message, sizeof pending.message);
    wb_clear_error();
}

void wb_error_bring_back(const wb_error_aside *aside) {
    if (aside->status == WB_OK) return;
    pending.status = aside->status;
    pending.was_read = aside->was_read, pending.was_told = aside->was_told;
    memcpy(pending.message, aside->message, sizeof pending.message);
}

static void to_stderr(void *context, wb_log_level level, const char *line) {
    (void)context;
    static const char *const names[] = {[WB_LOG_ERROR] = "error",
                                        [WB_LOG_WARN] = "warning",
                                        [WB_LOG_INFO] = "info",
                                        [WB_LOG_DEBUG] = "debug"};
    char plain[4096]; /* one piece, so that lines of threads do not mix */
    const int begun = snprintf(plain, sizeof plain, "weber %s: ", names[level]);
    (void)wb_plain_text(plain, sizeof plain, (size_t)begun, line, true);
    (void)fprintf(stderr, "%s\n", plain);
}

static struct {
    wb_log_fn *hook;
    void *context;
} sink = {to_stderr, NULL};

void wb_log_to(wb_log_fn *hook, void *context) {
    sink.hook = hook ? hook : to_stderr;
    sink.context = hook ? context : NULL;
}

static wb_log_level shown(void) {
    const char *asked = getenv("WEBER_LOG");
    if (!asked) return WB_LOG_WARN;
    if (strcmp(asked, "error") == 0) return WB_LOG_ERROR;
    if (strcmp(asked, "info") == 0) return WB_LOG_INFO;
    return strcmp(asked, "debug") == 0 ? WB_LOG_DEBUG : WB_LOG_WARN;
}

static void log_line(wb_log_level level, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));
static void log_line(wb_log_level level, const char *format, va_list args) {
    char line[2048];
    (void)vsnprintf(line, sizeof line, format, args);
    sink.hook(sink.context, level, line);
}

void wb_log_line(wb_log_level level, const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (level <= shown()) log_line(level, format, args);
    va_end(args);
}

void wb_log_always(const char *format, ...) {
    va_list args;
    va_start(args, format);
    log_line(WB_LOG_INFO, format, args);
    va_end(args);
}
