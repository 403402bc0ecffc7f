/* Makes, counts and releases the bodies of scans. A body holds a reference to each of its
 * placeholders and results; the results hold the nodes between them. */
#include "array/body.h"

#include "base/memory.h"

int32_t wb_body_same(const wb_body *body, int32_t r) {
    for (int32_t j = body->ncarries; j < body->nresults; j++)
        if (body->results[j] == body->results[r]) return j;
    for (int32_t i = 0; i < r; i++)
        if (body->results[i] == body->results[r]) return i;
    return r;
}

static void body_free(wb_payload *payload) {
    wb_body *body = (wb_body *)(void *)payload;
    for (int32_t i = 0; body->given && i < wb_body_given(body); i++) wb_unref(body->given[i]);
    for (int32_t i = 0; body->results && i < body->nresults; i++) wb_unref(body->results[i]);
    if (body->tape) body->tape_free(body->tape);
    wb_release(body->given);
    wb_release(body->results);
    wb_release(body);
}

wb_body *wb_body_new(int32_t ngiven, int32_t nresults) {
    wb_body *body = wb_alloc(sizeof *body);
    if (!body) return NULL;
    body->payload = (wb_payload){.refs = 1, .free = body_free};
    body->given = wb_alloc(sizeof *body->given * (size_t)(ngiven + 1));
    body->results = wb_alloc(sizeof *body->results * (size_t)(nresults + 1));
    if (body->given && body->results) return body;
    wb_body_unref(body);
    return NULL;
}

wb_body *wb_body_ref(wb_body *body) {
    body->payload.refs++;
    return body;
}

void wb_body_unref(wb_body *body) {
    if (body) wb_payload_unref(&body->payload);
}
