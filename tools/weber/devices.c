/* `weber devices`: backends, devices, the current choice and why, and the folders and files that
 * were looked at, as text in columns. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weber/device.h>

#include "tool.h"

enum { COLUMNS = 100, MOST_ROWS = 256, CELLS = 6 };

/* ---- text in columns ---- */

/* The letters of UTF-8, which are fewer than the bytes. */
static int width(const char *text) {
    int letters = 0;
    for (; *text; text++) letters += ((unsigned char)*text & 0xc0) != 0x80;
    return letters;
}

static void put_cell(const char *text, int columns) {
    const int rest = columns - width(text);
    (void)printf("%s%*s", text, rest > 0 ? rest : 0, "");
}

/* Text from a column on; longer text goes on there in the next line. */
static void put_wrapped(const char *text, int column) {
    int at = column;
    while (*text) {
        const int length = (int)strcspn(text, " ");
        if (at > column && at + 1 + length > COLUMNS) {
            (void)printf("\n%*s", column, "");
            at = column;
        }
        if (at > column) (void)putchar(' ');
        put_plain_to(stdout, text, (size_t)length);
        at += length + (at > column);
        text += length;
        text += strspn(text, " ");
    }
    (void)putchar('\n');
}

/* ---- backends ---- */

static const char *state_of(const char *backend) {
    if (!wb_loaded(backend)) return "not loaded";
    return wb_functional(backend) ? "works" : "not functional";
}

static int widest_name(void) {
    int widest = 0;
    for (const char *const *name = wb_supported_devices(); *name; name++)
        if (width(*name) > widest) widest = width(*name);
    return widest;
}

static void show_backends(void) {
    static const int state_columns = sizeof "not functional" + 1;
    const int name_columns = widest_name() + 2;
    (void)puts("Backends");
    for (const char *const *name = wb_supported_devices(); *name; name++) {
        const char *state = state_of(*name);
        (void)printf("  ");
        put_cell(*name, name_columns);
        put_cell(state, wb_reason()[0] ? state_columns : 0);
        put_wrapped(wb_reason(), 2 + name_columns + state_columns);
    }
}

/* ---- devices ---- */

typedef struct row {
    char cells[CELLS][160];
} row;

static void fill(row *r, const char *backend, int index, const wb_properties *p) {
    const bool is_cpu = strcmp(backend, "CPU") == 0; /* it has no number */
    char number[16] = "";
    if (!is_cpu) (void)snprintf(number, sizeof number, "(%d)", index);
    (void)snprintf(r->cells[0], sizeof r->cells[0], "%s%s", backend, number);
    (void)snprintf(r->cells[1], sizeof r->cells[1], "%s", p->name);
    (void)snprintf(r->cells[2], sizeof r->cells[2], "%s", p->is_gpu ? "GPU" : "processor");
    if (p->memory_bytes > 0)
        (void)snprintf(r->cells[3], sizeof r->cells[3], "%.1f GiB",
                       (double)p->memory_bytes / (1 << 30));
    if (p->compute_units > 0)
        (void)snprintf(r->cells[4], sizeof r->cells[4], "%d unit%s", p->compute_units,
                       p->compute_units == 1 ? "" : "s");
    (void)snprintf(r->cells[5], sizeof r->cells[5], "%s", p->driver);
}

static int find_devices(row *rows) {
    int found = 0;
    for (const char *const *name = wb_supported_devices(); *name; name++) {
        const int count = wb_device_count(*name);
        for (int i = 0; i < count && found < MOST_ROWS; i++) {
            wb_properties properties;
            if (wb_device_properties_at(*name, i, &properties) == WB_OK)
                fill(&rows[found++], *name, i, &properties);
        }
    }
    return found;
}

static void show_devices(void) {
    row *rows = calloc(MOST_ROWS, sizeof *rows);
    if (!rows) return;
    const int count = find_devices(rows);
    int columns[CELLS] = {0};
    for (int i = 0; i < count; i++)
        for (int c = 0; c < CELLS; c++)
            if (width(rows[i].cells[c]) > columns[c]) columns[c] = width(rows[i].cells[c]);
    (void)puts("\nDevices");
    for (int i = 0; i < count; i++) {
        for (int c = 0; c + 1 < CELLS; c++) {
            (void)printf("  ");
            put_cell(rows[i].cells[c], columns[c]);
        }
        (void)printf("  %s\n", rows[i].cells[CELLS - 1]);
    }
    free(rows);
}

/* ---- the choice, and where things are ---- */

enum { LABEL = 13 };

static void put_label(const char *label) { put_cell(label, LABEL); }

static const char *if_absent(const char *path) {
    return access(path, F_OK) == 0 ? "" : " (not there)";
}

static void show_choice(void) {
    wb_choice choice;
    char text[1200];
    if (wb_device_choice(&choice) == WB_OK)
        (void)snprintf(text, sizeof text, "%s (%s)", choice.device, choice.why);
    else
        (void)snprintf(text, sizeof text, "none: %s", wb_error_message());
    put_label("\nChoice");
    (void)printf(" ");
    put_wrapped(text, LABEL);
}

static void show_preference(void) {
    const char *backend = wb_gpu_backend(), *file = wb_preference_file();
    put_label("Preference");
    put_plain(backend ? backend : "none");
    (void)putchar('\n');
    put_label("  in");
    put_plain(file[0] ? file : "no file: neither WEBER_PREFERENCES nor HOME is set");
    (void)printf("%s\n", file[0] ? if_absent(file) : "");
}

static void show_list(const char *label, const char *const *list, bool are_paths) {
    for (const char *const *text = list; *text; text++) {
        char line[1200];
        (void)snprintf(line, sizeof line, "%s%s", *text, are_paths ? if_absent(*text) : "");
        put_label(text == list ? label : "");
        put_wrapped(line, LABEL);
    }
}

static void show_variable(const char *name) {
    const char *value = getenv(name);
    if (value && *value) (void)printf("%-*s%s=%s\n", LABEL, "Variable", name, value);
}

void devices_as_text(void) {
    show_backends();
    show_devices();
    show_choice();
    show_preference();
    show_list("Plugins in", wb_plugin_folders(), true);
    show_list("Passed over", wb_skipped_plugins(), false);
    show_variable("WEBER_DEVICE");
    show_variable("WEBER_BACKENDS");
}

int tool_devices(int count, char **arguments) {
    const bool is_json = count == 1 && strcmp(arguments[0], "--json") == 0;
    if (count > is_json) return tool_usage("devices", count, arguments);
    if (is_json)
        devices_as_json();
    else
        devices_as_text();
    return wb_report("weber devices");
}
