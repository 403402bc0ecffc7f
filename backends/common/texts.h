/* Compiled texts of a device. Texts do not depend on sizes, so there are few: kernels with the same
 * text share the compiled program, and unused ones are kept, up to a number. */
#ifndef WB_COMMON_TEXTS_H
#define WB_COMMON_TEXTS_H

#include <pthread.h>

#include <weber/plugin.h>

typedef struct wb_text {
    struct wb_text *next;
    uint64_t key;
    char *text;
    void *binary; /* the result of build */
    int references;
} wb_text;

typedef struct wb_texts {
    const wb_host *host;
    void *context;                                          /* the first argument of both: */
    void *(*build)(void *context, const wb_source *source); /* NULL with an error recorded */
    void (*drop)(void *context, void *binary); /* may still be used by what is queued */
    pthread_mutex_t lock;                      /* guards the rest; held during build, drop */
    wb_text *first;
    int count;
} wb_texts;

/* host, context, build and drop are set before. */
void wb_texts_init(wb_texts *texts);
void wb_texts_release(wb_texts *texts);

/* The text's binary, with one reference more. NULL with an error recorded. */
wb_text *wb_texts_get(wb_texts *texts, const wb_source *source);
void wb_texts_put(wb_texts *texts, wb_text *text);

/* FNV-1a over bytes up to the zero, going on from `from`; WB_TEXT_HASH begins. For what names
 * binaries in caches. */
#define WB_TEXT_HASH 0xCBF29CE484222325u
uint64_t wb_text_hash_on(uint64_t from, const char *text);

#endif
