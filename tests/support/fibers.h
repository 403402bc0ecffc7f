/* Items of a group as fibers of one thread, for kernels that run on the CPU.
 *
 *     static void item(int lane, void *user) { ...; fibers_meet(__LINE__); ... }
 *     fibers_run(256, item, &arguments); // item(0), ...: what meets nobody has no stack
 *
 * One group at a time in the process. */
#ifndef WB_TESTS_FIBERS_H
#define WB_TESTS_FIBERS_H

#include <stdbool.h>

enum { FIBERS_MOST = 1024 };

typedef void fibers_item(int lane, void *user);

/* Runs item for the lanes 0 .. count - 1 (FIBERS_MOST at most), the last one first where
 * is_reversed. False: no lane can go on, since those it waits for wait elsewhere, or there is no
 * memory for a stack; the group is left as it stands. */
bool fibers_run(int count, bool is_reversed, fibers_item *item, void *user);

/* Inside item: waits until all lanes that have not ended are here, those of the group or those of
 * its part of `size` lanes (a warp); parts of a group are of one size. place: where in the text,
 * which has to be the same for all of them. */
void fibers_meet(int place);
void fibers_meet_part(int size, int place);

#endif
