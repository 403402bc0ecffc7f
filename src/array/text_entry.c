/* Texts as objects that wb_save_named accepts, as it accepts arrays. */
#include <string.h>

#include <weber/array.h>

#include "array/array.h"
#include "array/use.h"
#include "base/memory.h"
#include "base/utf8.h"

struct wb_text_entry {
    wb_object object;
    char *text;
};

static void entry_free(void *object) {
    wb_text_entry *entry = object;
    wb_release(entry->text);
    wb_object_delete(entry, sizeof *entry, "text");
}

static const wb_class entry_class = {.name = "text", .free = entry_free, .maker = "wb_text"};

wb_text_entry *wb_text_make(const char *text) {
    if (!text) return wb_failed() ? NULL : wb_fail_argument_null("wb_text", "the text");
    const int64_t fault = wb_utf8_fault(text, strlen(text));
    if (fault >= 0)
        return wb_fail_null(WB_ERROR_ARGUMENT,
                            "wb_text: a text must be UTF-8, but byte %lld of it (from 0) is 0x%02x",
                            (long long)fault, (unsigned char)text[fault]);
    wb_text_entry *entry = wb_object_new(&entry_class, sizeof *entry);
    if (!entry) return NULL;
    if ((entry->text = wb_copy_text(text))) return wb_scope_own(entry);
    entry_free(entry);
    return NULL;
}

const char *wb_text_of_entry(const wb_text_entry *entry) {
    return wb_may_use("wb_text_of_entry", entry, &entry_class, "the text") ? entry->text : NULL;
}

const char *wb_entry_text(const void *object) {
    const bool is_entry = wb_known_class(object) == &entry_class;
    return is_entry ? ((const wb_text_entry *)object)->text : NULL;
}
