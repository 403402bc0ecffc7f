/* States that are divided among the ranks (ZeRO stage 1). */
#ifndef WB_OPTIMISE_SHARD_H
#define WB_OPTIMISE_SHARD_H

#include "optimise/optimiser.h"

/* Decides how the state of a group with this rule and array x is divided, after `groups` earlier
 * groups. Fills group->division and group->owner. */
void wb_divide(const wb_optimiser *o, int64_t groups, const wb_rule *rule, const wb_array *x,
               wb_tie_group *group);

/* Whether this rank keeps state for the group. */
bool wb_keeps_state(const wb_tie_group *group);

/* Writes the sizes of a state of this group on this rank, for its array x. Returns the number of
 * dimensions. */
int wb_state_sizes(const wb_tie_group *group, const wb_array *x, int64_t *sizes);

/* This rank's part of x: x itself, or, if the group is cut, its elements r c to (r + 1) c - 1, with
 * r the rank, c = ceil(count / ranks), and zeros past the end. */
wb_array *wb_part_of(const wb_tie_group *group, wb_array *x);

/* x (count) with zeros appended, as (c, ranks): column r is rank r's part. */
wb_array *wb_columns_of(wb_array *x);

/* Makes the new parameters of all groups (members[first].fresh) whole on all ranks, from the ranks
 * that have them or parts of them. If what is watched is not finite they become the old ones. */
bool wb_join_parts(wb_optimiser *o, wb_array *watched);

/* State k of the group, whole on every rank; not evaluated. A collective. */
wb_array *wb_whole_state(const wb_optimiser *o, const wb_tie_group *group, int k);

/* Rank 0 keeps all states whole until wb_drop_gathered. Does nothing if states are not divided, or
 * were gathered. A collective. */
wb_status wb_gather_states(wb_optimiser *o);
void wb_drop_gathered(wb_optimiser *o);
/* Whether this rank has whole states: they are not divided, or were gathered here. */
bool wb_has_whole_states(const wb_optimiser *o);
/* State k of group i for a file. */
wb_array *wb_state_for_file(const wb_optimiser *o, int64_t i, int k);

/* Whether a step gets only a range of each gradient's sum. Not if it needs the norm of all
 * gradients, which is computed from whole arrays so that its bits are the same. */
bool wb_sums_are_cut(const wb_optimiser *o);

#endif
