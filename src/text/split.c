/* Splitters ("pre-tokenizers"): steps that cut the text into pieces, each of which the model gets
 * by itself. */
#include <string.h>

#include "base/memory.h"
#include "text/tokenizer.h"

/* The text from end to end: what was looked for, and what is between. */
typedef struct part {
    int64_t begin, end;
    bool is_match;
} part;

typedef struct parts {
    part *parts;
    int64_t count, capacity;
} parts;

static bool add_part(parts *p, int64_t begin, int64_t end, bool is_match) {
    if (!WB_GROW(p->parts, p->count, p->capacity)) return false;
    p->parts[p->count++] = (part){begin, end, is_match};
    return true;
}

/* ---- finding ---- */

static bool find_pattern(const wb_text_step *step, const char *text, size_t bytes, parts *p) {
    wb_match match = {.data = NULL};
    size_t from = 0, length;
    int64_t at = 0, begin, end = 0;
    bool is_fine = true;
    while (is_fine && from <= bytes &&
           wb_step_find(step, &match, text, bytes, from, &begin, &end)) {
        if (begin > at) is_fine = add_part(p, at, begin, step->is_inverted);
        is_fine = is_fine && add_part(p, begin, end, !step->is_inverted);
        at = end;
        from = (size_t)end;
        if (begin != end) continue;
        if (from == bytes) break; /* an empty match: on to the next character */
        (void)wb_utf8_code(text + from, &length);
        from += length;
    }
    wb_match_release(&match);
    if (end < 0 || !is_fine) return false;
    return at == (int64_t)bytes || add_part(p, at, (int64_t)bytes, step->is_inverted);
}

static bool find_characters(const wb_text_step *step, const char *text, size_t bytes, parts *p) {
    size_t length, at = 0;
    for (size_t i = 0; i < bytes; i += length) {
        if (!step->is_character(&step->tokenizer->unicode, wb_utf8_code(text + i, &length)))
            continue;
        if (i > at && !add_part(p, (int64_t)at, (int64_t)i, false)) return false;
        if (!add_part(p, (int64_t)i, (int64_t)(i + length), true)) return false;
        at = i + length;
    }
    return at == bytes || add_part(p, (int64_t)at, (int64_t)bytes, false);
}

/* ---- cutting ---- */

/* Joins parts, in place, as the behaviour says. */
static void join(parts *p, wb_behaviour behaviour) {
    int64_t count = 0;
    bool was_match = false;
    for (int64_t i = 0; i < p->count; i++) {
        const part one = p->parts[i];
        const bool joins = behaviour == WB_SPLIT_CONTIGUOUS ? was_match == one.is_match
                                                            : one.is_match && !was_match;
        if (joins && count)
            p->parts[count - 1].end = one.end;
        else
            p->parts[count++] = one;
        was_match = one.is_match;
    }
    p->count = count;
}

static void join_with_next(parts *p) {
    int64_t place = p->count;
    bool was_match = false;
    for (int64_t i = p->count; i-- > 0;) {
        const part one = p->parts[i];
        if (one.is_match && !was_match && place < p->count)
            p->parts[place].begin = one.begin;
        else
            p->parts[--place] = one;
        was_match = one.is_match;
    }
    if (p->count) memmove(p->parts, p->parts + place, (size_t)(p->count - place) * sizeof(part));
    p->count -= place;
}

static bool cut(parts *p, wb_behaviour behaviour, const char *text, bool is_first, wb_pieces *out) {
    if (behaviour == WB_SPLIT_WITH_NEXT)
        join_with_next(p);
    else if (behaviour != WB_SPLIT_REMOVED && behaviour != WB_SPLIT_ISOLATED)
        join(p, behaviour);
    for (int64_t i = 0; i < p->count; i++) {
        const part *one = &p->parts[i];
        if (behaviour == WB_SPLIT_REMOVED && one->is_match) continue;
        if (!wb_pieces_add(out, text + one->begin, (size_t)(one->end - one->begin),
                           is_first && one->begin == 0))
            return false;
    }
    return true;
}

static bool run_split(const wb_text_step *step, const char *text, size_t bytes, bool is_first,
                      wb_pieces *out) {
    parts p = {.count = 0};
    const bool is_fine =
        (step->is_character ? find_characters : find_pattern)(step, text, bytes, &p) &&
        cut(&p, step->behaviour, text, is_first, out);
    wb_release(p.parts);
    return is_fine;
}

/* ---- kinds ---- */

static wb_status read_behaviour(wb_tokenizer *t, const wb_json *json, wb_behaviour otherwise,
                                wb_text_step *step) {
    static const char *const names[] = {[WB_SPLIT_REMOVED] = "Removed",
                                        [WB_SPLIT_ISOLATED] = "Isolated",
                                        [WB_SPLIT_WITH_PREVIOUS] = "MergedWithPrevious",
                                        [WB_SPLIT_WITH_NEXT] = "MergedWithNext",
                                        [WB_SPLIT_CONTIGUOUS] = "Contiguous"};
    const wb_json *value = wb_json_get(json, "behavior");
    step->behaviour = otherwise;
    if (!value) return WB_OK;
    for (int i = 0; i < 5; i++)
        if (wb_json_is(value, names[i])) return step->behaviour = (wb_behaviour)i, WB_OK;
    return wb_json_fault(t->file, value, "an unknown behavior");
}

