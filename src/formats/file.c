/* Open files: mapping, format, and the questions of weber/state.h. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "array/use.h"
#include "base/memory.h"
#include "device/buffer.h"
#include "formats/format.h"
#include "formats/index.h"

/* ---- lifetime ---- */

static void unmap(const wb_file *file) {
    union {
        const unsigned char *from;
        void *to;
    } bytes = {.from = file->map.bytes};
    if (file->is_memory && file->release)
        file->release(file->context, bytes.to);
    else if (bytes.to && !file->is_memory)
        (void)munmap(bytes.to, (size_t)file->map.size_bytes);
}

static void file_free(void *object) {
    wb_file *file = object;
    if (__atomic_sub_fetch(&file->refs, 1, __ATOMIC_ACQ_REL) > 0) return;
    for (int64_t i = 0; i < file->held_count; i++) wb_unhold(file->held[i]);
    wb_release(file->held);
    for (int64_t i = 0; i < file->shard_count; i++) wb_free(file->shards[i]);
    wb_release(file->shards);
    unmap(file);
    wb_arena_release(&file->arena);
    wb_release(file->path);
    wb_object_delete(file, sizeof *file, "file");
}

/* The owner of a file that holds arrays, as wb_state's does: its thread. */
static uint32_t *owner_of(const void *object) {
    wb_file *file = (wb_file *)(uintptr_t)object;
    return file->held_count ? &file->owner : NULL;
}

static const wb_class file_class = {
    .name = "file", .owner = owner_of, .free = file_free, .maker = "wb_open"};

bool wb_file_check(const char *function, const wb_file *file) {
    return wb_may_use(function, file, &file_class, "the file");
}

wb_file *wb_file_new(const char *path) {
    wb_file *file = wb_object_new(&file_class, sizeof *file);
    if (!file) return NULL;
    file->refs = 1;
    file->owner = wb_this_thread;
    file->path = wb_copy_text(path);
    if (file->path) return file;
    file_free(file);
    return NULL;
}

bool wb_is_file(const void *object) {
    return object && ((const wb_object *)object)->klass == &file_class;
}

static wb_status map_file(wb_file *file) {
    struct stat status;
    /* a pipe's other end is not waited for */
    const int descriptor = open(file->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0)
        return wb_fail(WB_ERROR_IO, "%s: cannot be opened: %s", file->path, strerror(errno));
    wb_status result = WB_OK;
    if (fstat(descriptor, &status) != 0)
        result = wb_fail(WB_ERROR_IO, "%s: %s", file->path, strerror(errno));
    else if (!S_ISREG(status.st_mode))
        result = wb_fail(WB_ERROR_IO, "%s: not a regular file", file->path);
    else if (wb_bytes(status.st_size) == SIZE_MAX)
        result = wb_fail(WB_ERROR_MEMORY, "%s: %lld bytes are more than memory can hold",
                         file->path, (long long)status.st_size);
    else if (status.st_size > 0) {
        void *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
        if (bytes == MAP_FAILED)
            result = wb_fail(WB_ERROR_IO, "%s: cannot be mapped: %s", file->path, strerror(errno));
        else
            file->map = (wb_mapping){bytes, status.st_size};
    }
    (void)close(descriptor);
    return result;
}

wb_file *wb_file_mapped(const char *path) {
    wb_file *file = wb_file_new(path);
    if (!file || map_file(file) == WB_OK) return file;
    file_free(file);
    return NULL;
}

/* Records take a few times the file's size at most: they stand for bytes in it. */
enum { MOST_BYTES_PER_BYTE = 64, LEAST_LIMIT = 1 << 20 };

/* Returns the file once its bytes are read; if they cannot be read, frees it and returns NULL. The
 * files of an index are no indices, so that none contains itself. */
static wb_file *read_file(wb_file *file, wb_status status, bool is_shard) {
    const wb_format *format = file->format = status == WB_OK ? wb_format_of_file(file) : NULL;
    if (is_shard && format == &wb_format_index) {
        (void)wb_file_fault(file, 0, "an index must not name an index");
        format = NULL;
    }
    file->arena.limit_bytes = file->map.size_bytes * MOST_BYTES_PER_BYTE + LEAST_LIMIT;
    if (format) status = format->read(file);
    if (format && status == WB_OK) return file;
    file_free(file);
    return NULL;
}

static wb_file *open_file(const char *path, bool is_shard) {
    wb_file *file = wb_file_new(path);
    return file ? read_file(file, map_file(file), is_shard) : NULL;
}

wb_file *wb_open_shard(const char *path) { return open_file(path, true); }

