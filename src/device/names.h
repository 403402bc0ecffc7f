/* Names of backends, as people write them, and lists of names that functions return. */
#ifndef WB_DEVICE_NAMES_H
#define WB_DEVICE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* True if the names are equal without regard to case. */
bool wb_same_name(const char *a, const char *b);

/* The most similar name in a list (ended by NULL); NULL: none is similar. */
const char *wb_nearest_name(const char *name, const char *const *names);

/* Writes "CUDA, AMDGPU, CPU", always ended by 0; cut if the text is too short. */
void wb_join_names(char *text, size_t size_bytes, const char *const *names);

/* A list, ended by NULL, that was returned to a user and so is never released: a change makes a new
 * one. The registry's lock guards all lists. */
typedef struct wb_names wb_names;

const char *const *wb_names_texts(const wb_names *names);

/* Replaces the list by one of these texts, unless it is equal. When out of memory it stays as it
 * is. */
void wb_names_set(wb_names **names, int count, const char *const *texts);

/* Replaces the list by one with this text added at the end, unless it is there. */
void wb_names_add(wb_names **names, const char *text);

#endif
