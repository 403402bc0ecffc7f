/* Models, arrays and other objects as one tree of records, which is written. */
#include <stdio.h>
#include <string.h>

#include "array/state.h"
#include "array/use.h"
#include "formats/format.h"
#include "models/structure.h"
#include "models/tree.h"
#include "optimise/shard.h"

bool wb_may_use_named(const char *function, int64_t count, const wb_named *objects) {
    if (!wb_check_list(function, count, objects)) return false;
    for (int64_t i = 0; i < count; i++) {
        const char *name = objects[i].name;
        if (!name) return wb_failed() ? false : wb_fail_argument_null(function, "a key") != NULL;
        if (!wb_may_use_any(function, objects[i].object, name)) return false;
        for (int64_t k = 0; k < i; k++)
            if (strcmp(objects[k].name, name) == 0)
                return wb_fail(WB_ERROR_ARGUMENT, "%s: two objects are named \"%s\"", function,
                               name) == WB_OK;
    }
    return true;
}

static wb_record *record_of_objects(wb_tree_maker *b, int64_t count, const wb_named *objects) {
    wb_record *root = wb_record_new(&b->arena, WB_RECORD_MAP);
    if (!root || !wb_record_room(&b->arena, root, count, true)) return NULL;
    root->count = 0;
    for (int64_t i = 0; i < count; i++) {
        if (wb_entry_text(objects[i].object)) continue; /* record_of_texts */
        root->names[root->count] = objects[i].name;
        if (!(root->children[root->count++] = wb_tree_of_object(b, &objects[i]))) return NULL;
    }
    return root;
}

/* If a format has arrays only, the values of a model are left out, since its text has them. Those
 * of a tree are left out with a warning; the format refuses all others. */
static bool leave_out_values(wb_tree_maker *b, const wb_format *format, const char *path,
                             wb_record *root, const wb_named *objects) {
    wb_left_out out = {.count = 0}, settings = {.count = 0};
    for (int64_t i = 0; i < root->count && !format->has_values; i++, objects++) {
        while (wb_entry_text(objects->object)) objects++;
        const bool is_model = wb_is_layer(objects->object);
        const bool takes_part = is_model || wb_is_file(objects->object);
        const int64_t arrays = is_model ? wb_record_arrays(root->children[i]) : 0;
        if (takes_part && !wb_leave_out(format, &b->arena, root->children[i], objects->name,
                                        is_model ? &settings : &out))
            return false;
        if (is_model && wb_record_arrays(root->children[i]) < arrays)
            return wb_fail(WB_ERROR_UNSUPPORTED, "%s: %s cannot hold all arrays of \"%.80s\": %s",
                           path, format->name, objects->name, settings.text) == WB_OK;
    }
    wb_warn_left_out(&out, format, path);
    return true;
}

/* Warns of a function without a name, which the text has as WB_NAMELESS. */
static void warn_of_nameless(const char *name, const char *text) {
    const size_t bytes = strlen(WB_NAMELESS);
    for (const char *at = text; (at = strstr(at, WB_NAMELESS)); at += bytes) {
        if (at == text || !strchr("( ", at[-1]) || !strchr(",)", at[bytes])) continue;
        wb_log_line(WB_LOG_WARN,
                    "wb_save: a function in \"%s\" has no name, so wb_load_model cannot make the "
                    "model (wb_load can fill one); wb_register_function names it, unless it has a "
                    "context (wb_fn_with)",
                    name);
        return;
    }
}

/* The metadata: the text of each model's structure, by name, and the texts that were given. */
static wb_record *record_of_texts(wb_tree_maker *b, int64_t count, const wb_named *objects) {
    wb_record *texts = wb_record_new(&b->arena, WB_RECORD_MAP);
    if (!texts || !wb_record_room(&b->arena, texts, count, true)) return NULL;
    texts->count = 0;
    for (int64_t i = 0; i < count; i++) {
        const char *given = wb_entry_text(objects[i].object);
        if (!given && !wb_is_layer(objects[i].object)) continue;
        if (!given) wb_tell_unlisted("wb_save", objects[i].object, true);
        wb_record *text = wb_record_new(&b->arena, WB_RECORD_TEXT);
        const char *name = !text   ? NULL
                           : given ? objects[i].name
                                   : wb_structure_key(objects[i].name, &b->arena);
        if (!name) return NULL;
        text->text = given ? given : wb_structure_text(objects[i].object, &b->arena);
        if (!text->text) return NULL;
        if (!given) warn_of_nameless(objects[i].name, text->text);
        texts->names[texts->count] = name;
        texts->children[texts->count++] = text;
    }
    return texts;
}

