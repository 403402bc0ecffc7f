/* Decoders: each makes a list of tokens of a list of tokens. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/tokenizer.h"

static const char *token_of(const wb_pieces *in, int64_t i, size_t *bytes) {
    *bytes = (size_t)(in->pieces[i].end - in->pieces[i].begin);
    return in->text.data ? in->text.data + in->pieces[i].begin : "";
}

/* ---- bytes ---- */

static bool run_byte_level(const wb_text_step *step, const wb_pieces *in, wb_pieces *out) {
    wb_text all = {.data = NULL};
    for (int64_t i = 0; i < in->count; i++) {
        size_t bytes;
        const char *text = token_of(in, i, &bytes);
        if (!wb_byte_level_back(&all, text, bytes)) wb_text_bytes(&all, text, bytes);
    }
    const bool is_fine = wb_text_status(&all) == WB_OK;
    const size_t open = step->is_partial && all.size ? wb_unfinished_bytes(all.data, all.size) : 0;
    if (is_fine && all.size) wb_put_valid(&out->text, all.data, all.size - open);
    wb_text_release(&all);
    return is_fine && wb_pieces_add_token(out, 0);
}

/* <0x41>: its byte; else -1. */
static int byte_of(const char *text, size_t bytes) {
    char *end;
    if (bytes != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>') return -1;
    const char digits[] = {text[3], text[4], 0};
    const long byte = strtol(digits, &end, 16);
    return digits[0] != ' ' && digits[0] != '-' && *end == 0 ? (int)byte : -1;
}

/* Bytes that are a text; else U+FFFD for each of them. */
static bool add_run(wb_pieces *out, const wb_text *run) {
    const int64_t begin = (int64_t)out->text.size;
    if (!run->size) return true;
    if (wb_utf8_fault(run->data, run->size) < 0)
        wb_text_bytes(&out->text, run->data, run->size);
    else
        for (size_t i = 0; i < run->size; i++) wb_text_put(&out->text, "\xEF\xBF\xBD");
    return wb_pieces_add_token(out, begin);
}

/* What the bytes at the end are is not known while more may follow. */
static bool run_byte_fallback(const wb_text_step *step, const wb_pieces *in, wb_pieces *out) {
    wb_text run = {.data = NULL};
    bool is_fine = true;
    for (int64_t i = 0; i < in->count && is_fine; i++) {
        size_t bytes;
        const char *text = token_of(in, i, &bytes);
        const int byte = byte_of(text, bytes);
        if (byte >= 0) {
            wb_text_byte(&run, (char)byte);
            continue;
        }
        is_fine = add_run(out, &run);
        run.size = 0;
        const int64_t begin = (int64_t)out->text.size;
        wb_text_bytes(&out->text, text, bytes);
        is_fine = is_fine && wb_pieces_add_token(out, begin);
    }
    is_fine = is_fine && (step->is_partial || add_run(out, &run));
    is_fine = is_fine && wb_text_status(&run) == WB_OK;
    wb_text_release(&run);
    return is_fine;
}

/* ---- texts ---- */

static bool run_fuse(const wb_text_step *step, const wb_pieces *in, wb_pieces *out) {
    (void)step;
    wb_text_bytes(&out->text, in->text.data, in->text.size);
    return wb_pieces_add_token(out, 0);
}

static bool run_metaspace(const wb_text_step *step, const wb_pieces *in, wb_pieces *out) {
    for (int64_t i = 0; i < in->count; i++) {
        size_t bytes;
        const int64_t begin = (int64_t)out->text.size;
        const char *text = token_of(in, i, &bytes);
        for (size_t at = 0; at < bytes;) {
            const bool is_it = bytes - at >= step->text_bytes &&
                               memcmp(text + at, step->text, step->text_bytes) == 0;
            if (!is_it)
                wb_text_byte(&out->text, text[at]);
            else if (i > 0 || !step->adds_prefix)
                wb_text_byte(&out->text, ' ');
            at += is_it ? step->text_bytes : 1;
        }
        if (!wb_pieces_add_token(out, begin)) return false;
    }
    return true;
}

static void put_replaced(wb_text *out, const char *text, size_t bytes, const char *from,
                         const char *to) {
    const size_t length = strlen(from);
    for (size_t at = 0; at < bytes;) {
        if (bytes - at >= length && memcmp(text + at, from, length) == 0) {
            wb_text_put(out, to);
            at += length;
        } else {
            wb_text_byte(out, text[at++]);
        }
    }
}

/* Spaces before punctuation and English contractions go. */
static bool put_clean(wb_text *out, const char *text, size_t bytes) {
    static const char *const pairs[][2] = {{" .", "."},     {" ?", "?"},           {" !", "!"},
                                           {" ,", ","},     {" ' ", "'"},          {" n't", "n't"},
                                           {" 'm", "'m"},   {" do not", " don't"}, {" 's", "'s"},
                                           {" 've", "'ve"}, {" 're", "'re"}};
    wb_text now = {.data = NULL};
    wb_text_bytes(&now, text, bytes);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs && wb_text_status(&now) == WB_OK; i++) {
        wb_text next = {.data = NULL};
        put_replaced(&next, now.data, now.size, pairs[i][0], pairs[i][1]);
        wb_text_release(&now);
        now = next;
    }
    const bool is_fine = wb_text_status(&now) == WB_OK;
    if (is_fine) wb_text_bytes(out, now.data, now.size);
    wb_text_release(&now);
    return is_fine;
}

