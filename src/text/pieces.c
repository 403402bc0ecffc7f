/* Lists of pieces of a text, and of ids. */
#include "base/memory.h"
#include "text/tokenizer.h"

bool wb_pieces_add(wb_pieces *out, const char *text, size_t bytes, bool is_first) {
    if (!bytes) return true;
    if (!WB_GROW(out->pieces, out->count, out->capacity)) return false;
    const int64_t begin = (int64_t)out->text.size;
    wb_text_bytes(&out->text, text, bytes);
    out->pieces[out->count++] = (wb_piece){begin, (int64_t)out->text.size, -1, is_first};
    return wb_text_status(&out->text) == WB_OK;
}

bool wb_pieces_add_token(wb_pieces *out, int64_t begin) {
    if (!WB_GROW(out->pieces, out->count, out->capacity)) return false;
    out->pieces[out->count++] = (wb_piece){begin, (int64_t)out->text.size, -1, false};
    return wb_text_status(&out->text) == WB_OK;
}

void wb_pieces_release(wb_pieces *pieces) {
    wb_text_release(&pieces->text);
    wb_release(pieces->pieces);
    *pieces = (wb_pieces){.count = 0};
}

bool wb_ids_add(wb_ids *out, int32_t id) {
    if (!WB_GROW(out->ids, out->count, out->capacity)) return false;
    out->ids[out->count++] = id;
    return true;
}

bool wb_has_byte_ids(const wb_token_model *model, const char *text, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        if (model->byte_ids[(unsigned char)text[i]] < 0) return false;
    return true;
}
