/* The nodes that the roots are made of, each after its inputs, and the key of their plan.
 *
 * Reads nodes. Writes the tape. */
#include <string.h>

#include "array/body.h"
#include "array/thread.h"
#include "base/memory.h"
#include "evaluate/tape.h"

_Static_assert((int)WB_ATTRIBUTES == (int)WB_MAX_DIMS, "the key copies sizes and attributes alike");

/* A node whose inputs are being put on the tape. */
struct wb_tape_step {
    wb_array *node;
    int32_t next; /* input */
};

static inline bool append(wb_tape *tape, wb_array *x, bool is_leaf) {
    if (!WB_GROW(tape->at, tape->count, tape->capacity)) return false;
    x->index = (uint32_t)tape->count;
    tape->at[tape->count++] = (wb_tape_node){.node = x, .marks = is_leaf ? WB_TAPE_LEAF : 0};
    if (x->device) tape->device = x->device;
    if (is_leaf) {
        tape->unusable += !x->buffer || wb_is_lost(x);
        return true;
    }
    tape->pending_moves += wb_is_pending_move(x);
    for (int k = 0; k < x->ninputs; k++) tape->at[x->inputs[k]->index].uses++;
    return true;
}

/* A leaf has its place at once, a node after its inputs. */
static inline bool enter(wb_tape *tape, wb_array *x, int64_t *depth) {
    x->stamp = tape->stamp;
    if (wb_is_plan_leaf(x)) return append(tape, x, true);
    if (!wb_reserve((void **)&tape->stack, &tape->stack_capacity, sizeof *tape->stack, *depth + 1))
        return false;
    tape->stack[(*depth)++] = (struct wb_tape_step){x, 0};
    return true;
}

/* The next of its inputs that was not met before; NULL: there is none. */
static inline wb_array *next_input(struct wb_tape_step *step, uint64_t stamp) {
    const wb_array *x = step->node;
    for (int32_t k = step->next; k < x->ninputs; k++) {
        if (x->inputs[k]->stamp == stamp) continue;
        step->next = k + 1;
        return x->inputs[k];
    }
    return NULL;
}

static bool walk(wb_tape *tape, wb_array *root) {
    int64_t depth = 0;
    wb_array *x = root->stamp == tape->stamp ? NULL : root;
    while (x || depth > 0) {
        if (x ? !enter(tape, x, &depth) : !append(tape, tape->stack[--depth].node, false))
            return false;
        x = depth > 0 ? next_input(&tape->stack[depth - 1], tape->stamp) : NULL;
    }
    return true;
}

/* Fails with the first node that has no value and cannot get one: what a body was given has one
 * only while the body runs, and a buffer may have been lost. */
static bool refuse_unusable(const wb_tape *tape) {
    for (int64_t i = 0; i < tape->count; i++) {
        const wb_array *x = tape->at[i].node;
        if (x->op == WB_OP_placeholder)
            (void)wb_fail(WB_ERROR_ARGUMENT,
                          "evaluate: an array depends on %s, which exists only inside the body of "
                          "a scan; return it there as an output",
                          wb_text_of(x));
        else if (wb_is_lost(x))
            (void)wb_fail_lost("evaluate", x);
        else
            continue;
        return false;
    }
    return true;
}

/* True if nothing but the next carry is that result. */
static bool is_carry_alone(const wb_body *body, int32_t carry) {
    for (int32_t r = 0; r < body->nresults; r++)
        if (r != carry && body->results[r] == body->results[carry]) return false;
    return true;
}

/* Of a body only the results are stored. A carry's memory is the next one's, unless that is an
 * output, too, which has a place for each step. */
static void mark_body(wb_tape *tape) {
    const wb_body *body = tape->body;
    for (int64_t i = 0; i < tape->count; i++) {
        const wb_array *x = tape->at[i].node;
        if (tape->at[i].marks & WB_TAPE_ROOT) tape->at[i].marks |= WB_TAPE_STORED;
        if (x->op != WB_OP_placeholder || x->attributes.part.number >= body->ncarries) continue;
        if (is_carry_alone(body, (int32_t)x->attributes.part.number))
            tape->at[i].marks |= WB_TAPE_DONATED;
    }
}

/* The thread's list of effects reads nothing. */
static void count_effects(wb_tape *tape) {
    const wb_thread *thread = wb_thread_get();
    for (int64_t i = 0; i < thread->effect_count; i++)
        if (thread->effects[i]->stamp == tape->stamp) tape->at[thread->effects[i]->index].uses++;
}

static bool is_costly_result(const wb_array *x) {
    return wb_is_scan_result(x) ||
           (x->op == WB_OP_result &&
            (x->inputs[0]->op == WB_OP_attention || x->inputs[0]->op == WB_OP_attention_backward));
}