static bool run_wordpiece(const wb_text_step *step, const wb_pieces *in, wb_pieces *out) {
    wb_text token = {.data = NULL};
    bool is_fine = true;
    for (int64_t i = 0; i < in->count && is_fine; i++) {
        size_t bytes;
        const int64_t begin = (int64_t)out->text.size;
        const char *text = token_of(in, i, &bytes);
        const bool goes_on =
            i > 0 && bytes >= step->text_bytes && memcmp(text, step->text, step->text_bytes) == 0;
        token.size = 0;
        if (i > 0 && !goes_on) wb_text_byte(&token, ' ');
        const size_t skipped = goes_on ? step->text_bytes : 0;
        wb_text_bytes(&token, text + skipped, bytes - skipped);
        if (step->cleans)
            is_fine = put_clean(&out->text, token.data ? token.data : "", token.size);
        else
            wb_text_bytes(&out->text, token.data, token.size);
        is_fine = is_fine && wb_pieces_add_token(out, begin);
    }
    is_fine = is_fine && wb_text_status(&token) == WB_OK;
    wb_text_release(&token);
    return is_fine;
}

static bool run_bpe(const wb_text_step *step, const wb_pieces *in, wb_pieces *out) {
    for (int64_t i = 0; i < in->count; i++) {
        size_t bytes;
        const int64_t begin = (int64_t)out->text.size;
        const char *text = token_of(in, i, &bytes);
        if (step->text_bytes)
            put_replaced(&out->text, text, bytes, step->text, i + 1 < in->count ? " " : "");
        else
            wb_text_bytes(&out->text, text, bytes);
        if (!wb_pieces_add_token(out, begin)) return false;
    }
    return true;
}

static bool run_replace(const wb_text_step *step, const wb_pieces *in, wb_pieces *out) {
    wb_match match = {.data = NULL};
    bool is_fine = true;
    for (int64_t i = 0; i < in->count && is_fine; i++) {
        size_t bytes, at = 0;
        const int64_t first = (int64_t)out->text.size;
        const char *text = token_of(in, i, &bytes);
        int64_t begin, end = 0;
        while (at < bytes && wb_step_find(step, &match, text, bytes, at, &begin, &end)) {
            wb_text_bytes(&out->text, text + at, (size_t)begin - at);
            wb_text_bytes(&out->text, step->content, step->content_bytes);
            if (begin == end) break; /* an empty match would be found again */
            at = (size_t)end;
        }
        wb_text_bytes(&out->text, text + at, bytes - at);
        is_fine = end >= 0 && wb_pieces_add_token(out, first);
    }
    wb_match_release(&match);
    return is_fine;
}

/* At most so many of the character from both ends of each token. */
static bool run_strip(const wb_text_step *step, const wb_pieces *in, wb_pieces *out) {
    const size_t length = step->text_bytes;
    for (int64_t i = 0; i < in->count; i++) {
        size_t bytes;
        const int64_t first = (int64_t)out->text.size;
        const char *text = token_of(in, i, &bytes), *end = text + bytes;
        for (int64_t k = 0; k < step->begin && (size_t)(end - text) >= length &&
                            memcmp(text, step->text, length) == 0;
             k++)
            text += length;
        for (int64_t k = 0; k < step->end && (size_t)(end - text) >= length &&
                            memcmp(end - length, step->text, length) == 0;
             k++)
            end -= length;
        wb_text_bytes(&out->text, text, (size_t)(end - text));
        if (!wb_pieces_add_token(out, first)) return false;
    }
    return true;
}

