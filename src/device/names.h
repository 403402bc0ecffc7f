/* Names of backends, as people write them, and lists of texts that are handed out. */
#ifndef WB_DEVICE_NAMES_H
#define WB_DEVICE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* True for the same letters in any case. */
bool wb_same_name(const char *a, const char *b);

/* The name of a list (ended by NULL) that looks most like the given one; NULL: none does. */
const char *wb_nearest_name(const char *name, const char *const *names);

/* "CUDA, AMDGPU, CPU", always ended; cut where the text is too short. */
void wb_join_names(char *text, size_t size_bytes, const char *const *names);

/* A list ended by NULL that was handed out, and so never goes away: another one takes its place.
 * The registry's lock guards all lists. */
typedef struct wb_names wb_names;

const char *const *wb_names_texts(const wb_names *names);

/* Puts a list of these texts in its place, unless it has just these. Out of memory: it stays as it
 * is. */
void wb_names_set(wb_names **names, int count, const char *const *texts);

/* The same with one more text at its end, unless it has that. */
void wb_names_add(wb_names **names, const char *text);

#endif
