/* What stands around the ids of a text ("post_processor"): [CLS] ... [SEP]. */
#include <string.h>

#include "text/tokenizer.h"

static wb_status put_id(wb_tokenizer *t, const wb_json *value) {
    int64_t id;
    if (!wb_json_integer(value, &id) || id < 0 || id > INT32_MAX)
        return wb_json_fault(t->file, value, "an id must be an integer from 0 to 2^31 - 1");
    return wb_ids_add(&t->template, (int32_t)id) ? WB_OK : WB_ERROR_MEMORY;
}

/* Where the text's ids belong. */
static wb_status put_text(wb_tokenizer *t) {
    return wb_ids_add(&t->template, -1) ? WB_OK : WB_ERROR_MEMORY;
}

static wb_status put_special(wb_tokenizer *t, const wb_json *json, const wb_json *token) {
    const wb_json *name = wb_json_get(token, "id");
    if (!name || name->kind != WB_JSON_TEXT)
        return wb_json_fault(t->file, token, "a special token must have an id");
    const wb_json *own =
        wb_json_find(wb_json_get(json, "special_tokens"), name->text, (size_t)name->count);
    const wb_json *ids = wb_json_get(own, "ids");
    if (!ids || ids->kind != WB_JSON_LIST)
        return wb_json_fault(t->file, name, "special_tokens has no ids of \"%.80s\"", name->text);
    wb_status status = WB_OK;
    for (int64_t i = 0; i < ids->count && status == WB_OK; i++) status = put_id(t, &ids->items[i]);
    return status;
}

static wb_status read_items(wb_tokenizer *t, const wb_json *json) {
    const wb_json *single = wb_json_get(json, "single");
    bool has_text = false;
    wb_status status = WB_OK;
    if (!single || single->kind != WB_JSON_LIST)
        return wb_json_fault(t->file, single ? single : json, "single must be a list, but is %s",
                             wb_json_noun(single));
    for (int64_t i = 0; i < single->count && status == WB_OK; i++) {
        const wb_json *item = &single->items[i];
        const wb_json *special = wb_json_get(item, "SpecialToken");
        if (!special && (has_text || !wb_json_get(item, "Sequence")))
            return wb_json_fault(t->file, item, "a SpecialToken or one Sequence is expected");
        has_text = has_text || !special;
        status = special ? put_special(t, json, special) : put_text(t);
    }
    if (status == WB_OK && !has_text)
        return wb_json_fault(t->file, single, "single has no Sequence");
    return status;
}

/* ["[SEP]", 102] */
static wb_status put_pair(wb_tokenizer *t, const wb_json *json, const char *name) {
    const wb_json *pair = wb_json_get(json, name);
    if (!pair || pair->kind != WB_JSON_LIST || pair->count != 2)
        return wb_json_fault(t->file, pair ? pair : json, "%s must be a token and its id", name);
    return put_id(t, &pair->items[1]);
}

static wb_status read_pair(wb_tokenizer *t, const wb_json *json) {
    wb_status status = put_pair(t, json, "cls");
    if (status == WB_OK) status = put_text(t);
    return status == WB_OK ? put_pair(t, json, "sep") : status;
}

static wb_status read_list(wb_tokenizer *t, const wb_json *json) {
    const wb_json *list = wb_json_get(json, "processors");
    wb_status status = WB_OK; /* nesting is bounded by the parser */
    for (int64_t i = 0; list && i < list->count && status == WB_OK; i++)
        if (list->kind == WB_JSON_LIST) status = wb_template_read(t, &list->items[i]);
    return status;
}

wb_status wb_template_read(wb_tokenizer *t, const wb_json *json) {
    if (!json || json->kind == WB_JSON_NULL) return WB_OK;
    const char *type = wb_json_text(wb_json_get(json, "type"));
    if (!type) return wb_json_fault(t->file, json, "post_processor must be an object with a type");
    if (strcmp(type, "ByteLevel") == 0) return WB_OK; /* of offsets, which are not computed */
    if (strcmp(type, "Sequence") == 0) return read_list(t, json);
    if (t->template.count)
        return wb_json_fault(t->file, json, "only one post_processor may add special tokens");
    if (strcmp(type, "TemplateProcessing") == 0) return read_items(t, json);
    if (strcmp(type, "BertProcessing") == 0 || strcmp(type, "RobertaProcessing") == 0)
        return read_pair(t, json);
    return wb_json_fault(t->file, json, "the post_processor \"%.80s\" is not supported", type);
}
