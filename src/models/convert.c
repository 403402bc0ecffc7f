/* Writes the tree of a file to a file of another format. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "formats/flat.h"
#include "formats/format.h"
#include "formats/gguf.h"
#include "formats/index.h"
#include "layers/layer.h"
#include "models/flux.h"
#include "models/rename.h"
#include "models/structure.h"

typedef struct conversion {
    const wb_file *file;
    const wb_format *format;
    int64_t widened; /* arrays of bf16 that became f32 */
} conversion;

/* Arrays that a table rearranges, and bf16 if the format lacks it, are written from a copy, which
 * belongs to the scope. */
static bool make_array(wb_record *r, void *context) {
    conversion *c = context;
    const bool is_widened =
        r->kind == WB_RECORD_ARRAY && r->dtype == WB_BF16 && c->format->refuses(r) != NULL;
    if (r->array || (!r->turn && !is_widened)) return true;
    wb_array *x = wb_record_array(c->file, r);
    r->array = is_widened ? wb_cast(x, WB_F32) : wb_data_copy(x);
    r->dtype = is_widened ? WB_F32 : r->dtype;
    c->widened += is_widened;
    return wb_eval(r->array) == WB_OK;
}

/* A number as a text; NULL: it is none. */
static const char *text_of(const wb_record *r, char *text, size_t size_bytes) {
    if (r->kind == WB_RECORD_BOOL) return r->boolean ? "true" : "false";
    if (r->kind == WB_RECORD_INTEGER)
        (void)snprintf(text, size_bytes, "%lld", (long long)r->integer);
    else if (r->kind == WB_RECORD_REAL)
        (void)snprintf(text, size_bytes, "%.9g", r->real);
    else
        return NULL;
    return text;
}

/* GGUF's metadata have numbers and lists, too. All other formats have texts alone: numbers become
 * texts, lists are left out and counted. */
static bool make_texts(wb_file *file, int64_t *left_out) {
    wb_arena *arena = &file->arena;
    const wb_record *old = file->metadata;
    wb_record *texts = old ? wb_record_new(arena, WB_RECORD_MAP) : NULL;
    if (!old) return true;
    if (!texts || !wb_record_room(arena, texts, old->count, true)) return false;
    texts->count = 0;
    for (int64_t i = 0; i < old->count; i++) {
        char number[40];
        const char *text = text_of(old->children[i], number, sizeof number);
        wb_record *record = text ? wb_record_new(arena, WB_RECORD_TEXT) : old->children[i];
        if (!record) return false;
        if (text && !(record->text = wb_arena_text(arena, text, strlen(text)))) return false;
        *left_out += record->kind != WB_RECORD_TEXT;
        if (record->kind != WB_RECORD_TEXT) continue;
        texts->children[texts->count] = record, texts->names[texts->count++] = old->names[i];
    }
    file->metadata = texts;
    return true;
}

/* BSON's metadata are a part of the tree as well. */
static void drop_child(wb_record *root, const wb_record *child) {
    for (int64_t i = 0; child && i < root->count; i++) {
        if (root->children[i] != child) continue;
        const size_t rest = (size_t)(--root->count - i);
        memmove(root->children + i, root->children + i + 1, rest * sizeof *root->children);
        memmove(root->names + i, root->names + i + 1, rest * sizeof *root->names);
        return;
    }
}

/* Replaces Flux's wrappers by what they wrap: Zygote.Params by its list of arrays. */
static bool unwrap(wb_record *r, void *unused) {
    (void)unused;
    for (int64_t i = 0; i < r->count; i++) r->children[i] = wb_flux_unwrapped(r->children[i]);
    return true;
}

