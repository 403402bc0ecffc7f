/* Tensors of PyTorch's files: views of storages. */
#include <string.h>

#include "base/inflate.h"
#include "base/memory.h"
#include "base/widen.h"
#include "formats/pt.h"

/* Storages by class. Those of a type that Weber lacks are widened. */
static const struct {
    const char *name;
    int size;
    wb_dtype dtype;
    bool widens;
} types[] = {
    {"torch.FloatStorage", 4, WB_F32, false}, {"torch.DoubleStorage", 8, WB_F64, false},
    {"torch.HalfStorage", 2, WB_F16, false},  {"torch.BFloat16Storage", 2, WB_BF16, false},
    {"torch.LongStorage", 8, WB_I64, false},  {"torch.IntStorage", 4, WB_I32, false},
    {"torch.ShortStorage", 2, WB_I32, true},  {"torch.CharStorage", 1, WB_I32, true},
    {"torch.ByteStorage", 1, WB_U8, false},   {"torch.BoolStorage", 1, WB_BOOL, false},
};
enum { TYPES = sizeof types / sizeof *types };

int wb_pt_type_size(int type) { return types[type].size; }

/* ---- storages ---- */

/* A storage is an opaque record: its place in the list in `integer`, and these in `sizes`. */
enum { TYPE, COUNT, BEGIN }; /* of a view: its elements, and the first one's place */

/* ("storage", torch.FloatStorage, "0", "cpu", elements); the old form may have a view at the end,
 * ("1", begin, elements). */
static bool is_key(const wb_record *key) {
    wb_record *const *k = key->children;
    return key->kind == WB_RECORD_LIST && key->count >= 5 && k[0]->kind == WB_RECORD_TEXT &&
           strcmp(k[0]->text, "storage") == 0 && wb_is_global(k[1]) &&
           k[2]->kind == WB_RECORD_TEXT && k[4]->kind == WB_RECORD_INTEGER;
}

/* Sets the elements of the view, within so many. */
static bool set_view(wb_record *made, const wb_record *key, int64_t count) {
    const wb_record *view = key->count > 5 ? key->children[5] : NULL;
    made->sizes[COUNT] = count;
    if (!view || view->kind == WB_RECORD_NULL) return true;
    if (view->kind != WB_RECORD_LIST || view->count != 3) return false;
    const wb_record *begin = view->children[1], *size = view->children[2];
    if (begin->kind != WB_RECORD_INTEGER || size->kind != WB_RECORD_INTEGER || begin->integer < 0 ||
        size->integer < 0 || begin->integer > count || size->integer > count - begin->integer)
        return false;
    made->sizes[BEGIN] = begin->integer, made->sizes[COUNT] = size->integer;
    return true;
}

static int type_named(const char *name) {
    int type = TYPES;
    while (type-- > 0 && strcmp(types[type].name, name) != 0) continue;
    return type;
}

static bool check_size(const wb_pickle *pickle, const wb_pt_storage *s, int type, int64_t count,
                       int64_t at) {
    if (count >= 0 && count <= s->size_bytes / types[type].size) return true;
    return wb_pickle_fault(pickle, at, "%.200s has %lld bytes, too few for %lld elements of %s",
                           s->name, (long long)s->size_bytes, (long long)count,
                           types[type].name) != NULL;
}

wb_record *wb_pt_persistent(const wb_pickle *pickle, wb_record *key, int64_t at) {
    wb_pt *pt = pickle->context;
    wb_record *const *k = key->children;
    if (!is_key(key))
        return wb_pickle_fault(pickle, at, "what lies outside of the pickle must be a storage");
    const int type = type_named(k[1]->type);
    const int64_t count = k[4]->integer;
    if (type < 0) return wb_pickle_fault(pickle, at, "%s is not read", k[1]->type);
    const int64_t place = pt->find(pt, pickle, k[2]->text, type, count, at);
    if (place < 0) return NULL;
    if (!pt->is_survey && !check_size(pickle, &pt->storages[place], type, count, at)) return NULL;
    wb_record *made = wb_record_new(&pickle->file->arena, WB_RECORD_OPAQUE);
    if (!made) return NULL;
    made->type = k[1]->type, made->text = "storage";
    made->integer = place, made->sizes[TYPE] = type;
    if (set_view(made, key, count)) return made;
    return wb_pickle_fault(pickle, at,
                           "the view of storage \"%.80s\" is not within its %lld "
                           "elements",
                           k[2]->text, (long long)count);
}

