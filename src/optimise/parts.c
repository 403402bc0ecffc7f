/* Cuts a batch into micro-batches, which are views of its arrays. Hidden states of recurrent layers
 * have a column for each observation: each micro-batch gets its columns, and what the micro-batches
 * leave is joined after the last. */
#include "optimise/parts.h"

#include "array/state.h"
#include "base/memory.h"
#include "layers/layer.h"
#include "ops/ops.h"

/* ---- observations ---- */

static wb_array *views(wb_array *x, const wb_part *part) {
    return x && wb_numobs(x) == part->all ? wb_getobs(x, part->start, part->stop) : x;
}

/* The number of observations of every micro-batch but the last one. */
static int64_t most_of(const wb_optimiser *o, const wb_batch *batch) {
    const int64_t whole = batch->full_ ? batch->full_ : wb_numobs(batch->x);
    return (whole + o->micro_batches - 1) / o->micro_batches;
}

int64_t wb_micro_batches_to_run(const wb_optimiser *o, const wb_batch *batch) {
    if (o->is_distributed || !batch || !batch->x) return o->micro_batches;
    const int64_t own = wb_observations_of(batch), most = most_of(o, batch);
    const int64_t count = most ? (own + most - 1) / most : 0;
    return count > 0 ? count : 1;
}

bool wb_micro_batch(const wb_optimiser *o, const wb_batch *batch, int64_t number, wb_part *part) {
    if (!batch || !batch->x)
        return wb_fail(WB_ERROR_ARGUMENT,
                       "wb_train_step: micro_batches is %lld, so there must be a batch with an x",
                       (long long)o->micro_batches) == WB_OK;
    const int64_t there = wb_numobs(batch->x), own = wb_observations_of(batch);
    const int64_t most = most_of(o, batch);
    int64_t start = number * most, size = own - start < most ? own - start : most;
    if (size <= 0) size = 0, start = there;
    *part = (wb_part){*batch, there, start, start + size};
    part->batch.size = size, part->batch.full_ = most;
    part->batch.x = views(batch->x, part);
    part->batch.y = views(batch->y, part);
    for (int i = 0; i < WB_MORE_ARRAYS; i++) part->batch.more[i] = views(batch->more[i], part);
    return !wb_failed();
}

/* ---- caches ---- */

static bool has_no_cache(wb_visitor *visitor, const wb_path *path, wb_layer *layer) {
    const wb_positions *p = wb_positions_of(layer);
    (void)visitor, (void)path;
    if (!p || p->length == 0) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT,
                  "wb_train_step: micro_batches and the cache of a %s cannot be used together: "
                  "wb_cache(model, 0) removes it",
                  layer->class_->name);
    return false;
}

bool wb_check_uncached(const wb_optimiser *o) {
    wb_visitor v = {.layer = has_no_cache};
    return wb_visit(&v, o->model);
}

/* ---- hidden states ---- */

/* A hidden state in a part. */
typedef struct hidden {
    wb_array **slot;
    wb_array *given; /* the part's columns; only compared */
    wb_array *left;  /* what the loss has left; held once it is computed */
    bool is_written; /* by the loss; with NULL in left: cleared */
    bool is_held;
} hidden;

/* The hidden states of all parts of a step, equally many for each part. */
typedef struct wb_part_hidden {
    hidden *items;
    int64_t count, capacity;
    int64_t newest; /* the first one of the newest part */
} wb_part_hidden;

typedef struct hidden_visitor {
    wb_visitor visitor;
    wb_optimiser *optimiser;
    const wb_part *part;
} hidden_visitor;

/* The columns of the part. If the state does not fit the batch, a state without columns, which the
 * layer refuses unless the loss resets it. */
static wb_array *columns(wb_array *h, const wb_part *part) {
    const bool fits = h->ndim > 0 && wb_numobs(h) == part->all;
    if (fits) return wb_getobs(h, part->start, part->stop);
    return h->ndim > 0 ? wb_getobs(h, 0, 0) : h;
}

static bool give(wb_part_hidden *all, wb_array **slot, const wb_part *part) {
    if (!WB_GROW(all->items, all->count, all->capacity)) return false;
    wb_array *given = *slot ? columns(*slot, part) : NULL;
    if (*slot && (!given || wb_state_write(slot, given) != WB_OK)) return false;
    all->items[all->count++] = (hidden){.slot = slot, .given = given};
    return true;
}

