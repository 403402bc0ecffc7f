/* A progress bar. On a terminal it is redrawn at most every 0.1 s; elsewhere one line is printed at
 * the end. The loss is read only when it is shown, because reading it waits for the device. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <weber/device.h>
#include <weber/show.h>

#include "array/use.h"
#include "base/clock.h"
#include "base/memory.h"

enum { WIDEST_BAR = 30, NARROWEST_BAR = 8, DEFAULT_COLUMNS = 80, LINE_BYTES = 512 };
static const double seconds_between = 0.1;

struct wb_progress {
    wb_object object;
    wb_progress_desc desc;
    bool shown;
    bool as_line; /* no terminal: one line at the end */
    int64_t done;
    double start, drawn; /* seconds of the monotonic clock */
    double loss;         /* as last read; NaN: none */
    char note[128];
};

static void progress_free(void *object) {
    wb_object_delete(object, sizeof(wb_progress), "progress bar");
}

static const wb_class progress_class = {
    .name = "progress", .free = progress_free, .maker = "wb_progress_begin"};

/* The first of them that is negative. */
static const char *negative_of(const wb_progress_desc *d) {
    return d->total < 0 ? "total" : d->items < 0 ? "items" : d->done < 0 ? "done" : NULL;
}

wb_progress *wb_progress_make(wb_progress_desc desc) {
    const char *negative = negative_of(&desc);
    if (negative)
        return wb_fail_null(WB_ERROR_ARGUMENT, "wb_progress_begin: %s must be at least 0",
                            negative);
    wb_progress *p = wb_object_new(&progress_class, sizeof *p);
    if (!p) return NULL;
    p->desc = desc;
    if (!desc.what) p->desc.what = "";
    if (!desc.unit) p->desc.unit = "";
    if (!desc.items) p->desc.items = 1;
    if (!desc.device) p->desc.device = wb_cpu_device();
    if (!desc.file) p->desc.file = stderr;
    p->shown = desc.always || isatty(fileno(p->desc.file));
    p->as_line = !p->shown;
    p->start = wb_clock();
    p->done = desc.done;
    p->loss = (double)NAN;
    return p;
}

/* ---- the line ---- */

typedef struct line {
    char text[LINE_BYTES];
    size_t used;
    int width; /* columns, not bytes */
} line;

__attribute__((format(printf, 2, 3))) static void add(line *l, const char *format, ...) {
    const size_t left = sizeof l->text - l->used;
    va_list args;
    va_start(args, format);
    const int wrote = vsnprintf(l->text + l->used, left, format, args);
    va_end(args);
    if (wrote < 0) return;
    const size_t end = l->used + ((size_t)wrote < left ? (size_t)wrote : left - 1);
    for (; l->used < end; l->used++) l->width += ((unsigned char)l->text[l->used] & 0xC0) != 0x80;
}

static void add_bar(line *l, double share, int width) {
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    const int filled = (int)(share * width * 8);
    add(l, " ▕");
    for (int i = 0; i < filled / 8; i++) add(l, "█");
    add(l, "%s", eighths[filled % 8]);
    for (int i = (filled + 7) / 8; i < width; i++) add(l, " ");
    add(l, "▏%3d%%", (int)(share * 100));
}

static void add_time(line *l, double seconds, const char *what) {
    const int64_t most = INT64_C(3600000000), /* a million hours: a longer time is shown as this */
        s = seconds < (double)most ? llround(seconds) : most;
    if (s >= 3600)
        add(l, "  %lld:%02d:%02d%s", (long long)s / 3600, (int)(s / 60 % 60), (int)(s % 60), what);
    else
        add(l, "  %d:%02d%s", (int)(s / 60), (int)(s % 60), what);
}

static void add_rate(line *l, double rate, const char *unit) {
    add(l, rate < 10 ? "  %.2f" : "  %.0f", rate);
    add(l, *unit ? " %s/s" : "%s/s", unit);
}

