/* The kernels of a plan: equal programs or calls, such as those of equal layers, share one. A
 * kernel contains no addresses, so two are equal if the programs or calls are.
 *
 * Reads programs and calls. Writes the table of kernels. */
#include <string.h>

#include "base/memory.h"
#include "evaluate/emit.h"
#include "program/keep.h"

struct wb_kernel_entry {
    int64_t first, words; /* of its key in keys */
    void *kernel;
};

/* ---- keys: what the kernel is made from, in 64-bit words ---- */

static bool write(wb_kernels *k, uint64_t word) {
    if (!WB_GROW(k->keys, k->key_words, k->key_capacity)) return false;
    k->keys[k->key_words++] = word;
    return true;
}

static bool write_list(wb_kernels *k, const void *words, size_t size_bytes) {
    for (size_t at = 0; at < size_bytes; at += sizeof *k->keys) {
        uint64_t word = 0;
        const size_t left = size_bytes - at;
        memcpy(&word, (const char *)words + at, left < sizeof word ? left : sizeof word);
        if (!write(k, word)) return false;
    }
    return true;
}

static bool write_instruction(wb_kernels *k, const wb_instruction *i) {
    return write(k, (uint64_t)i->code | (uint64_t)i->type << 8 | (uint64_t)i->from << 16 |
                        (uint64_t)i->phase << 24 | (uint64_t)i->row << 32 |
                        (uint64_t)i->is_step << 33 | (uint64_t)i->index << 48) &&
           write(k, (uint64_t)i->in[0] | (uint64_t)i->in[1] << 16 | (uint64_t)i->in[2] << 32) &&
           write(k, (uint64_t)wb_bits_of(i->constant));
}

static bool write_access(wb_kernels *k, const wb_access *a, int ndim) {
    return write(k, (uint64_t)a->dtype | (uint64_t)a->argument << 8) &&
           write(k, (uint64_t)a->offset) &&
           write_list(k, a->strides, sizeof *a->strides * (size_t)ndim);
}

static bool write_program(wb_kernels *k, const wb_program *p) {
    bool done = write(k, (uint64_t)p->ndim | (uint64_t)p->phases << 8 |
                             (uint64_t)p->is_update << 16 | (uint64_t)p->is_named << 17 |
                             (uint64_t)p->is_fed << 18 | (uint64_t)p->reduced << 32) &&
                write(k, (uint64_t)p->ninstructions | (uint64_t)p->naccesses << 32) &&
                write(k, (uint64_t)p->narguments | (uint64_t)p->ncallables << 32) &&
                write_list(k, p->callables, sizeof *p->callables * (size_t)p->ncallables) &&
                write_list(k, p->sizes, sizeof *p->sizes * (size_t)p->ndim);
    for (int32_t i = 0; done && i < p->ninstructions; i++)
        done = write_instruction(k, &p->instructions[i]);
    for (int32_t i = 0; done && i < p->naccesses; i++)
        done = write_access(k, &p->accesses[i], p->ndim);
    return done;
}

static bool write_call(wb_kernels *k, const wb_call *c, int split) {
    const uint64_t words[] = {
        (uint64_t)c->kind | (uint64_t)c->dtype << 8 | (uint64_t)c->is_fast << 16 |
            (uint64_t)c->is_result_private << 17 | (uint64_t)c->is_aligned << 18 |
            (uint64_t)c->may_round_to_bf16 << 19 | (uint64_t)c->is_fixed << 20 |
            (uint64_t)c->result_argument << 32,
        c->aligned_arguments, (uint64_t)split};
    if (!write_list(k, words, sizeof words)) return false;
    /* batches of products are compared by the addresses of their offsets, so they all differ */
    size_t size_bytes;
    const size_t at = wb_call_member(c->kind, &size_bytes);
    return write_list(k, (const char *)c + at, size_bytes);
}

/* ---- the table ---- */

/* The kernel whose key was written from `first` on; then the key is removed again. NULL: there is
 * none, and the key stays. */
static void *find(wb_kernels *k, int64_t first, uint64_t *hash) {
    const uint64_t *key = k->keys + first;
    const int64_t words = k->key_words - first;
    *hash = 0;
    for (int64_t i = 0; i < words; i++) *hash = wb_table_mix(*hash, key[i]);
    for (int64_t i = wb_table_find(&k->table, *hash); i >= 0; i = wb_table_next(&k->table, i)) {
        const struct wb_kernel_entry *e = &k->entries[i];
        if (e->words != words || memcmp(k->keys + e->first, key, sizeof *key * (size_t)words) != 0)
            continue;
        k->key_words = first;
        return e->kernel;
    }
    return NULL;
}

/* Notes a new kernel; on failure it is released, and NULL comes back. */
static void *add(wb_kernels *k, const wb_backend *backend, void *kernel, int64_t first,
                 uint64_t hash) {
    const int64_t number = k->table.count;
    if (!WB_GROW(k->entries, number, k->capacity) || !wb_table_add(&k->table, hash)) {
        backend->release(kernel);
        return NULL;
    }
    k->entries[number] =
        (struct wb_kernel_entry){.first = first, .words = k->key_words - first, .kernel = kernel};
    return kernel;
}

static void count(wb_kernels *k, const wb_program *program) {
    wb_program_keep(program);
    k->instruction_count += program->ninstructions;
    k->access_count += program->naccesses;
}

void *wb_kernel_of_program(wb_kernels *k, const wb_device *device, const wb_program *program) {
    const int64_t first = k->key_words;
    uint64_t hash;
    if (!write_program(k, program)) return NULL;
    void *kernel = find(k, first, &hash);
    if (kernel) return kernel;
    kernel = device->backend->kernel(device->context, program);
    if (kernel) count(k, program);
    return kernel ? add(k, device->backend, kernel, first, hash) : NULL;
}

void *wb_kernel_of_call(wb_kernels *k, const wb_device *device, const wb_call *call,
                        const wb_program *epilogue, int split) {
    const int64_t first = k->key_words;
    uint64_t hash;
    if (!write_call(k, call, split) || (epilogue && !write_program(k, epilogue))) return NULL;
    void *kernel = find(k, first, &hash);
    if (kernel) return kernel;
    kernel = device->backend->lower(device->context, call, epilogue, split);
    if (kernel && epilogue) count(k, epilogue);
    if (!kernel) k->key_words = first; /* it does not fuse here */
    return kernel ? add(k, device->backend, kernel, first, hash) : NULL;
}

bool wb_kernels_hand_over(wb_kernels *k, void ***list, int64_t *count) {
    *list = wb_alloc(sizeof **list * (size_t)(k->table.count + 1));
    if (!*list) return false;
    for (int64_t i = 0; i < k->table.count; i++) (*list)[i] = k->entries[i].kernel;
    *count = k->table.count;
    wb_table_release(&k->table);
    return true;
}

void wb_kernels_end(wb_kernels *k, const wb_backend *backend) {
    for (int64_t i = 0; i < k->table.count; i++) backend->release(k->entries[i].kernel);
    wb_table_release(&k->table);
    wb_release(k->entries);
    wb_release(k->keys);
    *k = (wb_kernels){.capacity = 0};
}