wb_file *wb_open(const char *path) {
    if (!path) return wb_failed() ? NULL : wb_fail_argument_null("wb_open", "the path");
    if (!wb_is_folder(path)) return open_file(path, false);
    char *weights = wb_folder_weights(path);
    wb_file *file = weights ? open_file(weights, false) : NULL;
    wb_release(weights);
    return file;
}

wb_file *wb_open_memory(const char *name, const void *bytes, size_t size_bytes,
                        wb_release_fn *release, void *context) {
    union {
        const void *from;
        void *to; /* release gets what was given */
    } given = {.from = bytes};
    wb_file *file = NULL;
    if (!name || !bytes) {
        if (!wb_failed())
            (void)wb_fail_argument_null("wb_open_memory", name ? "bytes" : "the name");
    } else
        file = wb_file_new(name);
    if (!file) {
        if (release) release(context, given.to);
        return NULL;
    }
    file->is_memory = true, file->release = release, file->context = context;
    file->map = (wb_mapping){bytes, (int64_t)size_bytes};
    return read_file(file, WB_OK, false);
}

const void *wb_file_bytes(const wb_file *file) {
    return file && wb_file_check("wb_file_bytes", file) ? file->map.bytes : NULL;
}

wb_status wb_file_fault(const wb_file *file, int64_t offset, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return wb_fail(WB_ERROR_FORMAT, "%s, offset %lld: %s", file->path, (long long)offset, text);
}

const wb_record *wb_file_root(const wb_file *file) {
    return file && wb_file_check("wb_file_root", file) ? file->root : NULL;
}

const wb_record *wb_file_metadata(const wb_file *file) {
    return file && wb_file_check("wb_file_metadata", file) ? file->metadata : NULL;
}

static const char *text_in(const wb_record *map, const char *name) {
    for (int64_t i = 0; map && map->names && i < map->count; i++) {
        const wb_record *child = map->children[i];
        if (map->names[i] && strcmp(map->names[i], name) == 0 && child->kind == WB_RECORD_TEXT)
            return child->text;
    }
    return NULL;
}

const char *wb_file_text(const wb_file *file, const char *name) {
    if (!wb_file_check("wb_file_text", file)) return NULL;
    if (!name) return wb_failed() ? NULL : wb_fail_argument_null("wb_file_text", "the name");
    const char *text = text_in(file->root, name);
    if (!text) text = text_in(file->metadata, name);
    return text ? text
                : wb_fail_null(WB_ERROR_ARGUMENT, "%s: there is no text \"%.80s\"", file->path,
                               name);
}

const char *wb_file_format(const wb_file *file) {
    return file && wb_file_check("wb_file_format", file) && file->format ? file->format->name : "";
}

int64_t wb_file_size(const wb_file *file) {
    return file && wb_file_check("wb_file_size", file) ? file->map.size_bytes : 0;
}

/* ---- questions ---- */

wb_record_kind wb_record_kind_of(const wb_record *r) {
    return r ? (wb_record_kind)r->kind : WB_RECORD_NULL;
}
const char *wb_record_type(const wb_record *r) {
    if (r && r->packed) return r->packed->type;
    return r && r->type ? r->type : "";
}
int64_t wb_record_count(const wb_record *r) { return r ? r->count : 0; }

const wb_record *wb_record_at(const wb_record *r, int64_t i) {
    return r && i >= 0 && i < r->count ? r->children[i] : NULL;
}

const char *wb_record_name(const wb_record *r, int64_t i) {
    return r && r->names && i >= 0 && i < r->count ? r->names[i] : NULL;
}

const char *wb_record_noun(const wb_record *r) {
    static const char *const names[] = {"nothing",  "a bool", "an integer", "a real",   "a text",
                                        "an array", "a list", "a map",      "a struct", "opaque"};
    return r ? names[r->kind] : "nothing";
}

static bool is_kind(const wb_record *r, wb_record_kind kind, const char *wanted) {
    if (r && r->kind == kind) return true;
    if (!wb_failed())
        (void)wb_fail(WB_ERROR_ARGUMENT, "the record is %s%s%s, not %s", wb_record_noun(r),
                      *wb_record_type(r) ? ", of type " : "", wb_record_type(r), wanted);
    return false;
}

wb_dtype wb_record_dtype(const wb_record *r) {
    return is_kind(r, WB_RECORD_ARRAY, "an array") ? (wb_dtype)r->dtype : WB_F32;
}
int wb_record_ndim(const wb_record *r) { return r ? r->ndim : 0; }
int64_t wb_record_size(const wb_record *r, int dim) {
    return r && dim >= 0 && dim < r->ndim ? r->sizes[dim] : 1;
}
int64_t wb_record_bytes(const wb_record *r) { return r ? r->data_bytes : 0; }

