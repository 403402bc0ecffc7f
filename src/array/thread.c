/* Contexts: the list of all, making and releasing them (context.c says which one a thread uses),
 * objects that other threads free for them, and their nodes. Nodes come from blocks and are reused;
 * a released one is not reused for a while (longer in debug builds and with WEBER_DEBUG=mem), so
 * that a later use of it is an error with its name. */
#include "array/thread.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "array/state.h"
#include "base/memory.h"
#include "base/switch.h"
#include "device/device.h"
#include "platform/locks.h"

#if defined(__SANITIZE_ADDRESS__)
#define NODE_FROM_MALLOC 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define NODE_FROM_MALLOC 1
#endif
#endif
#ifndef NODE_FROM_MALLOC
#define NODE_FROM_MALLOC 0
#endif

enum { NODES_PER_BLOCK = 64 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static wb_thread *threads;     /* guarded by the lock THREADS */
static wb_array *orphan_nodes; /* free nodes of contexts that ended; linked by inputs */
static wb_array *blocks;       /* first nodes link the blocks, so that leak checkers find all */
_Thread_local wb_thread *wb_current_thread;
_Thread_local uint32_t wb_this_thread;

void wb_thread_use(wb_thread *thread) {
    wb_current_thread = thread;
    wb_this_thread = thread ? thread->number : 0;
    wb_device_of_context = thread ? thread->device : NULL;
}

const wb_device *wb_set_context_device(const wb_device *device) {
    wb_thread *thread = wb_thread_get();
    if (!thread) return NULL;
    const wb_device *before = thread->device;
    wb_device_of_context = thread->device = device;
    return before;
}

static void put_free(wb_thread *thread, wb_array *node) {
    *wb_node_link(node) = thread->free_nodes;
    thread->free_nodes = node;
}

/* ---- released nodes that rest ---- */

static int64_t resting_nodes(void) {
#if defined(NDEBUG) && !NODE_FROM_MALLOC
    static wb_switch memory = {.variable = "WEBER_DEBUG", .word = "mem"};
    return wb_is_on(&memory) ? WB_QUARANTINE : WB_RESTING_NODES;
#else
    return WB_QUARANTINE;
#endif
}

static void free_oldest(wb_thread *thread) {
    wb_array *node = thread->quarantine.oldest;
    wb_object_guard(node, sizeof *node, false);
    thread->quarantine.oldest = (wb_array *)(void *)node->object.next;
    thread->quarantine.count--;
    if (NODE_FROM_MALLOC && !wb_lists_leaks())
        wb_release_aligned(node);
    else
        put_free(thread, node);
}

static void rest(wb_thread *thread, wb_array *node) {
    if (thread->quarantine.count == 0)
        thread->quarantine.oldest = node;
    else
        thread->quarantine.newest->object.next = &node->object;
    thread->quarantine.newest = node;
    wb_object_guard(node, sizeof *node, true);
    if (++thread->quarantine.count > resting_nodes()) free_oldest(thread);
}

static void give_nodes_to_all(wb_thread *thread) {
    while (thread->quarantine.count > 0) free_oldest(thread);
    while (thread->free_nodes) {
        wb_array *node = thread->free_nodes;
        thread->free_nodes = *wb_node_link(node);
        *wb_node_link(node) = orphan_nodes;
        orphan_nodes = node;
    }
}

/* What was made outside any scope belongs to the context, and ends with it. */
static void let_go(wb_object *object) {
    if (!object) return;
    object->scope_slot = 0;
    if (object->klass == &wb_array_class)
        wb_unref((wb_array *)(void *)object);
    else
        object->klass->free(object);
}

/* Of the context that this thread uses. */
static void empty(wb_thread *thread) {
    while (thread->scope_count) (void)wb_scope_close();
    (void)wb_state_settle(); /* it takes the writes back if it fails */
    wb_thread_empty_inbox(thread);
    while (thread->effect_count) wb_unref(thread->effects[--thread->effect_count]);
    while (thread->entry_count) let_go(thread->entries[--thread->entry_count]);
    for (int i = 0; i < WB_CONSTANTS; i++) {
        if (!thread->constants[i]) continue;
        thread->live_nodes++; /* a constant is not counted while it is cached */
        wb_unref(thread->constants[i]);
    }
    for (int i = 0; i < WB_ROOM_STATES; i++)
        if (thread->rooms[i].state && thread->rooms[i].free)
            thread->rooms[i].free(thread->rooms[i].state);
}

void wb_thread_end(wb_thread *thread) {
    wb_thread *before = wb_current_thread;
    wb_thread_use(thread);
    empty(thread);
    wb_lock_take(WB_LOCK_THREADS);
    give_nodes_to_all(thread);
    *thread->previous = thread->next;
    if (thread->next) thread->next->previous = thread->previous;
    wb_live_arrays(thread->live_nodes);
    wb_lock_give(WB_LOCK_THREADS);
    wb_release(thread->entries);
    wb_release(thread->scope_starts);
    wb_release(thread->survivors);
    wb_release(thread->writes);
    wb_release(thread->effects);
    wb_release(thread->inbox);
    wb_release(thread);
    wb_thread_use(before == thread ? NULL : before);
}

void *wb_room_state_of(wb_thread *thread, wb_room_state room, size_t size_bytes,
                       void (*free)(void *state)) {
    if (!thread) return NULL;
    if (!thread->rooms[room].state) thread->rooms[room].state = wb_alloc(size_bytes);
    thread->rooms[room].free = free;
    return thread->rooms[room].state;
}

/* ---- leaks ---- */

/* Arrays of wb_keep or wb_take that no object owns. */
static void list_kept_arrays(void) {
    for (const wb_array *block = blocks; block; block = block->own_inputs[0])
        for (int i = 1; i < NODES_PER_BLOCK; i++) {
            const wb_array *x = &block[i];
            if (x->object.klass != &wb_array_class || x->keeps + x->taken == 0) continue;
            wb_log_always("leak: array %s of %s, made by %s, was %s and never freed", wb_text_of(x),
                          wb_dtype_name((wb_dtype)x->dtype),
                          x->buffer && x->buffer->tag ? x->buffer->tag : wb_op_name((wb_op)x->op),
                          x->keeps ? "kept" : "taken");
        }
}

/* What scopes own goes first: gradients hold their model. */
static void list_leaks(void) {
    wb_thread *thread = wb_current_thread;
    while (thread && thread->entry_count) let_go(thread->entries[--thread->entry_count]);
    wb_objects_list_leaks();
    list_kept_arrays();
}

static void join_list(wb_thread *thread) {
    thread->next = threads, thread->previous = &threads;
    if (threads) threads->previous = &thread->next;
    threads = thread;
}

/* A forked child has one thread: the contexts of other threads are removed, those that belong to no
 * thread stay. */
static void in_child(void) {
    wb_thread *next = threads;
    const wb_thread *own = wb_thread_own();
    threads = NULL;
    for (wb_thread *t = next; t; t = next) {
        next = t->next;
        if (!t->is_own || t == own) join_list(t);
    }
}

static void begin(void) {
    static const wb_fork_hooks hooks = {.in_child = in_child};
    wb_lock_on_fork(WB_LOCK_THREADS, &hooks);
    wb_check_variables();
    wb_note_class(&wb_array_class);
    if (wb_lists_leaks()) (void)atexit(list_leaks);
}

wb_thread *wb_thread_make(bool is_own) {
    static uint32_t last;
    (void)pthread_once(&once, begin);
    wb_thread *thread = wb_alloc(sizeof *thread);
    if (!thread) return NULL;
    thread->is_own = is_own;
    wb_lock_take(WB_LOCK_THREADS);
    thread->number = ++last;
    join_list(thread);
    wb_lock_give(WB_LOCK_THREADS);
    return thread;
}

enum { GONE, OF_A_THREAD, OF_NO_THREAD };

static int kind_of(uint32_t number) {
    int kind = GONE;
    wb_lock_take(WB_LOCK_THREADS);
    for (const wb_thread *t = threads; t && !kind; t = t->next)
        if (t->number == number) kind = t->is_own ? OF_A_THREAD : OF_NO_THREAD;
    wb_lock_give(WB_LOCK_THREADS);
    return kind;
}

bool wb_is_to_enter(uint32_t owner) { return kind_of(owner) == OF_NO_THREAD; }

bool wb_claim_owner(uint32_t *owner) {
    const wb_thread *thread = wb_thread_get();
    uint32_t before = __atomic_load_n(owner, __ATOMIC_ACQUIRE);
    if (!thread || before == thread->number) return thread != NULL;
    if (before && kind_of(before) != GONE) return false;
    return __atomic_compare_exchange_n(owner, &before, thread->number, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
}

bool wb_thread_hand_back(uint32_t owner, void *object) {
    bool taken = false;
    wb_lock_take(WB_LOCK_THREADS);
    for (wb_thread *t = threads; t; t = t->next) {
        if (t->number != owner) continue;
        taken = true;
        if (!WB_GROW(t->inbox, t->inbox_count, t->inbox_capacity)) break;
        t->inbox[t->inbox_count] = object;
        __atomic_store_n(&t->inbox_count, t->inbox_count + 1, __ATOMIC_RELEASE);
    }
    wb_lock_give(WB_LOCK_THREADS);
    return taken;
}

void wb_thread_empty_inbox(wb_thread *thread) {
    if (__atomic_load_n(&thread->inbox_count, __ATOMIC_ACQUIRE) == 0) return;
    wb_lock_take(WB_LOCK_THREADS);
    void **list = thread->inbox;
    const int64_t count = thread->inbox_count;
    thread->inbox = NULL, thread->inbox_capacity = 0;
    __atomic_store_n(&thread->inbox_count, 0, __ATOMIC_RELEASE);
    wb_lock_give(WB_LOCK_THREADS);
    for (int64_t i = 0; i < count; i++) wb_free(list[i]);
    wb_release(list);
}

wb_live_counts wb_live(void) {
    wb_live_counts counts = wb_live_shared();
    wb_lock_take(WB_LOCK_THREADS);
    for (const wb_thread *t = threads; t; t = t->next)
        counts.arrays += __atomic_load_n(&t->live_nodes, __ATOMIC_RELAXED);
    wb_lock_give(WB_LOCK_THREADS);
    return counts;
}

static bool refill(wb_thread *thread) {
    wb_lock_take(WB_LOCK_THREADS);
    thread->free_nodes = orphan_nodes;
    orphan_nodes = NULL;
    wb_lock_give(WB_LOCK_THREADS);
    if (thread->free_nodes) return true;
    wb_array *block = wb_alloc_aligned(NODES_PER_BLOCK *
                                       sizeof *block); /* never freed: nodes move between threads */
    if (!block) return false;
    wb_lock_take(WB_LOCK_THREADS);
    *wb_node_link(block) = blocks;
    blocks = block;
    wb_lock_give(WB_LOCK_THREADS);
    for (int i = 1; i < NODES_PER_BLOCK; i++) put_free(thread, &block[i]);
    return true;
}

bool wb_is_node(const void *place) {
    const wb_array *found = NULL;
    wb_lock_take(WB_LOCK_THREADS);
    for (const wb_array *block = blocks; block && !found; block = block->own_inputs[0]) {
        const uintptr_t inside = (uintptr_t)place - (uintptr_t)block;
        const bool is_here = inside < NODES_PER_BLOCK * sizeof *block && inside >= sizeof *block;
        if (is_here && inside % sizeof *block == 0) found = place;
    }
    wb_lock_give(WB_LOCK_THREADS);
    return found && found->object.klass == &wb_array_class && found->refs > 0;
}

/* With sanitizers no node is ever free. */
wb_array *wb_node_take_anew(wb_thread *thread) {
    if (!NODE_FROM_MALLOC || wb_lists_leaks()) return refill(thread) ? wb_node_take(thread) : NULL;
    wb_array *node = wb_alloc_aligned(sizeof *node);
    if (node) __atomic_store_n(&thread->live_nodes, thread->live_nodes + 1, __ATOMIC_RELAXED);
    return node;
}

void wb_node_give(wb_thread *thread, wb_array *node) {
    __atomic_store_n(&thread->live_nodes, thread->live_nodes - 1, __ATOMIC_RELAXED);
    wb_object_mark_node(&node->object);
    rest(thread, node);
}
