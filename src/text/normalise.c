/* Normalisers: steps that change the text before it is cut. */
#include <string.h>

#include "text/tokenizer.h"

/* The result of a step, as a piece. */
static bool give(wb_pieces *out, int64_t begin, bool is_first) {
    const int64_t end = (int64_t)out->text.size;
    if (end == begin) return true;
    if (!WB_GROW(out->pieces, out->count, out->capacity)) return false;
    out->pieces[out->count++] = (wb_piece){begin, end, -1, is_first};
    return true;
}

/* ---- normal forms, case, accents ---- */

static bool run_form(const wb_text_step *step, const char *text, size_t bytes, bool is_first,
                     wb_pieces *out) {
    const int64_t begin = (int64_t)out->text.size;
    return wb_unicode_normalise(&step->tokenizer->unicode, (wb_normal_form)step->form, text, bytes,
                                &out->text) &&
           give(out, begin, is_first);
}

static wb_status read_form(wb_tokenizer *t, wb_text_step *step, wb_normal_form form) {
    step->run = run_form;
    step->form = (int)form;
    return wb_unicode_open(&t->unicode);
}

static wb_status read_nfc(wb_tokenizer *t, const wb_json *json, wb_text_step *step) {
    return (void)json, read_form(t, step, WB_NFC);
}
static wb_status read_nfd(wb_tokenizer *t, const wb_json *json, wb_text_step *step) {
    return (void)json, read_form(t, step, WB_NFD);
}
static wb_status read_nfkc(wb_tokenizer *t, const wb_json *json, wb_text_step *step) {
    return (void)json, read_form(t, step, WB_NFKC);
}
static wb_status read_nfkd(wb_tokenizer *t, const wb_json *json, wb_text_step *step) {
    return (void)json, read_form(t, step, WB_NFKD);
}

/* Characters in lower case, or without those that is_character names. */
static bool run_characters(const wb_text_step *step, const char *text, size_t bytes, bool is_first,
                           wb_pieces *out) {
    const wb_unicode *unicode = &step->tokenizer->unicode;
    const int64_t begin = (int64_t)out->text.size;
    size_t length;
    for (size_t i = 0; i < bytes; i += length) {
        const uint32_t code = wb_utf8_code(text + i, &length);
        if (step->is_character && step->is_character(unicode, code)) continue;
        if (step->lowers)
            wb_unicode_lower(unicode, code, &out->text);
        else
            wb_text_bytes(&out->text, text + i, length);
    }
    return give(out, begin, is_first);
}

static wb_status read_lowercase(wb_tokenizer *t, const wb_json *json, wb_text_step *step) {
    (void)json;
    step->run = run_characters;
    step->lowers = true;
    return wb_unicode_open(&t->unicode);
}

static wb_status read_strip_accents(wb_tokenizer *t, const wb_json *json, wb_text_step *step) {
    (void)json;
    step->run = run_characters;
    step->is_character = wb_is_mark;
    return wb_unicode_open(&t->unicode);
}

/* ---- BERT's ---- */