static const unsigned char *bytes_of(wb_pt *r, wb_pt_storage *s) {
    if (!s->bytes) s->bytes = r->bytes(r, s);
    return s->bytes;
}

/* ---- tensors ---- */

typedef struct tensor {
    int type;
    wb_pt_storage *storage;
    int64_t numbers; /* elements of the storage, or of the view of it */
    int64_t offset, count;
    int ndim;
    int64_t sizes[WB_MAX_DIMS], strides[WB_MAX_DIMS]; /* fastest first */
    bool is_dense;
} tensor;

static bool is_storage(const wb_record *r) {
    return r->kind == WB_RECORD_OPAQUE && r->text && strcmp(r->text, "storage") == 0;
}

static bool are_integers(const wb_record *list) {
    for (int64_t i = 0; i < list->count; i++)
        if (list->children[i]->kind != WB_RECORD_INTEGER || list->children[i]->integer < 0)
            return false;
    return list->kind == WB_RECORD_LIST;
}

/* Sizes and strides, and whether all elements lie within the storage. */
static bool measure(tensor *t, const wb_record *sizes, const wb_record *strides) {
    int64_t last = t->offset, dense = 1, most = 1;
    t->ndim = (int)sizes->count, t->count = 1, t->is_dense = true;
    for (int d = 0; d < t->ndim; d++) {
        const int64_t size = sizes->children[t->ndim - 1 - d]->integer;
        const int64_t stride = strides->children[t->ndim - 1 - d]->integer;
        int64_t reach;
        t->sizes[d] = size, t->strides[d] = size > 1 ? stride : 0;
        if (__builtin_mul_overflow(most, size > 0 ? size : 1, &most) || most > INT64_MAX / 64)
            return false;
        t->count *= size;
        if (size > 1 && (__builtin_mul_overflow(size - 1, stride, &reach) ||
                         __builtin_add_overflow(last, reach, &last)))
            return false;
        t->is_dense = t->is_dense && (size <= 1 || stride == dense);
        dense *= size;
    }
    if (t->count == 0) t->offset = 0;
    return t->count == 0 || last < t->numbers;
}

/* The elements side by side. */
static const void *gathered(const wb_pt *r, const tensor *t, const unsigned char *from) {
    const int size = types[t->type].size;
    unsigned char *out = wb_arena_take(&r->file->arena, wb_bytes(t->count * size));
    int64_t at[WB_MAX_DIMS] = {0}, place = t->offset;
    for (int64_t i = 0; out && i < t->count; i++) {
        memcpy(out + i * size, from + place * size, (size_t)size);
        for (int d = 0; d < t->ndim; d++) {
            place += t->strides[d];
            if (++at[d] < t->sizes[d]) break;
            place -= t->sizes[d] * t->strides[d];
            at[d] = 0;
        }
    }
    return out;
}

/* Copies come on top of what the arena may have for records; all together are bounded, since a
 * stride of 0 makes any number of elements of one. */
static bool may_copy(wb_pt *r, const wb_pickle *pickle, int64_t bytes, int64_t at) {
    const int64_t most = wb_most_inflated(r->file->map.size_bytes);
    if (bytes > most - r->copied_bytes) {
        (void)wb_pickle_fault(pickle, at,
                              "with this tensor those that repeat or skip elements have more than "
                              "%lld bytes (" WB_INFLATE_ADVICE ")",
                              (long long)most);
        return false;
    }
    r->copied_bytes += bytes;
    wb_arena *arena = &r->file->arena;
    arena->limit_bytes += arena->limit_bytes ? bytes + WB_ARENA_ALIGN : 0;
    return true;
}

/* Sets data to the elements, in a type that Weber has. */
static bool set_data(wb_pt *r, const wb_pickle *pickle, const tensor *t, wb_record *record,
                     int64_t at) {
    const unsigned char *from = bytes_of(r, t->storage);
    const int64_t size = types[t->type].size;
    if (!from) return false;
    record->offset = t->storage->offset + t->offset * size;
    record->data = from + t->offset * size;
    record->data_bytes = t->count * size;
    if (!t->is_dense && t->count) {
        if (!may_copy(r, pickle, record->data_bytes, at)) return false;
        record->data = gathered(r, t, from);
        if (!record->data) return false;
    }
    if (!types[t->type].widens) return true;
    const wb_integers whole = {(int)size, true, false};
    const int64_t wide = t->count * wb_widened_bytes(whole);
    if (!may_copy(r, pickle, wide, at)) return false;
    void *out = wb_arena_take(&r->file->arena, wb_bytes(wide));
    if (out) (void)wb_widen(whole, record->data, t->count, out);
    record->data = out, record->data_bytes = wide;
    return out != NULL;
}

