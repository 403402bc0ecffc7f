/* Models in several files, as Hugging Face has them: an index names each tensor and the file beside
 * it that holds the tensor; and the folder around them.
 *
 *     {"metadata": {...}, "weight_map": {"wte.weight": "model-00001-of-00002.safetensors", ...}} */
#include "formats/index.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "formats/flat.h"
#include "formats/json.h"

enum { MOST_SHARDS = 4096 };

/* ---- folders ---- */

bool wb_is_folder(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

bool wb_has_file(const char *folder, const char *name) {
    struct stat status;
    char *path = wb_path_in(folder, strlen(folder), name);
    const bool has = path && stat(path, &status) == 0 && S_ISREG(status.st_mode);
    wb_release(path);
    return has;
}

char *wb_folder_weights(const char *folder) {
    static const char *const names[] = {"model.safetensors", "model.safetensors.index.json",
                                        "pytorch_model.bin", "pytorch_model.bin.index.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (wb_has_file(folder, names[i])) return wb_path_in(folder, strlen(folder), names[i]);
        if (wb_failed()) return NULL;
    }
    return wb_fail_null(WB_ERROR_IO,
                        "%s: the folder must have model.safetensors or pytorch_model.bin, or an "
                        "index of one (model.safetensors.index.json)",
                        folder);
}

/* ---- the index ---- */

static bool recognises(const wb_mapping *map) {
    static const char key[] = "\"weight_map\"";
    const size_t size = (size_t)map->size_bytes;
    size_t at = 0;
    while (at < size && map->bytes[at] && strchr(" \t\r\n", map->bytes[at])) at++;
    return at < size && map->bytes[at] == '{' && memmem(map->bytes, size, key, sizeof key - 1);
}

/* The arrays of a file, sorted by path: an index that names each finds it at once. */
typedef struct named {
    const char *path;
    const wb_record *record;
} named;

typedef struct names {
    named *list;
    int64_t count, capacity;
    wb_arena arena; /* holds the paths */
} names;

/* An index that is being read. */
typedef struct reading {
    wb_file *file;
    names *names; /* of each shard */
    int64_t capacity;
    wb_flat flat; /* what the index names */
} reading;

/* ---- the arrays of a shard ---- */

/* Recursive, at most WB_RECORD_DEPTH deep. The arena's limit ends a tree that is small in its file,
 * and large without its shared parts. */
static bool add_names(names *n, const char *path, const wb_record *r) {
    if (!r) return true;
    if (!wb_record_is_container(r)) {
        if (!WB_GROW(n->list, n->count, n->capacity)) return false;
        n->list[n->count++] = (named){.path = path, .record = r};
        return true;
    }
    for (int64_t i = 0; i < r->count; i++) {
        char number[24];
        const char *name = wb_record_name(r, i);
        if (!name) (void)snprintf(number, sizeof number, "%lld", (long long)i + 1), name = number;
        const size_t before = strlen(path), length = strlen(name);
        char *below = wb_arena_take(&n->arena, before + 1 + length + 1);
        if (!below) return false;
        memcpy(below, path, before);
        if (before) below[before] = '.';
        memcpy(below + before + (before > 0), name, length);
        if (!add_names(n, below, r->children[i])) return false;
    }
    return true;
}

static int by_path(const void *a, const void *b) {
    const named *left = a, *right = b;
    return strcmp(left->path, right->path);
}

static bool read_names(names *n, const wb_file *shard) {
    *n = (names){.arena = {.limit_bytes = shard->arena.limit_bytes}};
    if (!add_names(n, "", shard->root)) return false;
    if (n->count) qsort(n->list, (size_t)n->count, sizeof *n->list, by_path);
    return true;
}

static const wb_record *find_name(const names *n, const char *path) {
    const named wanted = {.path = path};
    const named *found =
        n->count ? bsearch(&wanted, n->list, (size_t)n->count, sizeof wanted, by_path) : NULL;
    return found ? found->record : NULL;
}

/* ---- the shards ---- */

/* Opens the file beside the index; it is released with the index. */
static bool open_shard(reading *r, const wb_json *value, const char *name) {
    wb_file *file = r->file;
    wb_status status = WB_OK;
    if (!*name || strchr(name, '/') || strcmp(name, "..") == 0 || strcmp(name, ".") == 0)
        status = wb_json_fault(file, value, "\"%.80s\" must be the name of a file beside the index",
                               name);
    else if (file->is_memory)
        status = wb_json_fault(file, value, "in memory there are no files beside the index");
    else if (file->shard_count == MOST_SHARDS)
        status = wb_json_fault(file, value, "the index names more than %d files", MOST_SHARDS);
    if (status != WB_OK || !WB_GROW(file->shards, file->shard_count, file->shard_capacity) ||
        !WB_GROW(r->names, file->shard_count, r->capacity))
        return false;
    const char *slash = strrchr(file->path, '/');
    const size_t folder_bytes = slash ? (size_t)(slash - file->path) + 1 : 0;
    char *path = wb_path_in(file->path, folder_bytes, name);
    wb_file *shard = path ? wb_open_shard(path) : NULL;
    wb_release(path);
    if (!shard) return false;
    const int64_t place = file->shard_count++;
    file->shards[place] = shard;
    return read_names(&r->names[place], shard);
}

/* The place of the file that the value names, which is opened once; -1 on failure. */
static int64_t shard_of(reading *r, const wb_json *value) {
    const char *name = wb_json_text(value);
    if (!name) {
        (void)wb_json_fault(r->file, value, "the file of a tensor must be a text, but is %s",
                            wb_json_noun(value));
        return -1;
    }
    for (int64_t i = r->file->shard_count - 1; i >= 0; i--) {
        const char *path = r->file->shards[i]->path, *slash = strrchr(path, '/');
        if (strcmp(slash ? slash + 1 : path, name) == 0) return i;
    }
    return open_shard(r, value, name) ? r->file->shard_count - 1 : -1;
}

static bool add_tensor(reading *r, const wb_json *item) {
    wb_file *file = r->file;
    const int64_t place = shard_of(r, item);
    if (place < 0) return false;
    const wb_record *there = find_name(&r->names[place], item->name);
    if (strlen(item->name) != item->name_bytes || !there) {
        (void)wb_json_fault(file, item, "\"%.80s\" must be a tensor in %.200s", item->name,
                            file->shards[place]->path);
        return false;
    }
    wb_record *here = wb_record_new(&file->arena, WB_RECORD_ARRAY);
    const char *path = wb_arena_text(&file->arena, item->name, item->name_bytes);
    if (!here || !path) return false;
    *here = *there;
    return wb_flat_add(&r->flat,
                       (wb_flat_entry){.path = path, .record = here, .offset = item->offset});
}

static wb_status read_map(wb_file *file, const wb_json *root) {
    const wb_json *map = wb_json_get(root, "weight_map");
    if (!map || map->kind != WB_JSON_OBJECT)
        return wb_json_fault(file, map ? map : root, "weight_map must be an object, but is %s",
                             wb_json_noun(map));
    reading r = {.file = file};
    bool good = true;
    for (int64_t i = 0; i < map->count && good; i++) good = add_tensor(&r, &map->items[i]);
    file->root = good ? wb_flat_nest(&r.flat, file) : NULL;
    for (int64_t i = 0; i < file->shard_count; i++) {
        wb_release(r.names[i].list);
        wb_arena_release(&r.names[i].arena);
    }
    wb_release(r.names);
    wb_flat_release(&r.flat);
    return file->root ? WB_OK : wb_error_status();
}

static wb_status read_index(wb_file *file) {
    wb_arena arena = {.blocks = NULL};
    const wb_json *root =
        wb_json_parse(file, &arena, (const char *)file->map.bytes, (size_t)file->map.size_bytes, 0);
    const wb_status status = root ? read_map(file, root) : wb_error_status();
    wb_arena_release(&arena);
    return status;
}

const wb_format wb_format_index = {.name = "an index of files",
                                   .extension = ".index.json",
                                   .recognises = recognises,
                                   .read = read_index};