static bool give_to_layer(wb_visitor *visitor, const wb_path *path, wb_layer *layer) {
    const hidden_visitor *v = (hidden_visitor *)(void *)visitor;
    (void)path;
    for (int i = 0; i < layer->class_->field_count; i++) {
        const wb_field *field = &layer->class_->fields[i];
        if (field->kind != WB_FIELD_HIDDEN) continue;
        if (!give(v->optimiser->hidden, wb_field_array(layer, field), v->part)) return false;
    }
    return true;
}

bool wb_hidden_give(wb_optimiser *o, const wb_part *part) {
    if (!o->hidden && !(o->hidden = wb_alloc(sizeof *o->hidden))) return false;
    o->hidden->newest = o->hidden->count;
    hidden_visitor v = {.visitor = {.layer = give_to_layer}, .optimiser = o, .part = part};
    return wb_visit(&v.visitor, o->model);
}

static bool check_left(const hidden *h, int64_t columns) {
    if (!h->is_written || !h->left) return true;
    if (h->left->ndim > 0 && wb_numobs(h->left) == columns) return true;
    return wb_fail_null(WB_ERROR_SHAPE,
                        "wb_train_step: with micro_batches a hidden state must have a column for "
                        "each of the %lld observations of a part, got %s",
                        (long long)columns, wb_text_of(h->left)) != NULL;
}

bool wb_hidden_take(wb_optimiser *o, const wb_part *part) {
    wb_part_hidden *all = o->hidden;
    bool good = true;
    for (int64_t i = all->newest; i < all->count && good; i++) {
        hidden *h = &all->items[i];
        h->left = *h->slot, h->is_written = h->left != h->given;
        good = check_left(h, part->stop - part->start);
    }
    if (part->batch.size == 0) all->count = all->newest; /* it has no columns */
    return good;
}

int64_t wb_hidden_to_keep(const wb_optimiser *o, wb_array **list) {
    int64_t count = 0;
    for (int64_t i = o->hidden ? o->hidden->newest : 0; o->hidden && i < o->hidden->count; i++) {
        const hidden *h = &o->hidden->items[i];
        if (!h->is_written || !h->left) continue;
        if (list) list[count] = h->left;
        count++;
    }
    return count;
}

void wb_hidden_keep(wb_optimiser *o) {
    for (int64_t i = o->hidden->newest; i < o->hidden->count; i++) {
        hidden *h = &o->hidden->items[i];
        if (!h->is_written || !h->left) continue;
        h->left = wb_hold(h->left), h->is_held = true;
        if (wb_is_evaluated(h->left)) wb_node_detach(h->left);
    }
}

/* One beside the other. */
static wb_array *joined(int64_t count, wb_array *const *pieces) {
    return wb_concat_make(pieces[0]->ndim - 1, (int)count, pieces);
}

/* Joins the states that all parts have left in one slot. */
static bool join(const wb_part_hidden *all, int64_t slots, int64_t first) {
    const int64_t parts = all->count / slots;
    int64_t written = 0, there = 0;
    wb_array **pieces = wb_alloc((size_t)parts * sizeof *pieces);
    if (!pieces) return false;
    for (int64_t i = first; i < all->count; i += slots) {
        const hidden *h = &all->items[i];
        written += h->is_written;
        if (h->is_written && h->left) pieces[there++] = h->left;
    }
    wb_array **slot = all->items[first].slot;
    bool good = written == 0 || (written == parts && (there == 0 || there == parts));
    if (!good)
        (void)wb_fail(WB_ERROR_ARGUMENT, "wb_train_step: a loss must write the same hidden states "
                                         "in all micro-batches of a step");
    else if (there > 0)
        good = wb_state_write(slot, joined(there, pieces)) == WB_OK;
    else if (written > 0)
        good = wb_state_clear(slot) == WB_OK;
    wb_release(pieces);
    return good;
}

bool wb_hidden_join(wb_optimiser *o) {
    const wb_part_hidden *all = o->hidden;
    int64_t slots = 0;
    bool good = true;
    if (!all || all->count == 0) return true;
    while (slots < all->count && (slots == 0 || all->items[slots].slot != all->items[0].slot))
        slots++;
    const int64_t begin = wb_state_begin(); /* so that they can be taken back */
    for (int64_t i = 0; i < slots && good; i++) good = join(all, slots, i);
    wb_state_end(begin, good);
    return good;
}

void wb_hidden_drop(wb_optimiser *o) {
    for (int64_t i = 0; o->hidden && i < o->hidden->count; i++)
        if (o->hidden->items[i].is_held) wb_unhold(o->hidden->items[i].left);
    if (o->hidden) wb_release(o->hidden->items);
    wb_release(o->hidden);
    o->hidden = NULL;
}
