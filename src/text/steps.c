/* Steps in general: what all of them have, and running them. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "text/tokenizer.h"

/* ---- running ---- */

static bool run_step(const wb_text_step *step, wb_pieces *pieces) {
    wb_pieces out = {.count = 0};
    bool is_fine = true;
    for (int64_t i = 0; i < pieces->count && is_fine; i++) {
        const wb_piece *piece = &pieces->pieces[i];
        is_fine = step->run(step, pieces->text.data + piece->begin,
                            (size_t)(piece->end - piece->begin), piece->is_first, &out);
    }
    wb_pieces_release(pieces);
    *pieces = out;
    return is_fine && wb_text_status(&out.text) == WB_OK;
}

bool wb_steps_run(const wb_steps *steps, wb_pieces *pieces) {
    for (int64_t i = 0; i < steps->count; i++)
        if (!run_step(&steps->steps[i], pieces)) return false;
    return true;
}

void wb_steps_release(wb_steps *steps) {
    wb_release(steps->steps);
    *steps = (wb_steps){.count = 0};
}

/* ---- reading ---- */

wb_status wb_member_text(const wb_tokenizer *t, const wb_json *json, const char *name,
                         const char **text, size_t *bytes) {
    const wb_json *value = wb_json_get(json, name);
    if (!value || value->kind != WB_JSON_TEXT)
        return wb_json_fault(t->file, value ? value : json, "%s must be a text, but is %s", name,
                             wb_json_noun(value));
    *bytes = (size_t)value->count;
    *text = wb_arena_text((wb_arena *)(uintptr_t)&t->arena, value->text, *bytes);
    return *text ? WB_OK : WB_ERROR_MEMORY;
}

wb_status wb_member_bool(const wb_tokenizer *t, const wb_json *json, const char *name,
                         bool otherwise, bool *value) {
    const wb_json *given = wb_json_get(json, name);
    *value = otherwise;
    if (!given || given->kind == WB_JSON_NULL || wb_json_bool(given, value)) return WB_OK;
    return wb_json_fault(t->file, given, "%s must be true or false, but is %s", name,
                         wb_json_noun(given));
}

wb_status wb_error_at(const wb_tokenizer *t, const wb_json *json, uint64_t since) {
    const char *path = t->file->path;
    if (strncmp(wb_error_text(), path, strlen(path)) == 0) return wb_error_status();
    return wb_error_prefix(since, "%s, offset %lld: ", t->file->path, (long long)json->offset);
}

wb_status wb_pattern_read(wb_tokenizer *t, const wb_json *json, const wb_json *pattern,
                          wb_text_step *step) {
    const wb_json *text =
        pattern && pattern->kind == WB_JSON_OBJECT ? wb_json_get(pattern, "String") : pattern;
    const wb_json *regex = wb_json_get(pattern, "Regex"), *given = regex ? regex : text;
    if (!given || given->kind != WB_JSON_TEXT || !given->count)
        return wb_json_fault(t->file, pattern ? pattern : json,
                             "pattern must be a String or a Regex that is not empty");
    const uint64_t since = wb_error_count();
    step->text_bytes = (size_t)given->count;
    step->text = wb_arena_text(&t->arena, given->text, step->text_bytes);
    if (!step->text) return WB_ERROR_MEMORY;
    if (!regex) return WB_OK;
    step->regex = wb_regex_new(&t->regexes, given->text, (size_t)given->count);
    return step->regex ? WB_OK : wb_error_at(t, given, since);
}

static wb_status read_one(wb_tokenizer *t, wb_steps *steps, const wb_json *json, const char *what,
                          const wb_step_kind *kinds, size_t kind_count) {
    const char *type = wb_json_text(wb_json_get(json, "type"));
    const uint64_t since = wb_error_count();
    if (!type)
        return wb_json_fault(t->file, json, "%s must be an object with a type, but is %s", what,
                             wb_json_noun(json));
    for (size_t i = 0; i < kind_count; i++) {
        if (strcmp(kinds[i].name, type) != 0) continue;
        if (!WB_GROW(steps->steps, steps->count, steps->capacity)) return WB_ERROR_MEMORY;
        wb_text_step step = {.tokenizer = t};
        const wb_status status = kinds[i].read(t, json, &step);
        if (status == WB_ERROR_UNSUPPORTED) return wb_error_at(t, json, since);
        if (status == WB_OK && step.run) steps->steps[steps->count++] = step;
        return status;
    }
    return wb_json_fault(t->file, json, "the %s \"%.80s\" is not supported", what, type);
}

wb_status wb_steps_read(wb_tokenizer *t, wb_steps *steps, const wb_json *json, const char *what,
                        const char *sequence, const wb_step_kind *kinds, size_t kind_count) {
    if (!json || json->kind == WB_JSON_NULL) return WB_OK;
    if (!wb_json_is(wb_json_get(json, "type"), "Sequence"))
        return read_one(t, steps, json, what, kinds, kind_count);
    const wb_json *list = wb_json_get(json, sequence);
    if (!list || list->kind != WB_JSON_LIST)
        return wb_json_fault(t->file, list ? list : json, "%s must be a list, but is %s", sequence,
                             wb_json_noun(list));
    wb_status status = WB_OK; /* nesting is bounded by the parser */
    for (int64_t i = 0; i < list->count && status == WB_OK; i++)
        status = wb_steps_read(t, steps, &list->items[i], what, sequence, kinds, kind_count);
    return status;
}

/* ---- searches ---- */

bool wb_step_find(const wb_text_step *step, wb_match *match, const char *text, size_t bytes,
                  size_t at, int64_t *begin, int64_t *end) {
    if (step->regex) return wb_regex_find(step->regex, match, text, bytes, at, begin, end);
    *end = 0;
    const char *found =
        at < bytes ? memmem(text + at, bytes - at, step->text, step->text_bytes) : NULL;
    if (!found) return false;
    *begin = found - text;
    *end = *begin + (int64_t)step->text_bytes;
    return true;
}
