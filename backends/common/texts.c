/* Compiled texts of one device, in a list under a lock, counted by reference. A text that is not
 * used any more stays, because the next plan may need it again; unused ones are dropped only when
 * there are MOST_TEXTS. */
#include "texts.h"

#include <string.h>

enum { MOST_TEXTS = 512 };

uint64_t wb_text_hash_on(uint64_t from, const char *text) {
    for (const unsigned char *at = (const unsigned char *)text; *at; at++)
        from = (from ^ *at) * 0x100000001B3u;
    return from;
}

void wb_texts_init(wb_texts *texts) { (void)pthread_mutex_init(&texts->lock, NULL); }

static void release_text(wb_texts *texts, wb_text *text) {
    if (text->binary) texts->drop(texts->context, text->binary);
    texts->host->release(text->text);
    texts->host->release(text);
}

void wb_texts_release(wb_texts *texts) {
    while (texts->first) {
        wb_text *text = texts->first;
        texts->first = text->next;
        release_text(texts, text);
    }
    (void)pthread_mutex_destroy(&texts->lock);
}

static void drop_unused(wb_texts *texts) {
    for (wb_text **link = &texts->first; *link;) {
        wb_text *text = *link;
        if (text->references > 0) {
            link = &text->next;
            continue;
        }
        *link = text->next;
        release_text(texts, text);
        texts->count--;
    }
}

static wb_text *find(const wb_texts *texts, const wb_source *source) {
    for (wb_text *t = texts->first; t; t = t->next)
        if (t->key == source->key && strcmp(t->text, source->text) == 0) return t;
    return NULL;
}

static wb_text *build(wb_texts *texts, const wb_source *source) {
    const size_t text_bytes = strlen(source->text) + 1;
    wb_text *text = texts->host->alloc(sizeof *text);
    if (!text) return NULL;
    text->key = source->key;
    text->text = texts->host->alloc(text_bytes);
    if (text->text) {
        memcpy(text->text, source->text, text_bytes);
        text->binary = texts->build(texts->context, source);
    }
    if (text->binary) return text;
    release_text(texts, text);
    return NULL;
}

static wb_text *add(wb_texts *texts, const wb_source *source) {
    if (texts->count >= MOST_TEXTS) drop_unused(texts);
    wb_text *text = build(texts, source);
    if (!text) return NULL;
    text->next = texts->first;
    texts->first = text;
    texts->count++;
    return text;
}

wb_text *wb_texts_get(wb_texts *texts, const wb_source *source) {
    pthread_mutex_lock(&texts->lock);
    wb_text *text = find(texts, source);
    if (!text) text = add(texts, source);
    if (text) text->references++;
    pthread_mutex_unlock(&texts->lock);
    return text;
}

void wb_texts_put(wb_texts *texts, wb_text *text) {
    pthread_mutex_lock(&texts->lock);
    text->references--;
    pthread_mutex_unlock(&texts->lock);
}