static wb_status read_split(wb_tokenizer *t, const wb_json *json, wb_text_step *step) {
    step->run = run_split;
    wb_status status = read_behaviour(t, json, WB_SPLIT_ISOLATED, step);
    if (status == WB_OK) status = wb_member_bool(t, json, "invert", false, &step->is_inverted);
    return status == WB_OK ? wb_pattern_read(t, json, wb_json_get(json, "pattern"), step) : status;
}

static wb_status read_characters(wb_tokenizer *t, wb_text_step *step, wb_behaviour behaviour,
                                 bool (*is_character)(const wb_unicode *, uint32_t)) {
    step->run = run_split;
    step->is_character = is_character;
    step->behaviour = behaviour;
    return is_character == wb_is_space ? WB_OK : wb_unicode_open(&t->unicode);
}

static wb_status read_whitespace_split(wb_tokenizer *t, const wb_json *json, wb_text_step *step) {
    return (void)json, read_characters(t, step, WB_SPLIT_REMOVED, wb_is_space);
}

static wb_status read_digits(wb_tokenizer *t, const wb_json *json, wb_text_step *step) {
    bool is_individual;
    const wb_status status = wb_member_bool(t, json, "individual_digits", false, &is_individual);
    if (status != WB_OK) return status;
    return read_characters(t, step, is_individual ? WB_SPLIT_ISOLATED : WB_SPLIT_CONTIGUOUS,
                           wb_is_numeric);
}

static wb_status read_punctuation(wb_tokenizer *t, const wb_json *json, wb_text_step *step) {
    const wb_status status = read_behaviour(t, json, WB_SPLIT_ISOLATED, step);
    return status == WB_OK ? read_characters(t, step, step->behaviour, wb_is_punctuation) : status;
}

/* Spaces are taken out, and punctuation stands alone. */
static bool run_bert(const wb_text_step *step, const char *text, size_t bytes, bool is_first,
                     wb_pieces *out) {
    const wb_unicode *unicode = &step->tokenizer->unicode;
    size_t length, begin = 0;
    for (size_t i = 0; i < bytes; i += length) {
        const uint32_t code = wb_utf8_code(text + i, &length);
        const bool is_space = wb_is_space(unicode, code);
        if (!is_space && !wb_is_punctuation(unicode, code)) continue;
        if (!wb_pieces_add(out, text + begin, i - begin, is_first && !begin)) return false;
        if (!is_space && !wb_pieces_add(out, text + i, length, is_first && !i)) return false;
        begin = i + length;
    }
    return wb_pieces_add(out, text + begin, bytes - begin, is_first && !begin);
}

static wb_status read_bert(wb_tokenizer *t, const wb_json *json, wb_text_step *step) {
    (void)json;
    step->run = run_bert;
    return wb_unicode_open(&t->unicode);
}

/* Words and what is neither word nor space: \w+|[^\w\s]+ */
static bool run_whitespace(const wb_text_step *step, const char *text, size_t bytes, bool is_first,
                           wb_pieces *out) {
    const wb_unicode *unicode = &step->tokenizer->unicode;
    enum { SPACE, WORD, OTHER };
    int kind = SPACE;
    size_t length, begin = 0;
    for (size_t i = 0; i < bytes; i += length) {
        const uint32_t code = wb_utf8_code(text + i, &length);
        const int own = wb_is_word_character(unicode, code) ? WORD
                        : wb_is_space(unicode, code)        ? SPACE
                                                            : OTHER;
        if (own == kind) continue;
        if (kind != SPACE && !wb_pieces_add(out, text + begin, i - begin, is_first && !begin))
            return false;
        kind = own, begin = i;
    }
    return kind == SPACE || wb_pieces_add(out, text + begin, bytes - begin, is_first && !begin);
}

static wb_status read_whitespace(wb_tokenizer *t, const wb_json *json, wb_text_step *step) {
    (void)json;
    step->run = run_whitespace;
    return wb_unicode_open(&t->unicode);
}

static wb_status read_delimiter(wb_tokenizer *t, const wb_json *json, wb_text_step *step) {
    step->run = run_split;
    step->behaviour = WB_SPLIT_REMOVED;
    return wb_pattern_read(t, json, wb_json_get(json, "delimiter"), step);
}

/* ---- ByteLevel ---- */

static bool add_bytes(const char *text, size_t bytes, wb_pieces *out) {
    const int64_t begin = (int64_t)out->text.size;
    wb_byte_level(&out->text, text, bytes);
    if (!WB_GROW(out->pieces, out->count, out->capacity)) return false;
    out->pieces[out->count++] = (wb_piece){begin, (int64_t)out->text.size, -1, false};
    return true;
}

