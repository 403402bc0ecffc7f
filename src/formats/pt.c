/* Files of torch.save, since PyTorch 1.6, and of TorchScript: a zip file with pickles and the
 * memory of their tensors.
 *
 *     NAME/data.pkl      the value, in which a tensor is a call of _rebuild_tensor_v2 with a
 *                        storage, an offset, sizes and strides
 *     NAME/byteorder     "little"
 *     NAME/data/0, ...   the storages, which several tensors may share
 *
 * In TorchScript the value is an object, whose attributes are arrays and objects, and there are
 *
 *     NAME/constants.pkl      what the program refers to: of a frozen one all arrays
 *     NAME/constants/0, ...   their storages
 *     NAME/code/...           the program, which is not looked at */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "formats/pt.h"
#include "formats/zip.h"

static const char pickle_name[] = "/data.pkl", constants_name[] = "constants.pkl";

typedef struct reader {
    wb_pt pt; /* its storages are the entries */
    wb_file *file;
    wb_zip zip;
    int64_t prefix_bytes; /* of NAME in the entries' names */
    const char *folder;   /* of the storages */
} reader;

/* ---- entries ---- */

static int by_name(const void *a, const void *b) {
    const wb_zip_entry *left = a, *right = b;
    return strcmp(left->name, right->name);
}

/* The entry NAME/name, or NULL. */
static wb_zip_entry *find(const reader *r, const char *name) {
    char path[512];
    const int used =
        snprintf(path, sizeof path, "%.*s/%s", (int)r->prefix_bytes, r->zip.entries[0].name, name);
    const wb_zip_entry key = {.name = path};
    if (used >= (int)sizeof path) return NULL;
    return bsearch(&key, r->zip.entries, (size_t)r->zip.count, sizeof key, by_name);
}

