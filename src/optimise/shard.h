/* States that are divided among the ranks (ZeRO stage 1). */
#ifndef WB_OPTIMISE_SHARD_H
#define WB_OPTIMISE_SHARD_H

#include "optimise/optimiser.h"

/* How the state of a group of this rule is divided, for an array x of it; `groups` come before it.
 * Fills group->division and group->owner. */
void wb_divide(const wb_optimiser *o, int64_t groups, const wb_rule *rule, const wb_array *x,
               wb_tie_group *group);

/* Whether this rank keeps state for the group. */
bool wb_keeps_state(const wb_tie_group *group);

/* The sizes that a state of this group has, for an array x of it; how many dimensions. */
int wb_state_sizes(const wb_tie_group *group, const wb_array *x, int64_t *sizes);

/* This rank's part of x in the group's division: x, or, where that is cut, its elements r c to
 * (r + 1) c - 1, with c = ceil(count / ranks) and zeros past the end. */
wb_array *wb_part_of(const wb_tie_group *group, wb_array *x);

/* Columns of parts, of which sums are made: x (count) with zeros appended, as (c, ranks). */
wb_array *wb_columns_of(wb_array *x);

/* The new parameters of all groups, members[first].fresh, which one rank has, or each a part of,
 * become whole on all; the old ones where what is watched is not finite. */
bool wb_join_parts(wb_optimiser *o, wb_array *watched);

/* State k of the group, whole on every rank, which all have to call; not evaluated. */
wb_array *wb_whole_state(const wb_optimiser *o, const wb_tie_group *group, int k);

/* Rank 0 keeps all states whole until they are dropped; all ranks have to call. Nothing where
 * states are not divided, or are gathered. */
wb_status wb_gather_states(wb_optimiser *o);
void wb_drop_gathered(wb_optimiser *o);
/* Whether this rank has whole states, divided or not, once they are gathered. */
bool wb_has_whole_states(const wb_optimiser *o);
/* State k of group i for a file. */
wb_array *wb_state_for_file(const wb_optimiser *o, int64_t i, int k);

/* Whether steps get ranges of the gradients' sums, and not the sums: a norm over all of them is
 * that of whole arrays, with the bits that it has so. */
bool wb_sums_are_cut(const wb_optimiser *o);

#endif
