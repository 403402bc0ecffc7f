/* Models and arrays as trees of records, written so that the name is the old file or the new one, whole. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "layers/layer.h"
#include "state/format.h"

/* An array or layer that was met, and its record: what is met again is shared. */
typedef struct met {
    const void *object;
    wb_record *record;
} met;

typedef struct builder {
    wb_arena arena;
    met *list;
    int64_t count, capacity;
    int depth;
} builder;

static wb_record *known(const builder *b, const void *object) {
    for (int64_t i = 0; i < b->count; i++)
        if (b->list[i].object == object) return b->list[i].record;
    return NULL;
}

static wb_record *remember(builder *b, const void *object, wb_record *record) {
    if (!record || !WB_GROW(b->list, b->count, b->capacity)) return NULL;
    b->list[b->count++] = (met){object, record};
    return record;
}

/* ---- arrays ---- */

/* On the host, dense; x itself where it is so already. Belongs to the scope. */
static wb_array *on_host(wb_array *x) {
    wb_array *y = wb_cpu(x);
    if (!y || wb_eval(y) != WB_OK) return NULL;
    return wb_node_is_dense(y) ? y : wb_copy(y);
}

static wb_record *record_of_array(builder *b, wb_array *x) {
    wb_record *r = known(b, x);
    if (r) return r;
    wb_array *host = on_host(x);
    r = host ? wb_record_new(&b->arena, WB_RECORD_ARRAY) : NULL;
    if (!r) return NULL;
    r->dtype = host->dtype, r->ndim = host->ndim;
    memcpy(r->sizes, host->sizes, sizeof *r->sizes * host->ndim);
    r->data_bytes = wb_count(host) * (int64_t)wb_dtype_size((wb_dtype)host->dtype);
    r->array = host;
    return remember(b, x, r);
}

/* ---- layers ---- */

static wb_record *record_of_layer(builder *b, wb_layer *layer);

static wb_record *record_of(builder *b, wb_layer *layer, wb_array *array) {
    if (layer) return record_of_layer(b, layer);
    return array ? record_of_array(b, array) : wb_record_new(&b->arena, WB_RECORD_NULL);
}

static bool has_names(const wb_layer_list *list) {
    for (int64_t i = 0; i < list->count; i++)
        if (list->items[i].name) return true;
    return false;
}

static wb_record *record_of_list(builder *b, const wb_layer_list *list) {
    const bool named = has_names(list);
    wb_record *r = wb_record_new(&b->arena, named ? WB_RECORD_MAP : WB_RECORD_LIST);
    if (!r || !wb_record_room(&b->arena, r, list->count, named)) return NULL;
    for (int64_t i = 0; i < list->count; i++) {
        const wb_layer_item *item = &list->items[i];
        r->children[i] = record_of(b, item->layer, item->array);
        if (!r->children[i]) return NULL;
        if (named && !(r->names[i] = wb_arena_text(&b->arena, item->name, strlen(item->name))))
            return NULL;
    }
    return r;
}

static wb_record *record_of_field(builder *b, wb_layer *layer, const wb_field *field) {
    if (field->kind == WB_FIELD_LIST) return record_of_list(b, wb_field_list(layer, field));
    if (field->kind == WB_FIELD_CHILD) return record_of(b, *wb_field_child(layer, field), NULL);
    return record_of(b, NULL, *wb_field_array(layer, field));
}

/* A list without a name of its own is its struct: the tree's items. */
static wb_record *record_of_fields(builder *b, wb_layer *layer) {
    const wb_layer_class *k = layer->class_;
    int64_t count = 0;
    for (int i = 0; i < k->field_count; i++) count += k->fields[i].kind != WB_FIELD_VALUE;
    if (count == 1 && k->fields[0].kind == WB_FIELD_LIST && !k->fields[0].name)
        return record_of_list(b, wb_field_list(layer, &k->fields[0]));
    wb_record *r = wb_record_new(&b->arena, WB_RECORD_MAP);
    if (!r || !wb_record_room(&b->arena, r, count, true)) return NULL;
    for (int i = 0, at = 0; i < k->field_count; i++) {
        if (k->fields[i].kind == WB_FIELD_VALUE) continue;
        r->names[at] = k->fields[i].name;
        r->children[at] = record_of_field(b, layer, &k->fields[i]);
        if (!r->children[at++]) return NULL;
    }
    return r;
}