bool wb_record_bool(const wb_record *r) {
    return is_kind(r, WB_RECORD_BOOL, "a bool") && r->boolean;
}

int64_t wb_record_integer(const wb_record *r) {
    return is_kind(r, WB_RECORD_INTEGER, "an integer") ? r->integer : 0;
}

double wb_record_real(const wb_record *r) {
    if (r && r->kind == WB_RECORD_INTEGER) return (double)r->integer;
    return is_kind(r, WB_RECORD_REAL, "a real") ? r->real : (double)NAN;
}

const char *wb_record_text(const wb_record *r) {
    return is_kind(r, WB_RECORD_TEXT, "a text") ? r->text : NULL;
}

/* ---- paths ---- */

/* The child that the beginning of path names; the longest name that fits, as names may have dots.
 * *rest is what follows. */
static const wb_record *step(const wb_record *r, const char *path, const char **rest) {
    const wb_record *found = NULL;
    size_t best = 0;
    for (int64_t i = 0; i < r->count; i++) {
        char number[24];
        const char *name = wb_record_name(r, i);
        if (!name) (void)snprintf(number, sizeof number, "%lld", (long long)i + 1), name = number;
        const size_t length = strlen(name);
        if (strncmp(path, name, length) != 0 || (path[length] && path[length] != '.')) continue;
        if (found && length <= best) continue;
        found = r->children[i], best = length;
    }
    if (found) *rest = path[best] ? path + best + 1 : path + best;
    return found;
}

static size_t write_branch(const wb_branch *b, char *text, size_t size_bytes) {
    const size_t used = b->outer ? write_branch(b->outer, text, size_bytes) : 0;
    const char *dot = used ? "." : "";
    const int length =
        b->name ? snprintf(text + used, size_bytes - used, "%s%s", dot, b->name)
                : snprintf(text + used, size_bytes - used, "%s%lld", dot, (long long)b->index + 1);
    const size_t end = used + (length > 0 ? (size_t)length : 0);
    return end < size_bytes ? end : size_bytes - 1;
}

void wb_branch_text(const wb_branch *branch, char *text, size_t size_bytes) {
    (void)write_branch(branch, text, size_bytes);
}

const wb_record *wb_record_below(const wb_record *r, const char *path) {
    while (r && *path) r = step(r, path, &path);
    return r;
}

/* How many bytes the two begin with in common. */
static size_t common_bytes(const char *a, const char *b) {
    size_t count = 0;
    while (a[count] && a[count] == b[count]) count++;
    return count;
}

/* The child from which the names are listed: the one that is most like the wanted name, and the one
 * before it. */
static int64_t first_listed(const wb_record *r, const char *wanted) {
    enum { FEW = 8 };
    int64_t best = 0;
    size_t most = 0;
    for (int64_t i = 0; r->names && r->count > FEW && i < r->count; i++) {
        const size_t common = common_bytes(r->names[i], wanted);
        if (common > most) most = common, best = i;
    }
    return best > 1 ? best - 1 : 0;
}

static void list_names(const wb_record *r, const char *wanted, char *text, size_t size_bytes) {
    const int64_t first = first_listed(r, wanted);
    size_t used = first ? (size_t)snprintf(text, size_bytes, "..., ") : 0;
    text[used] = 0;
    for (int64_t i = first; i < r->count && used < size_bytes - 32; i++) {
        const char *name = wb_record_name(r, i);
        const int length =
            name ? snprintf(text + used, size_bytes - used, "%s%.80s", i > first ? ", " : "", name)
                 : snprintf(text + used, size_bytes - used, "%s%lld", i > first ? ", " : "",
                            (long long)i + 1);
        if (length > 0) used += (size_t)length;
    }
}

const wb_record *wb_record_get(const wb_record *r, const char *path) {
    if (!r || !path)
        return wb_failed() ? NULL
                           : wb_fail_argument_null("wb_record_get", r ? "the path" : "the record");
    const char *rest = path;
    while (*rest) {
        const wb_record *child = step(r, rest, &rest);
        if (child) {
            r = child;
            continue;
        }
        char names[400];
        list_names(r, rest, names, sizeof names);
        const int reached = rest > path ? (int)(rest - path) - 1 : 0; /* without its dot */
        return wb_fail_null(WB_ERROR_ARGUMENT, "there is no \"%s\"; %s%.*s%s has %s", path,
                            reached ? "\"" : "", reached ? reached : 2, reached ? path : "it",
                            reached ? "\"" : "", *names ? names : "nothing");
    }
    return r;
}

