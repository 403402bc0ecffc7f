/* From ids to a text: the tokens go through the decoders; what is left is joined. */
#include <string.h>

#include "text/tokenizer.h"

/* What stands for an id, or NULL. Whether a token is special its text says, not its id. */
static const wb_entry *shown_of(const wb_tokenizer *t, int32_t id, bool with_special,
                                wb_entry *normalised) {
    const wb_added *added = wb_added_of(t, id);
    const wb_entry *entry = added ? &added->entry : wb_vocabulary_entry(&t->model.vocabulary, id);
    if (added && added->is_normalised) { /* as the library tokenizers shows it */
        *normalised =
            (wb_entry){.text = added->normalised, .bytes = (uint32_t)added->normalised_bytes};
        entry = normalised;
    }
    if (!entry || with_special) return entry;
    if (!added) added = wb_added_named(t, entry->text, entry->bytes);
    return added && added->is_special ? NULL : entry;
}

static bool collect(const wb_tokenizer *t, const wb_decode_desc *d, wb_pieces *out) {
    for (int64_t i = 0; i < d->count; i++) {
        wb_entry normalised;
        const wb_entry *entry = shown_of(t, d->ids[i], d->special, &normalised);
        if (!entry) continue;
        const int64_t begin = (int64_t)out->text.size;
        if (!t->has_decoder && begin) wb_text_byte(&out->text, ' ');
        wb_text_bytes(&out->text, entry->text, entry->bytes);
        if (!wb_pieces_add_token(out, begin)) return false;
    }
    return true;
}

static bool decode(const wb_tokenizer *t, bool is_partial, wb_pieces *pieces) {
    for (int64_t i = 0; i < t->decoder_count; i++) {
        wb_pieces next = {.count = 0};
        wb_text_step step = t->decoders[i].step;
        step.is_partial = is_partial;
        const bool is_fine = t->decoders[i].run(&step, pieces, &next);
        wb_pieces_release(pieces);
        *pieces = next;
        if (!is_fine) return false;
    }
    return wb_text_status(&pieces->text) == WB_OK;
}

static int64_t give(const wb_decode_desc *d, const wb_text *all) {
    if (d->text && d->room > 0) {
        const size_t taken = (int64_t)all->size < d->room ? all->size : (size_t)d->room - 1;
        if (taken) memcpy(d->text, all->data, taken);
        d->text[taken] = 0;
    }
    return (int64_t)all->size;
}

int64_t wb_decode_make(const wb_tokenizer *tokenizer, wb_decode_desc desc) {
    if (!wb_tokenizer_check("wb_decode", tokenizer) || !wb_check_start("wb_decode", desc.start_) ||
        !wb_check_list("wb_decode", desc.count, desc.ids))
        return -1;
    if (desc.room < 0) {
        (void)wb_fail(WB_ERROR_ARGUMENT, "wb_decode: .room must not be negative, got %lld",
                      (long long)desc.room);
        return -1;
    }
    wb_pieces pieces = {.count = 0};
    const bool is_fine =
        collect(tokenizer, &desc, &pieces) && decode(tokenizer, desc.partial, &pieces);
    const int64_t bytes = is_fine ? give(&desc, &pieces.text) : -1;
    wb_pieces_release(&pieces);
    return bytes;
}