static void mark_leaf(wb_tape_node *t) {
    const wb_array *x = t->node;
    const bool alone = x->refs == t->uses && !(t->marks & WB_TAPE_EXPOSED);
    if (alone && __atomic_load_n(&x->buffer->refs, __ATOMIC_RELAXED) == 1 + t->sharers &&
        !x->buffer->read_only && !(x->flags & WB_NODE_STRIDED))
        t->marks |= WB_TAPE_DONATED;
}

static void mark_view(wb_tape *tape, wb_tape_node *t) {
    wb_tape_node *base = &tape->at[t->node->inputs[0]->index];
    if (t->node->refs != t->uses)
        t->marks |= WB_TAPE_EXPOSED;
    else
        base->sharers += 1 + t->sharers;
    base->marks |= t->marks & WB_TAPE_EXPOSED;
}

/* True of an operation that is expensive enough to be stored the first time, if it may be needed
 * again. Each result of an operation of several results is stored by itself. */
static bool is_worth_storing(const wb_array *x) {
    const wb_kind kind = wb_op_rows[x->op].kind;
    const bool is_costly = kind == WB_KIND_CALL || kind == WB_KIND_REDUCE ||
                           (x->flags & WB_NODE_COMPUTED) || is_costly_result(x);
    const bool is_number = x->op == WB_OP_full || x->op == WB_OP_late || x->op == WB_OP_iota;
    return is_costly && !is_number && !wb_has_results(x);
}

static void mark_pending(wb_tape *tape, wb_tape_node *t) {
    const wb_array *x = t->node;
    const bool referred = x->refs != t->uses && !(x->flags & WB_NODE_INTERNED);
    const bool forgets =
        referred && (x->flags & (WB_NODE_FORGETS | WB_NODE_WEAK)) == WB_NODE_FORGETS;
    const bool leaves = forgets || ((t->marks & WB_TAPE_ROOT) && (x->flags & WB_NODE_LEFT));
    if (x->holds > 0 || (t->marks & WB_TAPE_ROOT) || forgets || (referred && is_worth_storing(x)))
        t->marks |= WB_TAPE_STORED;
    if (leaves && (x->flags & WB_NODE_SETTLED)) t->marks |= WB_TAPE_SETTLED;
    if (referred && !leaves) t->marks |= WB_TAPE_EXPOSED;
    if (!(t->marks & WB_TAPE_EXPOSED)) return;
    tape->keeps_recipes = true;
    for (int k = 0; k < x->ninputs; k++) tape->at[x->inputs[k]->index].marks |= WB_TAPE_EXPOSED;
    /* the gradient of a maximum compares with what was sent, not with what another plan may have
     * rounded differently */
    if (x->op == WB_OP_collective && !wb_is_evaluated(x->inputs[0]))
        tape->at[x->inputs[0]->index].marks |= WB_TAPE_STORED;
}

/* A node stays readable after the plan if anything but the tape refers to it, unless it loses
 * its recipe when it is done. Whatever an exposed node is made of has to keep its
 * values. */
static void mark(wb_tape *tape) {
    for (int64_t i = tape->count - 1; i >= 0; i--) {
        wb_tape_node *t = &tape->at[i];
        if (t->marks & WB_TAPE_LEAF)
            mark_leaf(t);
        else if (wb_is_evaluated(t->node))
            mark_view(tape, t);
        else
            mark_pending(tape, t);
    }
}

/* ---- the key ---- */

/* n of at most eight numbers; there is room for all of them, and to copy all takes less time. */
static uint64_t *put(uint64_t *word, int n, const int64_t numbers[WB_MAX_DIMS]) {
    memcpy(word, numbers, sizeof *numbers * WB_MAX_DIMS);
    return word + n;
}

static uint64_t *key_of(const wb_array *x, uint8_t marks, uint64_t *word) {
    const bool is_leaf = (marks & WB_TAPE_LEAF) != 0,
               is_strided = is_leaf && (x->flags & WB_NODE_STRIDED);
    const uint64_t shown =
        marks & (WB_TAPE_LEAF | WB_TAPE_STORED | WB_TAPE_DONATED | WB_TAPE_SETTLED);
    *word++ = (uint64_t)(is_leaf ? WB_OP_data : x->op) | (uint64_t)x->dtype << 8 |
              (uint64_t)x->ndim << 12 | shown << 16 | (uint64_t)is_strided << 24 |
              (uint64_t)((x->flags & WB_NODE_WEAK) != 0) << 25 |
              (uint64_t)(is_leaf ? 0 : x->ninputs) << 32;
    word = put(word, x->ndim, x->sizes);
    if (is_strided) word = put(word, x->ndim, x->strides);
    if (x->op == WB_OP_placeholder) *word++ = (uint64_t)x->attributes.part.number;
    if (is_leaf) return word;
    word = put(word, x->nattributes, x->attributes.words);
    if (x->payload && x->payload->words) {
        memcpy(word, wb_payload_words(x->payload), sizeof *word * (size_t)x->payload->words);
        word += x->payload->words;
    }
    int k = 0;
    for (; k + 1 < x->ninputs; k += 2)
        *word++ = x->inputs[k]->index | (uint64_t)x->inputs[k + 1]->index << 32;
    if (k < x->ninputs) *word++ = x->inputs[k]->index;
    return word;
}

