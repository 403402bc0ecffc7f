/* The thread's buffers, made at first use and freed by the destructor of a pthread key. Where there
 * is no memory for them, all such threads share one static buffer. */
#include "base/scratch.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct buffers {
    char *at[WB_SCRATCH_COUNT];
} buffers;

static _Thread_local buffers *own;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;

static void thread_ends(void *ending) {
    buffers *b = ending;
    for (int i = 0; i < WB_SCRATCH_COUNT; i++) free(b->at[i]);
    free(b);
    own = NULL;
}

static void make_key(void) { (void)pthread_key_create(&key, thread_ends); }

/* Not through base/memory.h, whose errors have their texts in these buffers. */
static buffers *begin(void) {
    own = calloc(1, sizeof *own);
    (void)pthread_once(&once, make_key);
    if (own) (void)pthread_setspecific(key, own);
    return own;
}

char *wb_scratch(wb_scratch_use use, size_t size_bytes) {
    static char shared[WB_SCRATCH_MOST];
    buffers *b = own ? own : begin();
    if (b && !b->at[use]) b->at[use] = calloc(1, size_bytes);
    return b && b->at[use] ? b->at[use] : shared;
}