/* Moves texts of the root to the place that the format has for texts. */
static bool move_texts(wb_file *file, wb_record *root) {
    const wb_record *old = file->metadata;
    wb_record *texts = wb_record_new(&file->arena, WB_RECORD_MAP);
    const int64_t before = old ? old->count : 0;
    if (!texts || !wb_record_room(&file->arena, texts, before + root->count, true)) return false;
    texts->count = before;
    for (int64_t i = 0; i < before; i++)
        texts->children[i] = old->children[i], texts->names[i] = old->names[i];
    int64_t kept = 0;
    for (int64_t i = 0; i < root->count; i++) {
        const bool is_text = root->children[i]->kind == WB_RECORD_TEXT;
        wb_record *to = is_text ? texts : root;
        int64_t *place = is_text ? &texts->count : &kept;
        to->names[*place] = root->names[i];
        to->children[(*place)++] = root->children[i];
    }
    root->count = kept;
    file->metadata = texts;
    return true;
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Leaves out of models with a text what the text says already. */
static bool leave_out_settings(wb_file *file, const wb_format *format, wb_record *root) {
    wb_left_out settings = {.count = 0};
    const wb_record *texts = file->metadata;
    const char **names = wb_alloc_list(texts->count + 1, sizeof *names);
    if (!names) return false;
    if (texts->count) memcpy(names, texts->names, (size_t)texts->count * sizeof *names);
    qsort(names, (size_t)texts->count, sizeof *names, by_text);
    bool good = true;
    for (int64_t i = 0; good && i < root->count; i++) {
        const char *text = wb_structure_key(root->names[i], &file->arena);
        if (text && bsearch(&text, names, (size_t)texts->count, sizeof *names, by_text))
            good = wb_leave_out(format, &file->arena, root->children[i], root->names[i], &settings);
    }
    wb_release(names);
    return good && !wb_failed();
}

/* Takes out what the format cannot hold. The values of a model with a text are not lost: the text
 * has them. */
static bool leave_out(wb_file *file, const wb_format *format, wb_record *root, wb_left_out *out) {
    const bool has_only_arrays = format->has_metadata && !format->has_values;
    if (has_only_arrays && root->names &&
        !(move_texts(file, root) && leave_out_settings(file, format, root)))
        return false;
    return !wb_failed() && wb_leave_out(format, &file->arena, root, "", out);
}

static bool is_table(wb_record *record, void *context) {
    (void)context;
    return record->kind == WB_RECORD_MAP || record->kind == WB_RECORD_LIST ||
           record->kind == WB_RECORD_STRUCT;
}

/* A lone array under the name that numpy.savez gives it. */
static wb_record *with_name(wb_file *file, wb_record *root) {
    if (!wb_record_has_data(root)) return root;
    wb_record *map = wb_record_new(&file->arena, WB_RECORD_MAP);
    if (!map || !wb_record_room(&file->arena, map, 1, true)) return NULL;
    map->names[0] = wb_arena_text(&file->arena, "arr_0", strlen("arr_0"));
    map->children[0] = root, map->count = 1;
    return map->names[0] ? map : NULL;
}

/* True for maps with nothing but empty maps in them. */
static bool is_empty(wb_record *root) { return wb_record_walk(root, is_table, NULL); }

static bool set_quantised(wb_record *r, void *type) {
    if (wb_gguf_can_quantise(r)) r->type = type;
    return true;
}

static wb_status check_type(const wb_format *format, const char *to, const char *type) {
    if (type && format != &wb_format_gguf)
        return wb_fail(WB_ERROR_ARGUMENT, "%s: .type is for names that end in .gguf", to);
    if (!type || strcmp(type, WB_GGUF_Q8_0) == 0) return WB_OK;
    return wb_fail(WB_ERROR_ARGUMENT, "%s: .type must be \"" WB_GGUF_Q8_0 "\", but is \"%.40s\"",
                   to, type);
}

static wb_status convert(wb_file *file, const wb_format *format, const char *to,
                         const wb_convert_desc *desc) {
    wb_left_out out = {.count = 0};
    conversion c = {.file = file, .format = format};
    int64_t lists = 0;
    drop_child(file->root, file->metadata);
    if (format != &wb_format_gguf && !make_texts(file, &lists)) return wb_error_status();
    (void)wb_record_walk(file->root, unwrap, NULL);
    const bool had_arrays = wb_record_arrays(file->root) > 0;
    wb_record *root = desc->rename ? wb_rename(file, file->root, desc->rename) : file->root;
    root = root ? with_name(file, root) : NULL;
    if (!root || !wb_record_walk(root, make_array, &c)) return wb_error_status();
    static char q8_0[] = WB_GGUF_Q8_0;
    if (desc->type) (void)wb_record_walk(root, set_quantised, q8_0);
    const bool had_some = !is_empty(root);
    if (!leave_out(file, format, root, &out)) return wb_error_status();
    if (had_some && is_empty(root))
        return wb_fail(WB_ERROR_UNSUPPORTED,
                       "%s: none of the file's values can be written as %s: %s", to, format->name,
                       *out.text ? out.text : "there are no arrays");
    if (had_arrays && !wb_record_arrays(root))
        return wb_fail(WB_ERROR_UNSUPPORTED, "%s: no array is left; %s", to,
                       *out.text ? out.text : "the rename table leaves all of them out");
    const wb_status status = wb_write_file(format, root, file->metadata, to);
    if (status == WB_OK) wb_warn_left_out(&out, format, to);
    if (status == WB_OK && lists)
        wb_log_line(WB_LOG_WARN, "%s: %s has no lists in its metadata: %lld are left out", to,
                    format->name, (long long)lists);
    if (status == WB_OK && file->rename_note)
        wb_log_line(WB_LOG_WARN, "%s: %s", file->path, file->rename_note);
    if (status == WB_OK && c.widened)
        wb_log_line(WB_LOG_WARN, "%s: %s has no bf16: %lld arrays became f32", to, format->name,
                    (long long)c.widened);
    return status;
}

wb_status wb_convert_make(const char *from, const char *to, wb_convert_desc desc) {
    if (wb_failed()) return wb_not_run("wb_convert");
    if (!from || !to) return wb_fail(WB_ERROR_ARGUMENT, "wb_convert: a path is NULL");
    const wb_format *format = wb_format_of_path(to);
    if (format && check_type(format, to, desc.type) != WB_OK) return wb_error_status();
    wb_file *file = format ? wb_open(from) : NULL;
    if (!file || !wb_scope_begin()) {
        wb_free(file);
        return wb_error_status();
    }
    const wb_status status = convert(file, format, to, &desc);
    const wb_status closed = wb_scope_leave();
    if (status == WB_OK && format == &wb_format_gguf && wb_is_folder(from))
        wb_log_line(WB_LOG_WARN,
                    "%s: the arrays have the names of the folder, of which no GGUF model is made; "
                    "save the model as .safetensors, and convert that",
                    to);
    wb_free(file);
    return status == WB_OK ? closed : status;
}