/* ---- reading ---- */

static wb_status read_metaspace(wb_tokenizer *t, const wb_json *json, wb_text_step *step) {
    const wb_json *scheme = wb_json_get(json, "prepend_scheme");
    wb_status status = wb_member_text(t, json, "replacement", &step->text, &step->text_bytes);
    if (status == WB_OK)
        status = wb_member_bool(t, json, "add_prefix_space", true, &step->adds_prefix);
    if (scheme) step->adds_prefix = !wb_json_is(scheme, "never");
    if (status == WB_OK && !step->text_bytes)
        return wb_json_fault(t->file, json, "replacement must not be empty");
    return status;
}

static wb_status read_wordpiece(wb_tokenizer *t, const wb_json *json, wb_text_step *step) {
    const wb_status status = wb_member_text(t, json, "prefix", &step->text, &step->text_bytes);
    return status == WB_OK ? wb_member_bool(t, json, "cleanup", true, &step->cleans) : status;
}

static wb_status read_bpe(wb_tokenizer *t, const wb_json *json, wb_text_step *step) {
    return wb_member_text(t, json, "suffix", &step->text, &step->text_bytes);
}

static wb_status read_replace(wb_tokenizer *t, const wb_json *json, wb_text_step *step) {
    const wb_status status =
        wb_member_text(t, json, "content", &step->content, &step->content_bytes);
    return status == WB_OK ? wb_pattern_read(t, json, wb_json_get(json, "pattern"), step) : status;
}

static wb_status read_strip(wb_tokenizer *t, const wb_json *json, wb_text_step *step) {
    const wb_status status = wb_member_text(t, json, "content", &step->text, &step->text_bytes);
    if (status != WB_OK) return status;
    if (!step->text_bytes) return wb_json_fault(t->file, json, "content must not be empty");
    if (!wb_json_integer(wb_json_get(json, "start"), &step->begin) ||
        !wb_json_integer(wb_json_get(json, "stop"), &step->end))
        return wb_json_fault(t->file, json, "start and stop must be integers");
    return WB_OK;
}

static wb_status read_nothing(wb_tokenizer *t, const wb_json *json, wb_text_step *step) {
    return (void)t, (void)json, (void)step, WB_OK;
}

static const struct {
    const char *name;
    wb_decoder_fn *run;
    wb_status (*read)(wb_tokenizer *t, const wb_json *json, wb_text_step *step);
} kinds[] = {{"ByteLevel", run_byte_level, read_nothing},
             {"ByteFallback", run_byte_fallback, read_nothing},
             {"Fuse", run_fuse, read_nothing},
             {"Metaspace", run_metaspace, read_metaspace},
             {"WordPiece", run_wordpiece, read_wordpiece},
             {"BPEDecoder", run_bpe, read_bpe},
             {"Replace", run_replace, read_replace},
             {"Strip", run_strip, read_strip}};

static wb_status read_one(wb_tokenizer *t, const wb_json *json, const char *type) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].name, type) != 0) continue;
        wb_decoder decoder = {kinds[i].run, {.tokenizer = t}};
        const wb_status status = kinds[i].read(t, json, &decoder.step);
        if (status != WB_OK) return status;
        if (!WB_GROW(t->decoders, t->decoder_count, t->decoder_capacity)) return WB_ERROR_MEMORY;
        t->decoders[t->decoder_count++] = decoder;
        return WB_OK;
    }
    return wb_json_fault(t->file, json, "the decoder \"%.80s\" is not supported", type);
}

wb_status wb_decoders_read(wb_tokenizer *t, const wb_json *json) {
    if (!json || json->kind == WB_JSON_NULL) return WB_OK;
    const char *type = wb_json_text(wb_json_get(json, "type"));
    t->has_decoder = true;
    if (!type) return wb_json_fault(t->file, json, "decoder must be an object with a type");
    if (strcmp(type, "Sequence") != 0) return read_one(t, json, type);
    const wb_json *list = wb_json_get(json, "decoders");
    if (!list || list->kind != WB_JSON_LIST)
        return wb_json_fault(t->file, list ? list : json, "decoders must be a list");
    wb_status status = WB_OK; /* nesting is bounded by the parser */
    for (int64_t i = 0; i < list->count && status == WB_OK; i++)
        status = wb_decoders_read(t, &list->items[i]);
    return status;
}