/* Appends the words of another tape's key, and their number. */
static bool write_body_key(wb_tape *tape, const wb_tape *body) {
    if (!wb_reserve((void **)&tape->key, &tape->words_capacity, sizeof *tape->key,
                    tape->words + body->words + 1))
        return false;
    tape->key[tape->words++] = (uint64_t)body->words;
    memcpy(tape->key + tape->words, body->key, sizeof *tape->key * (size_t)body->words);
    tape->words += body->words;
    return true;
}

static bool write_results(wb_tape *tape, int count, wb_array *const *results) {
    if (!wb_reserve((void **)&tape->key, &tape->words_capacity, sizeof *tape->key,
                    tape->words + count))
        return false;
    for (int r = 0; r < count; r++) tape->key[tape->words++] = results[r]->index;
    return true;
}

static bool write_key(wb_tape *tape) {
    if (!wb_reserve((void **)&tape->key, &tape->words_capacity, sizeof *tape->key, 1)) return false;
    /* kernels reserve memory for each thread */
    tape->key[0] = (uint64_t)wb_threads() | (uint64_t)tape->device->number << 32 |
                   (uint64_t)(tape->body != NULL) << 31;
    tape->words = 1;
    for (int64_t i = 0; i < tape->count; i++) {
        const wb_array *x = tape->at[i].node;
        const int64_t most =
            1 + 3 * WB_MAX_DIMS + x->ninputs / 2 + 1 + (x->payload ? x->payload->words : 0);
        if (!wb_reserve((void **)&tape->key, &tape->words_capacity, sizeof *tape->key,
                        tape->words + most))
            return false;
        tape->words = key_of(x, tape->at[i].marks, tape->key + tape->words) - tape->key;
        wb_body *body = wb_body_of(x);
        if (!body) continue;
        const wb_tape *ordered = wb_body_order(body, tape->device);
        if (!ordered || !write_body_key(tape, ordered)) return false;
    }
    return true;
}

bool wb_tape_walk(wb_tape *tape, int count, wb_array *const *roots) {
    wb_thread *thread = wb_thread_get();
    if (!thread) return false;
    tape->stamp = ++thread->stamp;
    tape->count = tape->pending_moves = tape->unusable = 0;
    tape->keeps_recipes = false;
    tape->device = NULL;
    for (int i = 0; i < count; i++)
        if (roots[i] && !wb_is_evaluated(roots[i]) && !walk(tape, roots[i])) return false;
    return true;
}

/* Where roots are computed that belong to no device: numbers are f64, which not every device
 * has. */
static const wb_device *default_for(int count, wb_array *const *roots) {
    const wb_device *device = wb_default_device();
    for (int i = 0; i < count; i++)
        if (roots[i] && roots[i]->dtype == WB_F64 && !wb_device_has_f64(device))
            return wb_cpu_device();
    return device;
}

bool wb_tape_order(wb_tape *tape, int count, wb_array *const *roots) {
    for (int i = 0; i < count; i++)
        if (roots[i] && roots[i]->stamp == tape->stamp) {
            tape->at[roots[i]->index].marks |= WB_TAPE_ROOT;
            if (roots[i]->device) tape->device = roots[i]->device;
        }
    if (!tape->device) tape->device = default_for(count, roots);
    if (tape->unusable > 0 && !refuse_unusable(tape)) return false;
    count_effects(tape);
    mark(tape);
    if (wb_watches_numbers()) wb_numbers_store(tape);
    return write_key(tape);
}

/* ---- bodies ---- */

int64_t wb_tape_place(const wb_tape *tape, const wb_array *node) {
    if (node->index < tape->count && tape->at[node->index].node == node) return node->index;
    for (int64_t i = 0; i < tape->count; i++)
        if (tape->at[i].node == node) return i;
    return -1;
}

void wb_tape_end(wb_tape *tape) {
    wb_release(tape->at);
    wb_release(tape->key);
    wb_release(tape->stack);
}

static void tape_free(void *tape) {
    wb_tape_end(tape);
    wb_release(tape);
}

const wb_tape *wb_body_order(wb_body *body, const wb_device *device) {
    if (!body->tape) body->tape = wb_alloc(sizeof(wb_tape));
    wb_tape *tape = body->tape;
    body->tape_free = tape_free;
    if (!tape || !wb_tape_walk(tape, body->nresults, body->results)) return NULL;
    for (int32_t r = 0; r < body->nresults; r++)
        tape->at[body->results[r]->index].marks |= WB_TAPE_ROOT;
    tape->body = body;
    tape->device = device;
    mark_body(tape);
    return write_key(tape) && write_results(tape, body->nresults, body->results) ? tape : NULL;
}