static bool run_byte_level(const wb_text_step *step, const char *text, size_t bytes, bool is_first,
                           wb_pieces *out) {
    (void)is_first;
    wb_text given = {.data = NULL};
    parts p = {.count = 0};
    if (step->adds_prefix && text[0] != ' ') wb_text_byte(&given, ' ');
    wb_text_bytes(&given, text, bytes);
    bool is_fine = wb_text_status(&given) == WB_OK;
    if (is_fine)
        is_fine = step->regex ? find_pattern(step, given.data, given.size, &p)
                              : add_part(&p, 0, (int64_t)given.size, false);
    for (int64_t i = 0; i < p.count && is_fine; i++) {
        const int64_t length = p.parts[i].end - p.parts[i].begin;
        is_fine = !length || add_bytes(given.data + p.parts[i].begin, (size_t)length, out);
    }
    wb_release(p.parts);
    wb_text_release(&given);
    return is_fine;
}

static wb_status read_byte_level(wb_tokenizer *t, const wb_json *json, wb_text_step *step) {
    /* GPT-2's own */
    static const char pattern[] =
        "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|"
        "\\s+(?!\\S)|\\s+";
    bool has_regex;
    step->run = run_byte_level;
    wb_status status = wb_member_bool(t, json, "add_prefix_space", true, &step->adds_prefix);
    if (status == WB_OK) status = wb_member_bool(t, json, "use_regex", true, &has_regex);
    if (status != WB_OK || !has_regex) return status;
    step->regex = wb_regex_new(&t->regexes, pattern, sizeof pattern - 1);
    return step->regex ? WB_OK : wb_error_status();
}

/* ---- Metaspace ---- */

static void add_metaspace(const wb_text_step *step, const char *text, size_t bytes, bool is_first,
                          wb_text *out) {
    const bool has_it =
        (bytes >= step->text_bytes && memcmp(text, step->text, step->text_bytes) == 0) ||
        text[0] == ' ';
    if (step->adds_prefix && !has_it && (is_first || !step->only_first))
        wb_text_bytes(out, step->text, step->text_bytes);
    for (size_t i = 0; i < bytes; i++)
        if (text[i] == ' ')
            wb_text_bytes(out, step->text, step->text_bytes);
        else
            wb_text_byte(out, text[i]);
}

static bool run_metaspace(const wb_text_step *step, const char *text, size_t bytes, bool is_first,
                          wb_pieces *out) {
    wb_text given = {.data = NULL};
    parts p = {.count = 0};
    add_metaspace(step, text, bytes, is_first, &given);
    bool is_fine = wb_text_status(&given) == WB_OK;
    if (is_fine && step->splits)
        is_fine = find_pattern(step, given.data, given.size, &p) &&
                  cut(&p, WB_SPLIT_WITH_NEXT, given.data, is_first, out);
    else if (is_fine)
        is_fine = wb_pieces_add(out, given.data, given.size, is_first);
    wb_release(p.parts);
    wb_text_release(&given);
    return is_fine;
}

static wb_status read_metaspace(wb_tokenizer *t, const wb_json *json, wb_text_step *step) {
    const wb_json *scheme = wb_json_get(json, "prepend_scheme");
    step->run = run_metaspace;
    wb_status status = wb_member_text(t, json, "replacement", &step->text, &step->text_bytes);
    if (status == WB_OK) status = wb_member_bool(t, json, "split", true, &step->splits);
    if (status == WB_OK)
        status = wb_member_bool(t, json, "add_prefix_space", true, &step->adds_prefix);
    if (status != WB_OK) return status;
    if (!step->text_bytes) return wb_json_fault(t->file, json, "replacement must not be empty");
    if (!scheme) return WB_OK;
    step->only_first = wb_json_is(scheme, "first");
    step->adds_prefix = step->only_first || wb_json_is(scheme, "always");
    if (step->adds_prefix || wb_json_is(scheme, "never")) return WB_OK;
    return wb_json_fault(t->file, scheme, "prepend_scheme must be always, first or never");
}

wb_status wb_splitters_read(wb_tokenizer *t, const wb_json *json) {
    static const wb_step_kind kinds[] = {{"ByteLevel", read_byte_level},
                                         {"Split", read_split},
                                         {"Metaspace", read_metaspace},
                                         {"BertPreTokenizer", read_bert},
                                         {"Whitespace", read_whitespace},
                                         {"WhitespaceSplit", read_whitespace_split},
                                         {"Digits", read_digits},
                                         {"Punctuation", read_punctuation},
                                         {"CharDelimiterSplit", read_delimiter}};
    return wb_steps_read(t, &t->splitters, json, "pre_tokenizer", "pretokenizers", kinds,
                         sizeof kinds / sizeof *kinds);
}
