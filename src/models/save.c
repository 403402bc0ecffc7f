/* Models and arrays as trees of records, written so that the name is the old file or the new one,
 * whole. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "array/state.h"
#include "formats/format.h"
#include "models/structure.h"
#include "models/tree.h"

static wb_record *record_of_objects(wb_tree_maker *b, int64_t count, const wb_named *objects) {
    wb_record *root = wb_record_new(&b->arena, WB_RECORD_MAP);
    if (!root || !wb_record_room(&b->arena, root, count, true)) return NULL;
    for (int64_t i = 0; i < count; i++) {
        if (!objects[i].name || !objects[i].object)
            return wb_failed() ? NULL
                               : wb_fail_argument_null("wb_save",
                                                       objects[i].name ? objects[i].name : "a key");
        root->names[i] = objects[i].name;
        root->children[i] = wb_tree_of_object(b, &objects[i]);
        if (!root->children[i]) return NULL;
    }
    return root;
}

/* Where a format has arrays alone, the values of a model are left out: its text has them. Those of
 * a tree are left out with a warning, all others are the format's to refuse. */
static bool leave_out_values(wb_tree_maker *b, const wb_format *format, const char *path,
                             wb_record *root, const wb_named *objects) {
    wb_left_out out = {.count = 0}, settings = {.count = 0};
    for (int64_t i = 0; i < root->count && !format->has_values; i++) {
        const bool is_model = wb_is_layer(objects[i].object);
        const bool takes_part = is_model || wb_is_file(objects[i].object);
        if (takes_part && !wb_leave_out(format, &b->arena, root->children[i], objects[i].name,
                                        is_model ? &settings : &out))
            return false;
    }
    wb_warn_left_out(&out, format, path);
    return true;
}

/* What each model can be made again from, as texts by name. */
static wb_record *record_of_structures(wb_tree_maker *b, int64_t count, const wb_named *objects) {
    wb_record *texts = wb_record_new(&b->arena, WB_RECORD_MAP);
    if (!texts || !wb_record_room(&b->arena, texts, count, true)) return NULL;
    texts->count = 0;
    for (int64_t i = 0; i < count; i++) {
        if (!wb_is_layer(objects[i].object)) continue;
        wb_record *text = wb_record_new(&b->arena, WB_RECORD_TEXT);
        const char *name = text ? wb_structure_key(objects[i].name, &b->arena) : NULL;
        if (!name || !(text->text = wb_structure_text(objects[i].object, &b->arena))) return NULL;
        texts->names[texts->count] = name;
        texts->children[texts->count++] = text;
    }
    return texts;
}

/* One map of the children of both. */
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

/* ---- the file ---- */

/* The folder's entry on the disk, too; not every file system can. */
static void sync_folder(const char *path) {
    char folder[PATH_MAX];
    (void)snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash) slash[slash == folder] = 0;
    const int descriptor = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return;
    (void)fsync(descriptor);
    (void)close(descriptor);
}

static wb_status io_error(const char *path, const char *what) {
    return wb_fail(WB_ERROR_IO, "%s: %s: %s", path, what, strerror(errno));
}

/* The permissions of the file that is there, else those that new files get. */
static void set_mode(int descriptor, const char *path) {
    struct stat status;
    const mode_t mask = umask(0);
    (void)umask(mask);
    (void)fchmod(descriptor, stat(path, &status) == 0 ? status.st_mode & 0777 : 0666 & ~mask);
}

static wb_status write_tree(const wb_format *format, const wb_record *root,
                            const wb_record *metadata, int descriptor, const char *path) {
    FILE *stream = fdopen(descriptor, "wb");
    if (!stream) {
        (void)close(descriptor);
        return io_error(path, "cannot be written");
    }
    wb_status status = format->write(root, metadata, stream, path);
    if (status == WB_OK && (fflush(stream) != 0 || fsync(descriptor) != 0))
        status = io_error(path, "cannot be written");
    if (fclose(stream) != 0 && status == WB_OK) status = io_error(path, "cannot be written");
    return status;
}

wb_status wb_write_file(const wb_format *format, const wb_record *root, const wb_record *metadata,
                        const char *path) {
    char fresh[PATH_MAX];
    if (snprintf(fresh, sizeof fresh, "%s.XXXXXX", path) >= (int)sizeof fresh)
        return wb_fail(WB_ERROR_IO, "%s: the name is too long", path);
    const int descriptor = mkostemp(fresh, O_CLOEXEC);
    if (descriptor < 0) return io_error(path, "cannot be made");
    set_mode(descriptor, path);
    wb_status status = write_tree(format, root, metadata, descriptor, path);
    if (status == WB_OK && rename(fresh, path) != 0) status = io_error(path, "cannot be replaced");
    if (status != WB_OK) {
        (void)unlink(fresh);
        return status;
    }
    sync_folder(path);
    return WB_OK;
}

wb_status wb_save_make(const char *path, int64_t count, const wb_named *objects) {
    if (wb_failed()) return wb_not_run("wb_save");
    if (!path) return wb_fail(WB_ERROR_ARGUMENT, "wb_save: the path is NULL");
    const wb_format *format = wb_format_of_path(path);
    if (!format || wb_state_settle() != WB_OK || !wb_scope_begin()) return wb_error_status();
    wb_tree_maker b = {.is_for_file = true};
    wb_record *root = record_of_objects(&b, count, objects);
    if (root && !leave_out_values(&b, format, path, root, objects)) root = NULL;
    const wb_record *texts = root ? record_of_structures(&b, count, objects) : NULL;
    if (texts && !format->has_metadata) root = joined(&b, root, texts);
    wb_status status = wb_error_status();
    if (texts && root)
        status = wb_write_file(format, root, format->has_metadata ? texts : NULL, path);
    wb_tree_maker_release(&b);
    const wb_status closed = wb_scope_close_leaving(0, NULL);
    return status == WB_OK ? closed : status;
}