/* One map with the children of both. */
static wb_record *joined(wb_tree_maker *b, const wb_record *x, const wb_record *y) {
    wb_record *both = wb_record_new(&b->arena, WB_RECORD_MAP);
    if (!both || !wb_record_room(&b->arena, both, x->count + y->count, true)) return NULL;
    for (int64_t i = 0; i < both->count; i++) {
        const wb_record *from = i < x->count ? x : y;
        const int64_t at = i < x->count ? i : i - x->count;
        both->names[i] = from->names[at], both->children[i] = from->children[at];
    }
    return both;
}

/* ---- optimisers whose states are divided among ranks ---- */

static wb_optimiser *optimiser_of(const wb_named *named) {
    return wb_is_optimiser(named->object) ? named->object : NULL;
}

wb_status wb_gather_objects(int64_t count, const wb_named *objects) {
    wb_status status = WB_OK;
    for (int64_t i = 0; objects && i < count && status == WB_OK; i++) {
        wb_optimiser *o = optimiser_of(&objects[i]);
        if (o) status = wb_gather_states(o);
    }
    return status;
}

bool wb_are_gathered_here(int64_t count, const wb_named *objects) {
    for (int64_t i = 0; objects && i < count; i++) {
        const wb_optimiser *o = optimiser_of(&objects[i]);
        if (o && !wb_has_whole_states(o)) return false;
    }
    return true;
}

void wb_drop_gathered_objects(int64_t count, const wb_named *objects) {
    for (int64_t i = 0; objects && i < count; i++) {
        wb_optimiser *o = optimiser_of(&objects[i]);
        if (o) wb_drop_gathered(o);
    }
}

/* ---- settings that loading would refuse ---- */

typedef struct settings_check {
    wb_visitor visitor;
    const char *function;
} settings_check;

static bool check_layer(wb_visitor *visitor, const wb_path *path, wb_layer *layer) {
    const settings_check *c = (const settings_check *)(void *)visitor;
    const uint64_t errors = wb_error_count();
    if (wb_layer_check_settings(layer)) return true;
    char text[WB_PATH_BYTES];
    wb_path_text(path, text, sizeof text);
    (void)wb_error_prefix(errors, "%s: %s%s", c->function, text, *text ? ": " : "");
    return false;
}

static bool may_save(const char *function, int64_t count, const wb_named *objects) {
    if (!wb_may_use_named(function, count, objects)) return false;
    settings_check c = {.visitor.layer = check_layer, .function = function};
    for (int64_t i = 0; i < count; i++)
        if (wb_is_layer(objects[i].object) && !wb_visit(&c.visitor, objects[i].object))
            return false;
    return true;
}

/* ---- writing ---- */

/* Into the file at path, or into memory by that name, if memory is not NULL. */
static wb_status save(const char *path, wb_file **memory, int64_t count, const wb_named *objects) {
    const wb_format *format = wb_format_of_path(path);
    if (!format || wb_state_settle() != WB_OK || !wb_scope_begin()) return wb_error_status();
    wb_tree_maker b = {.is_for_file = true};
    wb_record *root = record_of_objects(&b, count, objects);
    if (root && !leave_out_values(&b, format, path, root, objects)) root = NULL;
    const wb_record *texts = root ? record_of_texts(&b, count, objects) : NULL;
    if (texts && !format->has_metadata) root = joined(&b, root, texts);
    const wb_record *metadata = format->has_metadata ? texts : NULL;
    wb_status status = wb_error_status();
    if (texts && root && !memory) status = wb_write_file(format, root, metadata, path);
    if (texts && root && memory && !(*memory = wb_write_memory(format, root, metadata, path)))
        status = wb_error_status();
    wb_tree_maker_release(&b);
    const wb_status closed = wb_scope_leave();
    return status == WB_OK ? closed : status;
}

static wb_status gather_and_save(const char *path, wb_file **memory, int64_t count,
                                 const wb_named *objects) {
    wb_status status = wb_gather_objects(count, objects);
    if (status == WB_OK && wb_are_gathered_here(count, objects))
        status = save(path, memory, count, objects);
    wb_drop_gathered_objects(count, objects);
    return status;
}

wb_status wb_save_make(const char *path, int64_t count, const wb_named *objects) {
    if (wb_failed()) return wb_not_run("wb_save");
    if (!path) return wb_fail(WB_ERROR_ARGUMENT, "wb_save: the path is NULL");
    if (!may_save("wb_save", count, objects)) return WB_ERROR_ARGUMENT;
    return gather_and_save(path, NULL, count, objects);
}

wb_file *wb_save_memory_make(const char *name, int64_t count, const wb_named *objects) {
    static const char function[] = "wb_save_memory";
    wb_file *file = NULL;
    if (wb_failed()) return wb_not_run_null(function);
    if (!name) return wb_fail_argument_null(function, "the name");
    if (!may_save(function, count, objects)) return NULL;
    if (gather_and_save(name, &file, count, objects) == WB_OK) return file;
    wb_free(file);
    return NULL;
}
