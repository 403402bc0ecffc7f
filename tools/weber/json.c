/* `weber devices --json`: what `weber devices` shows, for programs. Bytes that are not UTF-8 become
 * U+FFFD. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <weber/device.h>

#include "platform/plain.h"
#include "tool.h"

/* ---- values ---- */

static void put_letter(const unsigned char *text, int bytes) {
    if (bytes == 0)
        (void)printf("\\ufffd");
    else if (*text == '"' || *text == '\\')
        (void)printf("\\%c", *text);
    else if (*text < 0x20 || *text == 0x7f)
        (void)printf("\\u%04x", *text);
    else
        (void)printf("%.*s", bytes, (const char *)text);
}

static void put_string(const char *text) {
    (void)putchar('"');
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        const int bytes = wb_letter_bytes(at);
        put_letter(at, bytes);
        at += bytes ? bytes : 1;
    }
    (void)putchar('"');
}

static void put_name(const char *name) { (void)printf("\"%s\": ", name); }

static void put_text(const char *name, const char *text, const char *after) {
    put_name(name);
    put_string(text);
    (void)printf("%s", after);
}

static void put_bool(const char *name, bool value, const char *after) {
    put_name(name);
    (void)printf("%s%s", value ? "true" : "false", after);
}

static void put_number(const char *name, long long value, const char *after) {
    put_name(name);
    (void)printf("%lld%s", value, after);
}

/* ---- what there is ---- */

static void put_device(int index, const wb_properties *p) {
    (void)printf("\n        {");
    put_number("index", index, ", ");
    put_text("name", p->name, ", ");
    put_text("driver", p->driver, ", ");
    put_number("memory_bytes", (long long)p->memory_bytes, ", ");
    put_number("compute_units", p->compute_units, ", ");
    put_bool("is_gpu", p->is_gpu, ", ");
    put_bool("has_f64", p->has_f64, "}");
}

static void put_devices(const char *backend) {
    const int count = wb_device_count(backend);
    put_name("devices");
    (void)printf("[");
    int put = 0;
    for (int i = 0; i < count; i++) {
        wb_properties properties;
        if (wb_device_properties_at(backend, i, &properties) != WB_OK) continue;
        (void)printf("%s", put++ ? "," : "");
        put_device(i, &properties);
    }
    (void)printf("]");
}

static void put_backends(void) {
    put_name("backends");
    (void)printf("[");
    const char *const *names = wb_supported_devices();
    for (const char *const *name = names; *name; name++) {
        (void)printf("%s\n    {", name == names ? "" : ",");
        put_text("name", *name, ", ");
        put_bool("loaded", wb_loaded(*name), ", ");
        put_bool("functional", wb_functional(*name), ", ");
        put_text("reason", wb_reason(), ",\n      ");
        put_devices(*name);
        (void)printf("}");
    }
    (void)printf("\n  ],\n  ");
}

static void put_choice(void) {
    wb_choice choice;
    const bool ok = wb_device_choice(&choice) == WB_OK;
    put_name("choice");
    (void)printf("{");
    if (ok) {
        put_text("device", choice.device, ", ");
        put_text("backend", choice.backend, ", ");
        put_bool("automatic", choice.is_automatic, ", ");
        put_text("why", choice.why, "},\n  ");
    } else {
        put_text("error", wb_error_message(), "},\n  ");
    }
}

static void put_preference(void) {
    const char *backend = wb_gpu_backend(), *file = wb_preference_file();
    put_name("preference");
    (void)printf("{");
    put_text("file", file, ", ");
    put_bool("file_exists", access(file, F_OK) == 0, ", ");
    put_name("gpu_backend");
    if (backend)
        put_string(backend);
    else
        (void)printf("null");
    (void)printf("},\n  ");
}

static void put_list(const char *name, const char *const *list, const char *after) {
    put_name(name);
    (void)printf("[");
    for (const char *const *text = list; *text; text++) {
        (void)printf("%s\n    ", text == list ? "" : ",");
        put_string(*text);
    }
    (void)printf("]%s", after);
}

void devices_as_json(void) {
    (void)printf("{\n  ");
    put_text("version", WEBER_VERSION, ",\n  ");
    put_backends();
    put_choice();
    put_preference();
    put_list("plugin_folders", wb_plugin_folders(), ",\n  ");
    put_list("passed_over", wb_skipped_plugins(), "\n}\n");
}