static bool is_same(const wb_pt_storage *s, const tensor *t) {
    return s->first && s->first_type == t->type && s->first_offset == t->offset &&
           s->first->ndim == t->ndim &&
           memcmp(s->first->sizes, t->sizes, sizeof *t->sizes * (size_t)t->ndim) == 0 &&
           memcmp(s->strides, t->strides, sizeof *t->strides * (size_t)t->ndim) == 0;
}

static wb_record *array_of(wb_pt *r, const wb_pickle *pickle, const tensor *t, int64_t at) {
    wb_pt_storage *s = t->storage;
    if (is_same(s, t)) return s->first;
    wb_record *record = wb_record_new(&r->file->arena, WB_RECORD_ARRAY);
    if (!record || !set_data(r, pickle, t, record, at)) return NULL;
    record->dtype = (uint8_t)types[t->type].dtype, record->ndim = (uint8_t)t->ndim;
    memcpy(record->sizes, t->sizes, sizeof *t->sizes * (size_t)t->ndim);
    if (s->first) return record;
    s->first = record, s->first_type = t->type, s->first_offset = t->offset;
    memcpy(s->strides, t->strides, sizeof *t->strides * (size_t)t->ndim);
    return record;
}

/* _rebuild_tensor_v2(storage, offset, sizes, strides, needs a gradient, hooks); before it,
 * _rebuild_tensor had the first four. */
static wb_record *tensor_of(const wb_pickle *pickle, const wb_record *arguments, int64_t at) {
    wb_pt *r = pickle->context;
    wb_record *const *a = arguments->children;
    if (arguments->count < 4 || !is_storage(a[0]) || a[1]->kind != WB_RECORD_INTEGER ||
        a[1]->integer < 0 || !are_integers(a[2]) || !are_integers(a[3]) ||
        a[2]->count != a[3]->count)
        return wb_pickle_fault(pickle, at,
                               "a tensor must have a storage, an offset, sizes and strides");
    if (a[2]->count > WB_MAX_DIMS)
        return wb_pickle_fault(pickle, at, "a tensor has %lld dimensions; at most %d are read",
                               (long long)a[2]->count, WB_MAX_DIMS);
    if (r->is_survey) return wb_record_new(&pickle->file->arena, WB_RECORD_OPAQUE);
    tensor t = {.type = (int)a[0]->sizes[TYPE],
                .storage = &r->storages[a[0]->integer],
                .numbers = a[0]->sizes[COUNT],
                .offset = a[1]->integer};
    if (!measure(&t, a[2], a[3]))
        return wb_pickle_fault(pickle, at, "a tensor reaches beyond the %lld elements of %.200s",
                               (long long)t.numbers, t.storage->name);
    t.offset += a[0]->sizes[BEGIN];
    return array_of(r, pickle, &t, at);
}

static const char *const tensor_makers[] = {"torch._utils._rebuild_tensor_v2",
                                            "torch._utils._rebuild_tensor", NULL};
/* Their first argument is the value; the last ones are TorchScript's. */
static const char *const plain[] = {"torch.Size",
                                    "torch.device",
                                    "torch.jit._pickle.build_intlist",
                                    "torch.jit._pickle.build_doublelist",
                                    "torch.jit._pickle.build_boollist",
                                    "torch.jit._pickle.build_tensorlist",
                                    "torch.jit._pickle.restore_type_tag",
                                    NULL};

static bool is_any(const char *name, const char *const *names) {
    while (*names && strcmp(*names, name) != 0) names++;
    return *names != NULL;
}

wb_record *wb_pt_call(const wb_pickle *pickle, const char *name, wb_record *arguments, int64_t at) {
    const wb_pt *pt = pickle->context;
    wb_record *first = arguments->count > 0 ? arguments->children[0] : NULL;
    if (is_any(name, tensor_makers)) return tensor_of(pickle, arguments, at);
    const bool is_parameter = strcmp(name, "torch._utils._rebuild_parameter") == 0;
    if (is_parameter && first && (pt->is_survey || first->kind == WB_RECORD_ARRAY)) return first;
    if (first && is_any(name, plain)) return first;
    return wb_pickle_fault(pickle, at,
                           "%.200s is called, which is not done: only dictionaries, lists, "
                           "numbers, texts and tensors are read; in Python, save the state_dict",
                           name);
}