static wb_record *record_of_layer(builder *b, wb_layer *layer) {
    wb_record *r = known(b, layer);
    if (r) return r;
    if (b->depth >= WB_RECORD_DEPTH)
        return wb_fail_null(WB_ERROR_ARGUMENT, "wb_save: the model is nested deeper than %d",
                            WB_RECORD_DEPTH);
    b->depth++;
    r = record_of_fields(b, layer);
    b->depth--;
    return r ? remember(b, layer, r) : NULL;
}

static wb_record *record_of_objects(builder *b, int64_t count, const wb_named *objects) {
    wb_record *root = wb_record_new(&b->arena, WB_RECORD_MAP);
    if (!root || !wb_record_room(&b->arena, root, count, true)) return NULL;
    for (int64_t i = 0; i < count; i++) {
        const bool is_layer = wb_is_layer(objects[i].object);
        if (!objects[i].name || !objects[i].object)
            return wb_failed() ? NULL
                               : wb_fail_argument_null("wb_save",
                                                       objects[i].name ? objects[i].name : "a key");
        const wb_class *klass = ((const wb_object *)objects[i].object)->klass;
        if (!is_layer && klass != &wb_array_class)
            return wb_fail_null(WB_ERROR_ARGUMENT,
                                "wb_save: \"%s\" is neither model nor array but a %s",
                                objects[i].name, klass && klass->name ? klass->name : "thing");
        root->names[i] = objects[i].name;
        root->children[i] = is_layer ? record_of_layer(b, objects[i].object)
                                     : record_of_array(b, objects[i].object);
        if (!root->children[i]) return NULL;
    }
    return root;
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

static wb_status write_tree(const wb_format *format, const wb_record *root, int descriptor,
                            const char *path) {
    FILE *stream = fdopen(descriptor, "wb");
    if (!stream) {
        (void)close(descriptor);
        return io_error(path, "cannot be written");
    }
    wb_status status = format->write(root, NULL, stream, path);
    if (status == WB_OK && (fflush(stream) != 0 || fsync(descriptor) != 0))
        status = io_error(path, "cannot be written");
    if (fclose(stream) != 0 && status == WB_OK) status = io_error(path, "cannot be written");
    return status;
}

static wb_status write_file(const wb_format *format, const wb_record *root, const char *path) {
    char fresh[PATH_MAX];
    if (snprintf(fresh, sizeof fresh, "%s.XXXXXX", path) >= (int)sizeof fresh)
        return wb_fail(WB_ERROR_IO, "%s: the name is too long", path);
    const int descriptor = mkostemp(fresh, O_CLOEXEC);
    if (descriptor < 0) return io_error(path, "cannot be made");
    set_mode(descriptor, path);
    wb_status status = write_tree(format, root, descriptor, path);
    if (status == WB_OK && rename(fresh, path) != 0) status = io_error(path, "cannot be replaced");
    if (status != WB_OK) {
        (void)unlink(fresh);
        return status;
    }
    sync_folder(path);
    return WB_OK;
}

wb_status wb_save_make(const char *path, int64_t count, const wb_named *objects) {
    if (!path || wb_failed()) {
        if (!path && !wb_failed()) (void)wb_fail_argument_null("wb_save", "the path");
        return wb_error_status();
    }
    const wb_format *format = wb_format_of_path(path);
    if (!format || !wb_scope_begin()) return wb_error_status();
    builder b = {.count = 0};
    const wb_record *root = record_of_objects(&b, count, objects);
    wb_status status = root ? write_file(format, root, path) : wb_error_status();
    wb_release(b.list);
    wb_arena_release(&b.arena);
    const wb_status closed = wb_scope_close_leaving(0, NULL);
    return status == WB_OK ? closed : status;
}
