/* From a text to ids: added tokens are cut out, what is left is normalised, split, and given to the
 * model. */
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "text/tokenizer.h"

/* ---- added tokens ---- */

static bool is_word_before(const wb_unicode *unicode, const char *text, size_t at) {
    size_t length;
    if (!at) return false;
    do at--;
    while (at && ((unsigned char)text[at] & 0xC0) == 0x80);
    return wb_is_word_character(unicode, wb_utf8_code(text + at, &length));
}

static bool is_word_at(const wb_unicode *unicode, const char *text, size_t bytes, size_t at) {
    size_t length;
    return at < bytes && wb_is_word_character(unicode, wb_utf8_code(text + at, &length));
}

static size_t spaces_before(const wb_unicode *unicode, const char *text, size_t at) {
    size_t length, begin = at;
    while (begin) {
        size_t one = begin - 1;
        while (one && ((unsigned char)text[one] & 0xC0) == 0x80) one--;
        if (!wb_is_space(unicode, wb_utf8_code(text + one, &length))) break;
        begin = one;
    }
    return at - begin;
}

static size_t spaces_at(const wb_unicode *unicode, const char *text, size_t bytes, size_t at) {
    size_t length, end = at;
    while (end < bytes && wb_is_space(unicode, wb_utf8_code(text + end, &length))) end += length;
    return end - at;
}

/* The longest added token that the text has here. */
static const wb_added *added_at(const wb_tokenizer *t, bool is_normalised, const char *text,
                                size_t left, size_t *bytes) {
    int32_t id = -1;
    if (!t->begins[(unsigned char)*text]) return NULL;
    *bytes = wb_vocabulary_longest(is_normalised ? &t->normal : &t->plain, "", text, left, &id);
    return *bytes ? &t->added[INT32_MAX - id] : NULL;
}

static bool stands_alone(const wb_unicode *unicode, const char *text, size_t bytes, size_t begin,
                         size_t end) {
    return !is_word_before(unicode, text, begin) && !is_word_at(unicode, text, bytes, end);
}

static bool add_token(wb_pieces *out, int32_t id) {
    if (!WB_GROW(out->pieces, out->count, out->capacity)) return false;
    const int64_t at = (int64_t)out->text.size;
    out->pieces[out->count++] = (wb_piece){at, at, id, false};
    return true;
}

bool wb_added_split(const wb_tokenizer *t, bool is_normalised, const char *text, size_t bytes,
                    bool is_first, wb_pieces *out) {
    const wb_unicode *unicode = &t->unicode;
    size_t done = 0, length;
    for (size_t at = 0; at < bytes;) {
        const wb_added *added = added_at(t, is_normalised, text + at, bytes - at, &length);
        if (!added) {
            at++;
            continue;
        }
        size_t begin = at, end = at + length;
        at = end;
        if (added->is_single_word && !stands_alone(unicode, text, bytes, begin, end)) continue;
        if (added->strips_left) begin -= spaces_before(unicode, text, begin);
        if (begin < done) begin = done; /* spaces that the token before has taken */
        if (added->strips_right) end += spaces_at(unicode, text, bytes, end);
        if (!wb_pieces_add(out, text + done, begin - done, is_first && !done) ||
            !add_token(out, added->entry.id))
            return false;
        done = end;
    }
    return done >= bytes || wb_pieces_add(out, text + done, bytes - done, is_first && !done);
}

/* ---- the way of a text ---- */

/* The ids of a piece without added tokens: split, and by the model. */
static bool encode_plain(const wb_tokenizer *t, const char *text, size_t bytes, bool is_first,
                         wb_ids *out) {
    wb_pieces pieces = {.count = 0};
    bool is_fine =
        wb_pieces_add(&pieces, text, bytes, is_first) && wb_steps_run(&t->splitters, &pieces);
    for (int64_t i = 0; i < pieces.count && is_fine; i++) {
        const wb_piece *piece = &pieces.pieces[i];
        is_fine = t->model.encode(&t->model, pieces.text.data + piece->begin,
                                  (size_t)(piece->end - piece->begin), out);
    }
    wb_pieces_release(&pieces);
    return is_fine;
}