/* The code of TorchScript is compressed, and not read. */
static bool is_read(const char *name) {
    static const char *const folders[] = {"code/", "extra/", ".data/"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (strncmp(name, folders[i], strlen(folders[i])) == 0) return false;
    return true;
}

/* All entries are in one folder, each once; what is read is stored as it is. */
static wb_status check_entries(reader *r) {
    const wb_zip_entry *e = r->zip.entries;
    if (r->zip.count) qsort(r->zip.entries, (size_t)r->zip.count, sizeof *e, by_name);
    const char *slash = r->zip.count ? strchr(e[0].name, '/') : NULL;
    if (!slash || slash - e[0].name > 256)
        return wb_file_fault(r->file, 0, "a file of torch.save has all entries in one folder");
    r->prefix_bytes = slash - e[0].name;
    for (int64_t i = 0; i < r->zip.count; i++) {
        if (strncmp(e[i].name, e[0].name, (size_t)r->prefix_bytes + 1) != 0)
            return wb_file_fault(r->file, e[i].central, "%.200s is in another folder than %.200s",
                                 e[i].name, e[0].name);
        if (e[i].method != WB_ZIP_STORED && is_read(e[i].name + r->prefix_bytes + 1))
            return wb_file_fault(r->file, e[i].central,
                                 "%.200s is compressed, which torch.save does not do", e[i].name);
        if (i > 0 && strcmp(e[i].name, e[i - 1].name) == 0)
            return wb_file_fault(r->file, e[i].central, "%.200s appears twice", e[i].name);
    }
    return WB_OK;
}

static wb_status check_order(reader *r) {
    const wb_zip_entry *e = find(r, "byteorder");
    const unsigned char *bytes = e ? wb_zip_bytes(&r->zip, e) : NULL;
    if (e && !bytes) return wb_error_status();
    if (!e || (e->size_bytes == 6 && memcmp(bytes, "little", 6) == 0)) return WB_OK;
    return wb_file_fault(r->file, e->data, WB_PT_BIG_ENDIAN);
}

/* ---- storages ---- */

static int64_t find_storage(wb_pt *pt, const wb_pickle *pickle, const char *key, int type,
                            int64_t count, int64_t at) {
    (void)type, (void)count;
    reader *r = (reader *)pt;
    char name[100];
    (void)snprintf(name, sizeof name, "%s/%.80s", r->folder, key);
    const wb_zip_entry *e = find(r, name);
    if (e) return e - r->zip.entries;
    (void)wb_pickle_fault(pickle, at, "the file has no storage \"%.80s\"", key);
    return -1;
}

static const unsigned char *storage_bytes(wb_pt *pt, wb_pt_storage *storage) {
    reader *r = (reader *)pt;
    return wb_zip_bytes(&r->zip, &r->zip.entries[storage - pt->storages]);
}

static wb_status make_storages(reader *r) {
    r->pt = (wb_pt){.file = r->file, .find = find_storage, .bytes = storage_bytes};
    r->pt.storages = wb_alloc_list(r->zip.count + 1, sizeof *r->pt.storages);
    if (!r->pt.storages) return WB_ERROR_MEMORY;
    for (int64_t i = 0; i < r->zip.count; i++) {
        const wb_zip_entry *e = &r->zip.entries[i];
        r->pt.storages[i] =
            (wb_pt_storage){.name = e->name, .offset = e->data, .size_bytes = e->size_bytes};
    }
    return WB_OK;
}

/* ---- values ---- */

static bool is_module(const wb_pickle *pickle, const char *class_name) {
    (void)pickle;
    return strncmp(class_name, "__torch__.", strlen("__torch__.")) == 0;
}

/* The value of a pickle whose storages are in the folder. */
static wb_record *read_pickle(reader *r, const char *name, const char *folder) {
    const wb_zip_entry *e = find(r, name);
    if (!e) {
        (void)wb_file_fault(r->file, 0, "it has no %s", name);
        return NULL;
    }
    const wb_pickle pickle = {.file = r->file,
                              .bytes = wb_zip_bytes(&r->zip, e),
                              .size_bytes = e->size_bytes,
                              .offset = e->data,
                              .context = &r->pt,
                              .call = wb_pt_call,
                              .persistent = wb_pt_persistent,
                              .is_object = find(r, constants_name) ? is_module : NULL};
    r->folder = folder;
    wb_pt_allow_values(r->file, e->size_bytes);
    return pickle.bytes ? wb_pickle_read(&pickle) : NULL;
}

static bool has_tensors(const reader *r) {
    for (int64_t i = 0; i < r->zip.count; i++)
        if (r->pt.storages[i].first) return true;
    return false;
}

/* What stands in place of the value of a frozen program, whose arrays are constants. */
static wb_record *read_constants(reader *r) {
    wb_record *constants = read_pickle(r, constants_name, "constants");
    wb_record *map = constants ? wb_record_new(&r->file->arena, WB_RECORD_MAP) : NULL;
    if (!map || !wb_record_room(&r->file->arena, map, 1, true)) return NULL;
    map->names[0] = "constants", map->children[0] = constants;
    return map;
}

static wb_status read_value(reader *r) {
    const bool is_script = find(r, constants_name) != NULL;
    wb_record *value = read_pickle(r, pickle_name + 1, "data");
    if (value && is_script && !has_tensors(r)) value = read_constants(r);
    return value ? wb_pt_set_root(&r->pt, value, !is_script) : wb_error_status();
}

static wb_status read_zip(wb_file *file) {
    reader r = {.file = file};
    wb_status status = wb_zip_open(&r.zip, file);
    if (status == WB_OK) status = check_entries(&r);
    if (status == WB_OK) status = make_storages(&r);
    if (status == WB_OK) status = check_order(&r);
    if (status == WB_OK) status = read_value(&r);
    wb_flat_release(&r.pt.flat);
    wb_release(r.pt.storages);
    wb_zip_close(&r.zip);
    return status;
}

static wb_status read_file(wb_file *file) {
    return wb_pt_is_old(&file->map) ? wb_pt_read_old(file) : read_zip(file);
}

/* Names of entries are before them, and in the directory at the end. */
static bool is_zip_of_torch(const wb_mapping *map) {
    enum { HEAD = 256, TAIL = 1 << 16 };
    const size_t size = (size_t)map->size_bytes, head = size < HEAD ? size : HEAD,
                 tail = size < TAIL ? size : TAIL;
    return wb_is_zip(map) &&
           (memmem(map->bytes, head, pickle_name, strlen(pickle_name)) ||
            memmem(map->bytes + size - tail, tail, pickle_name, strlen(pickle_name)));
}

static bool recognises(const wb_mapping *map) { return wb_pt_is_old(map) || is_zip_of_torch(map); }

const wb_format wb_format_pt = {
    .name = "PyTorch", .extension = ".pt", .recognises = recognises, .read = read_file};
