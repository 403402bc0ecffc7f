/* Models in several files, as Hugging Face has them: an index names each tensor and the file beside
 * it that holds the tensor; and the folder around them.
 *
 *     {"metadata": {...}, "weight_map": {"wte.weight": "model-00001-of-00002.safetensors", ...}} */
#include "formats/index.h"

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

char *wb_path_in(const char *folder, size_t folder_bytes, const char *name) {
    const size_t length = strlen(name);
    char *path = wb_alloc(folder_bytes + 1 + length + 1);
    if (!path) return NULL;
    memcpy(path, folder, folder_bytes);
    if (folder_bytes && folder[folder_bytes - 1] != '/') path[folder_bytes++] = '/';
    memcpy(path + folder_bytes, name, length + 1);
    return path;
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
    return map->size_bytes > 0 && *map->bytes == '{' &&
           memmem(map->bytes, (size_t)map->size_bytes, key, sizeof key - 1);
}

/* Opens the file beside the index; it is released with the index. */
static wb_file *open_shard(wb_file *file, const wb_json *value, const char *name) {
    if (!*name || strchr(name, '/') || strcmp(name, "..") == 0 || strcmp(name, ".") == 0) {
        (void)wb_json_fault(file, value, "\"%.80s\" must be the name of a file beside the index",
                            name);
        return NULL;
    }
    if (file->is_memory) {
        (void)wb_json_fault(file, value, "in memory there are no files beside the index");
        return NULL;
    }
    if (file->shard_count == MOST_SHARDS) {
        (void)wb_json_fault(file, value, "the index names more than %d files", MOST_SHARDS);
        return NULL;
    }
    if (!WB_GROW(file->shards, file->shard_count, file->shard_capacity)) return NULL;
    const char *slash = strrchr(file->path, '/');
    const size_t folder_bytes = slash ? (size_t)(slash - file->path) + 1 : 0;
    char *path = wb_path_in(file->path, folder_bytes, name);
    wb_file *shard = path ? wb_open_shard(path) : NULL;
    wb_release(path);
    if (shard) file->shards[file->shard_count++] = shard;
    return shard;
}

/* The file that the value names, which is opened once. */
static wb_file *shard_of(wb_file *file, const wb_json *value) {
    const char *name = wb_json_text(value);
    if (!name) {
        (void)wb_json_fault(file, value, "the file of a tensor must be a text, but is %s",
                            wb_json_noun(value));
        return NULL;
    }
    for (int64_t i = file->shard_count - 1; i >= 0; i--) {
        const char *path = file->shards[i]->path, *slash = strrchr(path, '/');
        if (strcmp(slash ? slash + 1 : path, name) == 0) return file->shards[i];
    }
    return open_shard(file, value, name);
}

static bool add_tensor(wb_file *file, wb_flat *flat, const wb_json *item) {
    const wb_file *shard = shard_of(file, item);
    if (!shard) return false;
    const wb_record *there = wb_record_below(shard->root, item->name);
    if (strlen(item->name) != item->name_bytes || !there || wb_record_is_container(there)) {
        (void)wb_json_fault(file, item, "\"%.80s\" must be a tensor in %.200s", item->name,
                            shard->path);
        return false;
    }
    wb_record *here = wb_record_new(&file->arena, WB_RECORD_ARRAY);
    const char *path = wb_arena_text(&file->arena, item->name, item->name_bytes);
    if (!here || !path) return false;
    *here = *there;
    return wb_flat_add(flat, (wb_flat_entry){.path = path, .record = here, .offset = item->offset});
}

static wb_status read_map(wb_file *file, const wb_json *root) {
    const wb_json *map = wb_json_get(root, "weight_map");
    if (!map || map->kind != WB_JSON_OBJECT)
        return wb_json_fault(file, map ? map : root, "weight_map must be an object, but is %s",
                             wb_json_noun(map));
    wb_flat flat = {.entries = NULL};
    bool good = true;
    for (int64_t i = 0; i < map->count && good; i++) good = add_tensor(file, &flat, &map->items[i]);
    file->root = good ? wb_flat_nest(&flat, file) : NULL;
    wb_flat_release(&flat);
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