/* ---- arrays ---- */

static void give_back(void *context, void *data) {
    (void)data;
    wb_free(context);
}

static bool is_aligned(const void *data, wb_dtype dtype) {
    return (uintptr_t)data % wb_dtype_size(dtype) == 0;
}

static bool is_borrowed(const wb_record *r) {
    return r->data_bytes && !r->packed && is_aligned(r->data, (wb_dtype)r->dtype);
}

/* As it lies in the file. */
static wb_array *array_in_file(const wb_file *file, const wb_record *r) {
    const wb_dtype dtype = (wb_dtype)r->dtype;
    union {
        const wb_file *from;
        wb_file *to; /* only counted */
    } held = {.from = file};
    if (is_borrowed(r)) {
        (void)__atomic_add_fetch(&held.to->refs, 1, __ATOMIC_RELAXED);
        return wb_borrow_make(dtype, r->data, give_back, held.to, r->ndim, r->sizes);
    }
    wb_buffer *buffer = wb_buffer_new(wb_cpu_device(), wb_bytes(r->data_bytes), "data");
    if (!buffer) return NULL;
    if (r->packed)
        r->packed->unpack(r->packed->bytes, wb_count_sizes(r->ndim, r->sizes), buffer->handle);
    else if (r->data_bytes)
        memcpy(buffer->handle, r->data, (size_t)r->data_bytes);
    return wb_node_data(dtype, r->ndim, r->sizes, buffer);
}

static wb_array *array_of(const wb_file *file, const wb_record *r);

static wb_array *joined(const wb_file *file, const wb_turn *turn) {
    wb_array *parts[WB_TURN_PARTS];
    for (int i = 0; i < turn->count; i++)
        if (!(parts[i] = array_of(file, turn->of[i]))) return NULL;
    return wb_concat_make(turn->along, turn->count, parts);
}

static wb_array *without_pairs(wb_array *x, int64_t run) {
    if (!x || !wb_count(x)) return x;
    wb_array *pairs = wb_reshape(x, 2, run / 2, wb_count(x) / run);
    return wb_reshape_make(wb_permute(pairs, 1, 0, 2), x->ndim, x->sizes);
}

static wb_array *turned(const wb_file *file, const wb_record *r) {
    const wb_turn *turn = r->turn;
    if (turn->count > 1) return joined(file, turn);
    int64_t order[WB_MAX_DIMS];
    const int n = turn->of[0]->ndim;
    for (int d = 0; d < n; d++) order[d] = turn->order[d];
    wb_array *x = array_of(file, turn->of[0]);
    if (turn->end) x = wb_slice(x, turn->along, turn->begin, turn->end, 1);
    if (turn->is_permuted) x = wb_permute_make(x, n, order);
    for (int d = 0; turn->is_flipped && d < n - 2; d++) x = wb_flip(x, d);
    if (turn->pairs) x = without_pairs(x, turn->pairs);
    return r->ndim == n ? x : wb_reshape_make(x, r->ndim, r->sizes);
}

/* Recursive, but what is joined is of arrays that are not. */
static wb_array *array_of(const wb_file *file, const wb_record *r) {
    if (r->array) return wb_scope_add(r->array);
    return r->turn ? turned(file, r) : array_in_file(file, r);
}

wb_array *wb_record_array(const wb_file *file, const wb_record *r) {
    if (!wb_file_check("wb_record_array", file) || !is_kind(r, WB_RECORD_ARRAY, "an array"))
        return NULL;
    return array_of(file, r);
}

wb_array *wb_file_array(const wb_file *file, const char *name) {
    if (!wb_file_check("wb_file_array", file)) return NULL;
    if (!name) return wb_failed() ? NULL : wb_fail_argument_null("wb_file_array", "the name");
    const wb_record *root = file->root;
    for (int64_t i = 0; root->names && i < root->count; i++)
        if (strcmp(root->names[i], name) == 0 && root->children[i]->kind == WB_RECORD_ARRAY)
            return array_of(file, root->children[i]);
    return wb_fail_null(WB_ERROR_ARGUMENT, "%s: there is no array \"%.80s\"", file->path, name);
}

wb_array *wb_record_copy(const wb_file *file, const wb_record *r) {
    wb_array *x = wb_record_array(file, r);
    return x && (r->array || r->turn || is_borrowed(r)) ? wb_data_copy(x) : x;
}
