/* The library's handle on a device, and the algorithms that it has chosen there. */
#include <string.h>

#include "lt.h"

enum {
    BUCKETS = 256,
    MOST_SHAPES = 4096,         /* then all are forgotten */
    WORKSPACE_BYTES = 32 << 20, /* what NVIDIA names for Hopper */
    FIRST_CHOICES = 1
};

typedef struct known {
    struct known *next;
    wb_lt_shape shape;
    wb_lt_choices choices;
} known;

struct wb_lt_device {
    lt_handle handle;
    pthread_mutex_t lock; /* guards the members below */
    known *buckets[BUCKETS];
    int count;
};

lt_handle wb_lt_handle(const wb_lt_device *device) { return device->handle; }

/* ---- life ---- */

static void forget_all(wb_lt_device *device) {
    for (int i = 0; i < BUCKETS; i++)
        for (known *k = device->buckets[i], *next; k; k = next) {
            next = k->next;
            wb_gpu_host->release(k);
        }
    memset(device->buckets, 0, sizeof device->buckets);
    device->count = 0;
}

static wb_gpu_outcome init(void *kept) {
    wb_lt_device *d = kept;
    wb_gpu_outcome o = LT_TRY(Create, &d->handle);
    if (o.error) return o;
    o = wb_lt_accept(d->handle);
    if (o.error)
        (void)lt.Destroy(d->handle);
    else
        (void)pthread_mutex_init(&d->lock, NULL);
    return o;
}

wb_lt_device *wb_lt_device_of(wb_gpu_device *device, wb_gpu_outcome *outcome) {
    static const wb_gpu_keeping keeping = {sizeof(wb_lt_device), init, wb_lt_load};
    return wb_gpu_kept(device, &device->products, &keeping, outcome);
}

void wb_lt_device_close(wb_gpu_device *device) {
    wb_lt_device *products = device->products;
    if (!products) return;
    forget_all(products);
    (void)lt.Destroy(products->handle);
    (void)pthread_mutex_destroy(&products->lock);
    wb_gpu_host->release(products);
    device->products = NULL;
}

/* ---- choosing ---- */

static wb_gpu_outcome set_preference(lt_preference preference, int attribute, uint32_t value) {
    return LT_TRY(MatmulPreferenceSetAttribute, preference, (lt_preference_attribute)attribute,
                  &value, sizeof value);
}

/* Partial sums of f16 and bf16, too, are added up in f32, not in the result's type. */
static uint32_t reductions_of(const wb_lt_shape *shape) {
    return shape->dtype == WB_F16 || shape->dtype == WB_BF16 ? LT_REDUCTIONS_COMPUTED
                                                             : LT_REDUCTIONS_ALL;
}

static wb_gpu_outcome make_preference(uint32_t alignment, uint32_t reductions,
                                      lt_preference *preference) {
    static const int attributes[] = {LT_ALIGNMENT_A, LT_ALIGNMENT_B, LT_ALIGNMENT_C,
                                     LT_ALIGNMENT_D};
    const size_t workspace_bytes = WORKSPACE_BYTES;
    wb_gpu_outcome o = LT_TRY(MatmulPreferenceCreate, preference);
    if (!o.error)
        o = LT_TRY(MatmulPreferenceSetAttribute, *preference, LT_WORKSPACE_BYTES, &workspace_bytes,
                   sizeof workspace_bytes);
    if (!o.error && LT_REDUCTIONS != LT_NONE)
        o = set_preference(*preference, LT_REDUCTIONS, reductions);
    for (int i = 0; i < 4 && !o.error && attributes[i] != LT_NONE; i++)
        o = set_preference(*preference, attributes[i], alignment);
    return o;
}

/* *found is false where the library has nothing for the shape, which it says by an error or by an
 * empty list. */
static wb_gpu_outcome ask(const wb_lt_device *device, const wb_lt_shape *shape,
                          const wb_lt_product *p, uint32_t alignment, lt_choice *choice,
                          bool *found) {
    lt_preference preference = NULL;
    int count = 0;
    lt_code code = LT_SUCCESS;
    wb_gpu_outcome o = make_preference(alignment, reductions_of(shape), &preference);
    if (!o.error)
        code = lt.MatmulAlgoGetHeuristic(device->handle, p->desc, p->a, p->b, p->c, p->c,
                                         preference, FIRST_CHOICES, choice, &count);
    if (preference) (void)lt.MatmulPreferenceDestroy(preference);
    *found = !o.error && code == LT_SUCCESS && count > 0 && choice->state == LT_SUCCESS;
    if (!o.error && code != LT_NOT_SUPPORTED)
        o = wb_lt_outcome(LT_PREFIX "MatmulAlgoGetHeuristic", code);
    return o;
}

static wb_gpu_outcome ask_both(const wb_lt_device *device, const wb_lt_shape *shape,
                               const wb_lt_product *p, wb_lt_choices *c) {
    const uint32_t element_bytes = (uint32_t)wb_gpu_element_bytes(shape->dtype);
    wb_gpu_outcome o = ask(device, shape, p, element_bytes, &c->any, &c->has_any);
    if (o.error || LT_ALIGNMENT_A == LT_NONE) return o;
    return ask(device, shape, p, WB_LT_ALIGNED_BYTES, &c->aligned, &c->has_aligned);
}

static uint64_t hash_of(const wb_lt_shape *shape) {
    uint64_t words[sizeof *shape / sizeof(uint64_t)], hash = 0xCBF29CE484222325u;
    memcpy(words, shape, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        hash = (hash ^ words[i]) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 32;
    }
    return hash;
}

static wb_gpu_outcome remember(wb_lt_device *device, const wb_lt_shape *shape,
                               const wb_lt_choices *c) {
    if (device->count == MOST_SHAPES) forget_all(device);
    known *k = wb_gpu_host->alloc(sizeof *k);
    if (!k) return (wb_gpu_outcome){.call = "memory", .error = "out of memory"};
    known **bucket = &device->buckets[hash_of(shape) % BUCKETS];
    *k = (known){.next = *bucket, .shape = *shape, .choices = *c};
    *bucket = k;
    device->count++;
    return (wb_gpu_outcome){.error = NULL};
}

wb_gpu_outcome wb_lt_choose(wb_lt_device *device, const wb_lt_shape *shape,
                            const wb_lt_product *product, wb_lt_choices *choices) {
    wb_gpu_outcome o = {.error = NULL};
    *choices = (wb_lt_choices){.has_any = false};
    pthread_mutex_lock(&device->lock);
    const known *k = device->buckets[hash_of(shape) % BUCKETS];
    while (k && memcmp(&k->shape, shape, sizeof *shape) != 0) k = k->next;
    if (k)
        *choices = k->choices;
    else
        o = ask_both(device, shape, product, choices);
    if (!k && !o.error) o = remember(device, shape, choices);
    pthread_mutex_unlock(&device->lock);
    return o;
}
