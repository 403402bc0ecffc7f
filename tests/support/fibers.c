#include "support/fibers.h"

#include <string.h>
#include <sys/mman.h>

#if !defined(__x86_64__) || defined(__CET__)
#include <ucontext.h>
#endif

enum { STACK_BYTES = 128 << 10, SHIFT_BYTES = 64, SHIFTS = 64 };

/* ---- changing stacks ---- */

#if defined(__x86_64__) && !defined(__CET__)

/* The registers that a called function keeps (System V ABI), on the stack that is left. swapcontext
 * would ask the kernel for the signal mask, which takes a hundred times as long. */
typedef void *context;
void fibers_switch(context *from, context to);
__asm__(".text\n"
        ".type fibers_switch, @function\n"
        ".hidden fibers_switch\n"
        ".globl fibers_switch\n"
        "fibers_switch:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size fibers_switch, .-fibers_switch\n");

static void context_make(context *c, char *stack, void (*start)(void)) {
    void **top = (void **)(void *)(stack + STACK_BYTES - 64);
    memset(top - 8, 0, 8 * sizeof *top);
    memcpy(top - 2, &start,
           sizeof start); /* after six registers; the stack is then as after a call */
    *c = top - 8;
}

static void context_switch(context *from, const context *to) { fibers_switch(from, *to); }

#else

typedef ucontext_t context;

static void context_make(context *c, char *stack, void (*start)(void)) {
    (void)getcontext(c);
    c->uc_stack.ss_sp = stack;
    c->uc_stack.ss_size = STACK_BYTES;
    c->uc_link = NULL;
    makecontext(c, start, 0);
}

static void context_switch(context *from, const context *to) { (void)swapcontext(from, to); }

#endif

/* ---- a group ---- */

/* Lanes that wait for each other. */
typedef struct meeting {
    int expected, arrived; /* lanes that have not ended, and how many of them wait here */
    int place;             /* of the first that came */
    unsigned generation;
} meeting;

typedef struct fiber {
    context at;
    int lane;
    const meeting *waits_for; /* NULL: it has nothing more to do */
    unsigned generation;      /* of the meeting, when it came */
} fiber;

static struct {
    fibers_item *item;
    void *user;
    int count, begun, ended;
    bool is_reversed;
    context main;
    fiber fibers[FIBERS_MOST];
    int fiber_count;
    fiber *current;
    meeting all, parts[FIBERS_MOST];
    int part_size; /* 0: nobody met in parts yet */
    bool has_ended[FIBERS_MOST];
    bool is_astray; /* two places were taken for one */
} group;

static void end_if_complete(meeting *m) {
    if (m->arrived < m->expected) return;
    m->arrived = 0;
    m->generation++;
}

static void leave(meeting *m) {
    m->expected--;
    end_if_complete(m);
}

static void meet(meeting *m, int place) {
    fiber *const self = group.current;
    if (m->arrived == 0) m->place = place;
    if (m->place != place) group.is_astray = true;
    self->waits_for = m;
    self->generation = m->generation;
    m->arrived++;
    end_if_complete(m);
    context_switch(&self->at, &group.main);
}

void fibers_meet(int place) { meet(&group.all, place); }

static void count_parts(int size) {
    group.part_size = size;
    memset(group.parts, 0, sizeof group.parts);
    for (int i = 0; i < group.count; i++) group.parts[i / size].expected += !group.has_ended[i];
}

void fibers_meet_part(int size, int place) {
    if (group.part_size == 0) count_parts(size);
    meet(&group.parts[group.current->lane / size], place);
}

/* ---- lanes ---- */

/* Takes lanes until there are none left; one that meets others keeps its stack, and another fiber
 * goes on. */
static void run_lanes(void) {
    fiber *const self = group.current;
    while (group.begun < group.count) {
        const int number = group.begun++;
        self->lane = group.is_reversed ? group.count - 1 - number : number;
        group.item(self->lane, group.user);
        group.ended++;
        group.has_ended[self->lane] = true;
        leave(&group.all);
        if (group.part_size) leave(&group.parts[self->lane / group.part_size]);
    }
    self->waits_for = NULL;
    context_switch(&self->at, &group.main);
}

/* Kept for the next group. Stacks end at different places in their pages, since a cache has room
 * for few of the same. */
static char *stack_of(int number) {
    static char *stacks[FIBERS_MOST];
    if (stacks[number]) return stacks[number];
    char *memory = mmap(NULL, STACK_BYTES + SHIFTS * SHIFT_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return NULL;
    return stacks[number] = memory + number % SHIFTS * SHIFT_BYTES;
}

static fiber *new_fiber(void) {
    char *stack = stack_of(group.fiber_count);
    fiber *f = &group.fibers[group.fiber_count];
    if (!stack) return NULL;
    context_make(&f->at, stack, run_lanes);
    group.fiber_count++;
    return f;
}

/* Those that met go on in the order in which they came. */
static fiber *next_fiber(void) {
    if (group.begun < group.count) return new_fiber();
    const int last = (int)(group.current - group.fibers);
    for (int i = 1; i <= group.fiber_count; i++) {
        fiber *f = &group.fibers[(last + i) % group.fiber_count];
        if (f->waits_for && f->waits_for->generation != f->generation) return f;
    }
    return NULL;
}

bool fibers_run(int count, bool is_reversed, fibers_item *item, void *user) {
    group.item = item, group.user = user;
    group.count = count, group.begun = group.ended = 0;
    group.is_reversed = is_reversed, group.is_astray = false;
    memset(group.has_ended, 0, sizeof group.has_ended);
    group.fiber_count = group.part_size = 0;
    group.all = (meeting){.expected = count};
    while (group.ended < count) {
        fiber *next = next_fiber();
        if (!next || group.is_astray) return false;
        group.current = next;
        context_switch(&group.main, &next->at);
    }
    return !group.is_astray;
}