static bool is_chinese(uint32_t code) {
    static const struct {
        uint32_t first, last;
    } ranges[] = {{0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
                  {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (code >= ranges[i].first && code <= ranges[i].last) return true;
    return false;
}

static bool is_line_space(uint32_t code) { return code == '\t' || code == '\n' || code == '\r'; }

/* Without control characters, with plain spaces, and with spaces around Chinese characters. */
static void clean(const wb_text_step *step, const char *text, size_t bytes, wb_text *out) {
    const wb_unicode *unicode = &step->tokenizer->unicode;
    size_t length;
    for (size_t i = 0; i < bytes; i += length) {
        uint32_t code = wb_utf8_code(text + i, &length);
        if (step->cleans) {
            if (code == 0 || code == 0xFFFD || (!is_line_space(code) && wb_is_other(unicode, code)))
                continue;
            if (wb_is_space(unicode, code)) code = ' ';
        }
        const bool has_spaces = step->spaces_chinese && is_chinese(code);
        if (has_spaces) wb_text_byte(out, ' ');
        wb_utf8_put(out, code);
        if (has_spaces) wb_text_byte(out, ' ');
    }
}

static bool run_bert(const wb_text_step *step, const char *text, size_t bytes, bool is_first,
                     wb_pieces *out) {
    wb_text cleaned = {.data = NULL}, apart = {.data = NULL};
    clean(step, text, bytes, &cleaned);
    bool is_fine = wb_text_status(&cleaned) == WB_OK;
    const wb_text *last = &cleaned;
    wb_text_step rest = *step;
    if (is_fine && step->strips) {
        is_fine = wb_unicode_normalise(&step->tokenizer->unicode, WB_NFD, cleaned.data,
                                       cleaned.size, &apart) &&
                  wb_text_status(&apart) == WB_OK;
        last = &apart;
        rest.is_character = wb_is_nonspacing;
    }
    is_fine = is_fine && run_characters(&rest, last->data, last->size, is_first, out);
    wb_text_release(&cleaned);
    wb_text_release(&apart);
    return is_fine;
}

static wb_status read_bert(wb_tokenizer *t, const wb_json *json, wb_text_step *step) {
    step->run = run_bert;
    wb_status status = wb_member_bool(t, json, "clean_text", true, &step->cleans);
    if (status == WB_OK)
        status = wb_member_bool(t, json, "handle_chinese_chars", true, &step->spaces_chinese);
    if (status == WB_OK) status = wb_member_bool(t, json, "lowercase", true, &step->lowers);
    if (status == WB_OK)
        status = wb_member_bool(t, json, "strip_accents", step->lowers, &step->strips);
    return status == WB_OK ? wb_unicode_open(&t->unicode) : status;
}

/* ---- texts ---- */

static bool run_prepend(const wb_text_step *step, const char *text, size_t bytes, bool is_first,
                        wb_pieces *out) {
    const int64_t begin = (int64_t)out->text.size;
    wb_text_bytes(&out->text, step->content, step->content_bytes);
    wb_text_bytes(&out->text, text, bytes);
    return give(out, begin, is_first);
}

static wb_status read_prepend(wb_tokenizer *t, const wb_json *json, wb_text_step *step) {
    step->run = run_prepend;
    return wb_member_text(t, json, "prepend", &step->content, &step->content_bytes);
}

static bool run_replace(const wb_text_step *step, const char *text, size_t bytes, bool is_first,
                        wb_pieces *out) {
    const int64_t first = (int64_t)out->text.size;
    wb_match match = {.data = NULL};
    size_t at = 0, length;
    int64_t begin, end = 0;
    for (size_t from = 0; from <= bytes;) {
        if (!wb_step_find(step, &match, text, bytes, from, &begin, &end)) break;
        wb_text_bytes(&out->text, text + at, (size_t)begin - at);
        wb_text_bytes(&out->text, step->content, step->content_bytes);
        from = at = (size_t)end;
        if (begin != end) continue;
        if (at == bytes) break; /* an empty match: on to the next character */
        (void)wb_utf8_code(text + at, &length);
        from += length;
    }
    wb_match_release(&match);
    wb_text_bytes(&out->text, text + at, bytes - at);
    return end >= 0 && give(out, first, is_first);
}

static wb_status read_replace(wb_tokenizer *t, const wb_json *json, wb_text_step *step) {
    step->run = run_replace;
    const wb_status status =
        wb_member_text(t, json, "content", &step->content, &step->content_bytes);
    return status == WB_OK ? wb_pattern_read(t, json, wb_json_get(json, "pattern"), step) : status;
}

static bool run_strip(const wb_text_step *step, const char *text, size_t bytes, bool is_first,
                      wb_pieces *out) {
    const wb_unicode *unicode = &step->tokenizer->unicode;
    size_t begin = bytes, end = 0, length;
    for (size_t i = 0; i < bytes; i += length) {
        if (wb_is_space(unicode, wb_utf8_code(text + i, &length))) continue;
        if (begin == bytes) begin = i;
        end = i + length;
    }
    if (!step->begin) begin = 0;
    if (!step->end) end = bytes;
    return begin >= end || wb_pieces_add(out, text + begin, end - begin, is_first && !begin);
}

static wb_status read_strip(wb_tokenizer *t, const wb_json *json, wb_text_step *step) {
    bool is_left = true, is_right = true;
    step->run = run_strip;
    wb_status status = wb_member_bool(t, json, "strip_left", true, &is_left);
    if (status == WB_OK) status = wb_member_bool(t, json, "strip_right", true, &is_right);
    step->begin = is_left, step->end = is_right;
    return status;
}

static bool run_charsmap(const wb_text_step *step, const char *text, size_t bytes, bool is_first,
                         wb_pieces *out) {
    const int64_t begin = (int64_t)out->text.size;
    return wb_charsmap_run(step, text, bytes, &out->text) && give(out, begin, is_first);
}

static wb_status read_charsmap(wb_tokenizer *t, const wb_json *json, wb_text_step *step) {
    step->run = run_charsmap;
    return wb_charsmap_read(t, json, step);
}

static bool run_byte_level(const wb_text_step *step, const char *text, size_t bytes, bool is_first,
                           wb_pieces *out) {
    (void)step;
    const int64_t begin = (int64_t)out->text.size;
    wb_byte_level(&out->text, text, bytes);
    return give(out, begin, is_first);
}

static wb_status read_byte_level(wb_tokenizer *t, const wb_json *json, wb_text_step *step) {
    (void)t, (void)json;
    step->run = run_byte_level;
    return WB_OK;
}

wb_status wb_normalisers_read(wb_tokenizer *t, const wb_json *json) {
    static const wb_step_kind kinds[] = {{"NFC", read_nfc},
                                         {"NFD", read_nfd},
                                         {"NFKC", read_nfkc},
                                         {"NFKD", read_nfkd},
                                         {"Lowercase", read_lowercase},
                                         {"StripAccents", read_strip_accents},
                                         {"BertNormalizer", read_bert},
                                         {"Prepend", read_prepend},
                                         {"Replace", read_replace},
                                         {"Strip", read_strip},
                                         {"ByteLevel", read_byte_level},
                                         {"Precompiled", read_charsmap}};
    return wb_steps_read(t, &t->normalisers, json, "normalizer", "normalizers", kinds,
                         sizeof kinds / sizeof *kinds);
}