static bool encode_pieces(const wb_tokenizer *t, const wb_pieces *pieces, wb_ids *out) {
    for (int64_t i = 0; i < pieces->count; i++) {
        const wb_piece *piece = &pieces->pieces[i];
        const bool is_fine = piece->id >= 0 ? wb_ids_add(out, piece->id)
                                            : encode_plain(t, pieces->text.data + piece->begin,
                                                           (size_t)(piece->end - piece->begin),
                                                           piece->is_first, out);
        if (!is_fine) return false;
    }
    return true;
}

/* A part of the text without the added tokens that are looked for in the text as it is. */
static bool encode_part(const wb_tokenizer *t, const char *text, size_t bytes, bool is_first,
                        wb_ids *out) {
    wb_pieces normal = {.count = 0}, pieces = {.count = 0};
    bool is_fine =
        wb_pieces_add(&normal, text, bytes, is_first) && wb_steps_run(&t->normalisers, &normal);
    for (int64_t i = 0; i < normal.count && is_fine; i++) {
        const wb_piece *piece = &normal.pieces[i];
        is_fine = wb_added_split(t, true, normal.text.data + piece->begin,
                                 (size_t)(piece->end - piece->begin), piece->is_first, &pieces);
    }
    is_fine = is_fine && encode_pieces(t, &pieces, out);
    wb_pieces_release(&normal);
    wb_pieces_release(&pieces);
    return is_fine;
}

static bool encode_text(const wb_tokenizer *t, const char *text, size_t bytes, wb_ids *out) {
    wb_pieces parts = {.count = 0};
    bool is_fine = wb_added_split(t, false, text, bytes, true, &parts);
    for (int64_t i = 0; i < parts.count && is_fine; i++) {
        const wb_piece *part = &parts.pieces[i];
        is_fine = part->id >= 0
                      ? wb_ids_add(out, part->id)
                      : encode_part(t, parts.text.data + part->begin,
                                    (size_t)(part->end - part->begin), part->is_first, out);
    }
    wb_pieces_release(&parts);
    return is_fine;
}

static bool encode(const wb_tokenizer *t, const wb_encode_desc *d, size_t bytes, wb_ids *out) {
    if (!d->special || !t->template.count) return encode_text(t, d->text, bytes, out);
    for (int64_t i = 0; i < t->template.count; i++) {
        const int32_t id = t->template.ids[i];
        if (!(id >= 0 ? wb_ids_add(out, id) : encode_text(t, d->text, bytes, out))) return false;
    }
    return true;
}

static bool check_text(const wb_encode_desc *d, size_t bytes) {
    const int64_t fault = wb_utf8_fault(d->text, bytes);
    if (fault < 0) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT, "wb_encode: byte %lld of the text is not valid UTF-8",
                  (long long)fault);
    return false;
}

int64_t wb_encode_make(const wb_tokenizer *tokenizer, wb_encode_desc desc) {
    if (!wb_tokenizer_check("wb_encode", tokenizer) || !wb_check_start("wb_encode", desc.start_))
        return -1;
    if (!desc.text) {
        if (!wb_failed()) (void)wb_fail_argument_null("wb_encode", "the text");
        return -1;
    }
    if (desc.bytes < 0 || desc.room < 0 || (desc.room > 0 && !desc.ids)) {
        const bool is_bytes = desc.bytes < 0, is_room = desc.room < 0;
        (void)wb_fail(WB_ERROR_ARGUMENT, "wb_encode: %s, got %lld",
                      is_bytes  ? ".bytes must not be negative"
                      : is_room ? ".room must not be negative"
                                : ".ids must be given with a .room",
                      (long long)(is_bytes ? desc.bytes : desc.room));
        return -1;
    }
    const size_t bytes = desc.bytes ? (size_t)desc.bytes : strlen(desc.text);
    wb_ids ids = {.count = 0};
    if (!check_text(&desc, bytes)) return -1;
    const int64_t count = encode(tokenizer, &desc, bytes, &ids) ? ids.count : -1;
    for (int64_t i = 0; i < count && i < desc.room; i++) desc.ids[i] = ids.ids[i];
    wb_release(ids.ids);
    return count;
}
