/* Optimisers: private side of weber/optimise.h. */
#ifndef WB_OPTIMISE_OPTIMISER_H
#define WB_OPTIMISE_OPTIMISER_H

#include <weber/optimise.h>

#include "array/array.h"
#include "base/saved.h"
#include "optimise/gradients.h"

enum { WB_MAX_STATES = 2 };

/* Slots over the same numbers, with one state. */
typedef struct wb_tie_group {
    wb_array *states[WB_MAX_STATES]; /* held */
    int64_t steps;                   /* updates that this group took part in */
    int64_t first;                   /* its first member; the others follow by next */
} wb_tie_group;

/* A trainable slot of the model. */
typedef struct wb_member {
    wb_array **slot;
    wb_array *seen; /* what the slot held after the last step; only compared */
    int64_t group;
    int64_t next;    /* the next member of the group, or -1 */
    bool is_view;    /* another array than the first member's: a view of it */
    wb_array *fresh; /* of the step that is being made */
} wb_member;

struct wb_optimiser {
    wb_object object;
    wb_rule rule;
    double clip_norm;
    wb_layer *model; /* owned */
    int64_t step;
    wb_member *members;
    int64_t member_count;
    wb_tie_group *groups;
    int64_t group_count;
    wb_array **fresh_states; /* WB_MAX_STATES per group, of the step that is being made */
    wb_array **sums;         /* the gradient of each group */
    /* of the step's plan: root_room of the optimiser's own, state_room of layers' state writes */
    wb_array **roots;
    int64_t root_room;
    int state_room;
    /* late numbers of the step, shared by the groups that have taken late_steps of them */
    int64_t late_steps;
    wb_array *rate, *correction, *decay;
};

/* A rule by name, for files: its arrays of state for a parameter, as weber/optimise.h calls them,
 * and its settings. */
typedef struct wb_rule_row {
    const char *name;
    const char *states[WB_MAX_STATES];
    const wb_saved_number *settings; /* of wb_rule */
    int setting_count;
} wb_rule_row;
const wb_rule_row *wb_rule_row_of(const wb_rule *rule);

/* Arrays of state that a rule keeps for a parameter. */
int wb_rule_states(const wb_rule *rule);
wb_status wb_rule_check(const char *function, const wb_rule *rule);

/* Makes groups anew from what the slots hold, keeping the states of arrays that are in their
 * places. */
wb_status wb_optimiser_group(wb_optimiser *optimiser);

wb_status wb_optimiser_hand_over(void *optimiser);
bool wb_is_optimiser(const void *object);
/* True if it is there and one; else an error names the function. */
bool wb_optimiser_check(const char *function, const wb_optimiser *optimiser);

/* wb_move and wb_device_of for optimisers: state and model together (move.c). */
wb_status wb_optimiser_move(const wb_to_desc *desc);
const wb_device *wb_optimiser_device(const void *optimiser);

/* Takes back the count of a step that the guard stopped. */
void wb_optimiser_uncount(wb_optimiser *optimiser);

#endif
