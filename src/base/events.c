/* Writes the events of WEBER_TRACE to a file, those of all threads under one lock. The file is
 * complete JSON after each write: every write ends with "]", which the next one replaces. Each rank
 * has a file of its own. */
#include "base/events.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/switch.h"
#include "platform/locks.h"
#include "platform/process.h"

enum { BUFFER_BYTES = 1 << 16, LINE_BYTES = 2048, TEXT_BYTES = 512 };

static const char end[] = "\n]\n";     /* what is in the file is complete after each write */
static const double WRITE_EVERY = 0.2; /* seconds */

/* One file for the process; the lock guards all. */
static struct {
    int file;
    pid_t process;
    double start, written; /* seconds */
    off_t place;           /* of the end in the file */
    size_t used;
    int threads; /* threads that have recorded events */
    int rank;
    char buffer[BUFFER_BYTES];
} events = {.file = -1};
static pthread_once_t once = PTHREAD_ONCE_INIT;

static _Thread_local int this_thread __attribute__((tls_model("initial-exec")));

int wb_events_state;

/* ---- the file ---- */

/* Writes the buffer, then the file's end, which the next write replaces. A file that cannot be
 * written is given up. */
static void put_out(void) {
    const size_t length = events.used;
    memcpy(events.buffer + length, end, sizeof end - 1);
    const size_t bytes = length + sizeof end - 1;
    if (length && pwrite(events.file, events.buffer, bytes, events.place) != (ssize_t)bytes) {
        __atomic_store_n(&wb_events_state, WB_SWITCH_OFF, __ATOMIC_RELAXED);
        wb_log_line(WB_LOG_WARN, "WEBER_TRACE: the file cannot be written");
    }
    events.place += (off_t)length;
    events.used = 0;
    events.written = wb_clock();
}

static void put_line(const char *line, size_t length) {
    if (events.used + length + sizeof end > sizeof events.buffer) put_out();
    memcpy(events.buffer + events.used, line, length);
    events.used += length;
}

/* False in a child made by fork. */
static bool is_own_file(void) { return events.process == getpid(); }

static void finish(void) {
    if (!is_own_file()) return;
    wb_lock_take(WB_LOCK_EVENTS);
    put_out();
    wb_lock_give(WB_LOCK_EVENTS);
}

/* Rank 0 writes the file itself, rank 3 another one: file.json.3. */
static void open_file(const char *name) {
    const char *rank = getenv("WEBER_RANK");
    char line[LINE_BYTES], own[4096];
    events.rank = rank ? atoi(rank) : 0;
    (void)snprintf(own, sizeof own, events.rank ? "%s.%d" : "%s", name, events.rank);
    events.file = open(own, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (events.file < 0) {
        wb_log_line(WB_LOG_WARN, "WEBER_TRACE: %s cannot be written", own);
        return;
    }
    events.start = events.written = wb_clock();
    events.process = getpid();
    const int length = snprintf(line, sizeof line,
                                "[\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":"
                                "{\"name\":\"rank %d\"}}",
                                events.rank, events.rank);
    put_line(line, (size_t)length);
    put_out();
    (void)atexit(finish);
}

static void look_up(void) {
    const char *name = wb_platform_trusted_variable("WEBER_TRACE");
    if (name && *name) open_file(name);
    __atomic_store_n(&wb_events_state, events.file < 0 ? WB_SWITCH_OFF : WB_SWITCH_ON,
                     __ATOMIC_RELAXED);
}

bool wb_events_look_up(void) {
    (void)pthread_once(&once, look_up);
    return __atomic_load_n(&wb_events_state, __ATOMIC_RELAXED) == WB_SWITCH_ON;
}

/* ---- events ---- */

/* As the inside of a text in JSON; a longer one is cut. */
static const char *escaped(const char *text, char out[TEXT_BYTES]) {
    size_t used = 0;
    for (; *text && used + 8 < TEXT_BYTES; text++) {
        const unsigned char letter = (unsigned char)*text;
        if (letter < ' ')
            used += (size_t)snprintf(out + used, 8, "\\u%04x", letter);
        else {
            if (letter == '"' || letter == '\\') out[used++] = '\\';
            out[used++] = *text;
        }
    }
    if (((unsigned char)*text & 0xC0) == 0x80) /* not in the middle of a letter */
        while (used && ((unsigned char)out[--used] & 0xC0) == 0x80) continue;
    out[used] = 0;
    return out;
}

/* A thread's name is the category of its first event. */
static void name_thread(const char *kind) {
    char line[LINE_BYTES];
    this_thread = ++events.threads;
    const int length = snprintf(line, sizeof line,
                                ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,"
                                "\"args\":{\"name\":\"%s\"}}",
                                events.rank, this_thread, kind);
    put_line(line, (size_t)length);
}

static int write_argument(char *line, size_t room, const char *key, const char *value, bool comma) {
    char text[TEXT_BYTES];
    if (!value) return 0;
    return snprintf(line, room, "%s\"%s\":\"%s\"", comma ? "," : "", key, escaped(value, text));
}

static int write_number(char *line, size_t room, const char *key, double value, bool comma) {
    if (!(value > 0)) return 0;
    return snprintf(line, room, "%s\"%s\":%.0f", comma ? "," : "", key, value);
}

static size_t write_arguments(char *line, size_t room, const wb_event_info *info) {
    size_t used = (size_t)write_argument(line, room, "layer", info->layer, false);
    used += (size_t)write_argument(line + used, room - used, "direction", info->direction, used);
    used += (size_t)write_number(line + used, room - used, "run", info->run, used);
    used += (size_t)write_number(line + used, room - used, "operations", info->operations, used);
    used += (size_t)write_number(line + used, room - used, "read_bytes", info->read_bytes, used);
    used +=
        (size_t)write_number(line + used, room - used, "written_bytes", info->written_bytes, used);
    return used;
}

void wb_event_told(const wb_event_info *info, double began, double ended) {
    char line[LINE_BYTES], text[TEXT_BYTES];
    if (began <= 0 || !is_own_file()) return;
    wb_lock_take(WB_LOCK_EVENTS);
    if (!this_thread) name_thread(info->kind);
    size_t used = (size_t)snprintf(
        line, sizeof line,
        ",\n{\"name\":\"%s\",\"cat\":\"%s\",\"ph\":\"X\",\"ts\":%.3f,\"dur\":%.3f,\"pid\":%d,"
        "\"tid\":%d,\"args\":{",
        escaped(info->what, text), info->kind, 1e6 * (began - events.start), 1e6 * (ended - began),
        events.rank, this_thread);
    used += write_arguments(line + used, sizeof line - used, info);
    used += (size_t)snprintf(line + used, sizeof line - used, "}}");
    put_line(line, used);
    if (ended - events.written > WRITE_EVERY) put_out();
    wb_lock_give(WB_LOCK_EVENTS);
}

void wb_event(const char *kind, const char *what, double began, const char *layer,
              const char *direction) {
    if (began <= 0) return;
    const wb_event_info info = {.kind = kind, .what = what, .layer = layer, .direction = direction};
    wb_event_told(&info, began, wb_clock());
}