static void compose(const wb_progress *p, line *l, double at, int bar_width) {
    const double seconds = at - p->start, done = (double)p->done,
                 here = (double)(p->done - p->desc.done);
    add(l, "%s", p->desc.what);
    if (p->as_line && p->desc.total > 0)
        add(l, " %lld/%lld", (long long)p->done, (long long)p->desc.total);
    else if (p->desc.total > 0)
        add_bar(l, fmin(1, done / (double)p->desc.total), bar_width);
    else
        add(l, " %lld", (long long)p->done);
    if (seconds > 0 && here > 0) add_rate(l, here * (double)p->desc.items / seconds, p->desc.unit);
    if (here > 0 && p->done < p->desc.total)
        add_time(l, seconds * ((double)p->desc.total - done) / here, " left");
    else
        add_time(l, seconds, "");
    if (!isnan(p->loss)) add(l, "  loss %.4f", p->loss);
    if (p->note[0]) add(l, "  %s", p->note);
    add(l, "  peak %.0f MB", (double)wb_memory_status(p->desc.device).peak * 1e-6);
}

static int columns_of(FILE *file) {
    struct winsize size;
    const bool known = ioctl(fileno(file), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return known ? size.ws_col : DEFAULT_COLUMNS;
}

/* Takes whole characters off the end until the line fits: one that wraps could not be drawn
 * over. */
static void cut_to(line *l, int columns) {
    while (l->width >= columns && l->used > 0) {
        l->used--;
        l->width -= ((unsigned char)l->text[l->used] & 0xC0) != 0x80;
    }
}

static void draw(wb_progress *p, double at) {
    const int columns = columns_of(p->desc.file);
    line l = {.used = 0};
    compose(p, &l, at, WIDEST_BAR);
    if (l.width >= columns) { /* the bar makes room for the words */
        const int room = WIDEST_BAR - (l.width - columns + 1);
        l = (line){.used = 0};
        compose(p, &l, at, room > NARROWEST_BAR ? room : NARROWEST_BAR);
    }
    cut_to(&l, columns);
    (void)fprintf(p->desc.file, "\r%.*s\033[K", (int)l.used, l.text);
    (void)fflush(p->desc.file);
    p->drawn = at;
}

static void write_line(const wb_progress *p, double at) {
    line l = {.used = 0};
    compose(p, &l, at, 0);
    (void)fprintf(p->desc.file, "%.*s\n", (int)l.used, l.text);
    (void)fflush(p->desc.file);
}

static bool check(const char *function, const wb_progress *p) {
    return wb_may_use(function, p, &progress_class, "the progress bar");
}

void wb_progress_step(wb_progress *p, wb_array *loss) {
    static const char function[] = "wb_progress_step";
    if (!p || !check(function, p) || !wb_may_use_given(function, loss, "the loss")) return;
    p->done = wb_plus(p->done, 1);
    const bool is_last = p->done == p->desc.total;
    if (p->as_line && is_last && loss && !wb_failed()) p->loss = wb_item(loss);
    if (!p->shown) return;
    const double at = wb_clock();
    if (at - p->drawn < seconds_between && !is_last) return;
    if (loss && !wb_failed()) p->loss = wb_item(loss);
    draw(p, at);
}

void wb_progress_note(wb_progress *p, const char *note) {
    if (p && check("wb_progress_note", p))
        (void)snprintf(p->note, sizeof p->note, "%s", note ? note : "");
}

double wb_progress_end(wb_progress *p) {
    if (!p || !check("wb_progress_end", p)) return 0;
    const double at = wb_clock(), seconds = at - p->start;
    if (p->shown) {
        draw(p, at);
        (void)fprintf(p->desc.file, "\n");
        (void)fflush(p->desc.file);
    }
    if (p->as_line) write_line(p, at);
    wb_free(p);
    return seconds;
}
