/* Optimisers: private side of weber/optimise.h. */
#ifndef WB_OPTIMISE_OPTIMISER_H
#define WB_OPTIMISE_OPTIMISER_H

#include <weber/optimise.h>

#include "array/array.h"
#include "optimise/gradients.h"
#include "optimise/rules.h"

/* Groups with the same rule, settings and number of steps: they share the node step_numbers. */
typedef struct wb_cohort {
    wb_rule rule;
    wb_array *count; /* held: steps that counted, i32, one number; NULL: the optimiser's, which it
                        has all taken part in */
    wb_array *fresh_count, *numbers; /* of the step that is being made */
    int64_t steps;                   /* the value of count, as read by wb_optimiser_count */
} wb_cohort;

/* Which rank has the state of an array (shard.c). */
typedef enum wb_division {
    WB_DIVIDED_NOT,   /* each rank has all of it */
    WB_DIVIDED_CUT,   /* each rank has a range of it */
    WB_DIVIDED_WHOLE, /* one rank has it, the others nothing */
} wb_division;

/* Slots that are tied, with one state. */
typedef struct wb_tie_group {
    wb_array *states[WB_RULE_ALL_STATES]; /* held */
    wb_division division;
    int owner;           /* WB_DIVIDED_WHOLE: the rank that has the state */
    wb_dtype state_type; /* type for which states are made, also if another rank has them */
    int ndim;
    int64_t sizes[WB_MAX_DIMS];
    int64_t cohort;
    bool is_frozen;
    bool is_marked; /* marked by wb_optimiser_mark */
    int64_t first;  /* its first member; the others follow by next */
} wb_tie_group;

/* A trainable slot of the model. */
typedef struct wb_member {
    wb_array **slot;
    wb_array *seen;            /* what the slot held after the last step; only compared */
    const wb_layer_list *list; /* whose item number `place`, from 0, has the slot; NULL: none */
    int64_t place;
    int64_t group;
    int64_t next;    /* the next member of the group, or -1 */
    bool is_view;    /* its array is a view of the first member's */
    int part;        /* index in `parts` of the rule that it has, or -1: the optimiser's */
    wb_array *fresh; /* of the step that is being made */
} wb_member;

/* A rule for the parameters that a path matches. */
typedef struct wb_part_rule {
    char *path;
    wb_rule rule;
} wb_part_rule;

/* Sums over consecutive parts of a step (mean.c). */
typedef struct wb_partial {
    wb_array **arrays; /* held */
    int64_t count, parts;
} wb_partial;
enum { WB_PARTIALS = 32 }; /* enough for 2^32 micro-batches */

struct wb_optimiser {
    wb_object object;
    wb_rule rule;
    double clip_norm;
    bool is_distributed; /* its steps are those of all ranks, two or more */
    /* draws are those of all parts' batches together; also on one rank with .distributed */
    bool draws_for_all;
    bool may_miss;   /* gradients may be missing on some ranks */
    bool is_divided; /* states are divided among the ranks */
    /* number of steps; compare_every 0: never; compared_at -1: not yet */
    int64_t compare_every, compared_at;
    wb_array **gathered; /* WB_RULE_ALL_STATES per group; held: on rank 0, or NULL */
    int64_t gathered_count;
    int64_t micro_batches; /* micro-batches of each batch; 0: not split, the step is one plan */
    wb_partial partials[WB_PARTIALS]; /* in a step: sums of the micro-batches so far */
    int64_t partial_count;
    struct wb_sharing *sharing;        /* what the partial sums consist of */
    struct wb_part_hidden *hidden;     /* in a step: hidden states that its parts left */
    wb_part_rule parts[WB_PATH_RULES]; /* unused entries have no path */
    wb_layer *model;                   /* owned */
    int64_t step;                      /* steps made, including those that the guard skipped */
    wb_array *count, *fresh_count;     /* held: number of good steps, i32 */
    int64_t counted, counted_at;       /* value of count when step was counted_at; -1: not read */
    wb_dtype send;                     /* the type in which ranks send f32 gradients */
    wb_dtype compute;    /* the type in which losses see f32 parameters; f32: unchanged */
    wb_array ***written; /* slots of states that the step being made writes */
    int64_t written_count, written_room;
    double first_scale;              /* of the loss scale; 0: there is none */
    int64_t scale_interval;          /* good steps from one growth to the next */
    wb_array *scale, *fresh_scale;   /* held: the loss scale, f32; or NULL */
    wb_array *streak, *fresh_streak; /* held: number of good steps since the scale changed, i32 */
    wb_cohort *cohorts;
    int64_t cohort_count, cohort_capacity;
    wb_member *members;
    int64_t member_count;
    int64_t list_moves; /* wb_list_moves when the members were listed */
    wb_tie_group *groups;
    int64_t group_count;
    wb_array **fresh_states; /* WB_RULE_ALL_STATES per group, of the step that is being made */
    wb_array **sums;         /* the gradient of each group */
    wb_array **roots;        /* of the step's plan */
    int64_t root_room;
    /* of the step that is being made, over all its parts */
    wb_array *mean_loss, *mean_watched, *mean_divisor;
    /* of that step: number of written states that the guard checks after the evaluation, and the
     * number that it watches */
    int64_t rest;
    wb_array *watched;
    int settled_count; /* how many of the roots slots will hold */
    wb_aux_list aux;   /* held: auxiliary outputs of the last step's loss */
    /* held: the loss's divisor, over all parts; NULL: the number of observations */
    wb_array *divisor;
    int64_t observations;          /* of the last step on this rank */
    bool has_stepped, is_compared; /* turns.c */
    bool is_stepping;              /* in wb_train_step */
};

/* Lists the slots of all arrays that the optimiser holds, in any order, unless slots is NULL.
 * Returns how many. */
int64_t wb_optimiser_slots(wb_optimiser *optimiser, wb_array ***slots);

/* Fills in the optimiser's precision, on the parameters' device; false with an error. */
bool wb_optimiser_precision(wb_optimiser *optimiser, wb_precision *precision);
/* Makes the recipe of the next loss scale, if there is one; false on failure. */
bool wb_optimiser_next_scale(wb_optimiser *optimiser, wb_array *watched);
/* Replaces scale and streak by these evaluated numbers. */
void wb_optimiser_set_scale(wb_optimiser *optimiser, wb_array *scale, wb_array *streak);

/* Replaces aux by the auxiliary outputs of these gradients' loss. */
void wb_optimiser_hold_aux(wb_optimiser *optimiser, const wb_gradients *gradients);
/* The same for the divisor and the number of observations. */
void wb_optimiser_hold_divisor(wb_optimiser *optimiser, const wb_gradients *gradients);
/* Releases both. */
void wb_optimiser_forget_loss(wb_optimiser *optimiser);
/* The weight of the last step in a mean over several. NaN with an error. */
double wb_optimiser_weight(const wb_optimiser *optimiser);

/* Reads the counts of good steps of all cohorts, and the optimiser's own. */
wb_status wb_optimiser_count(wb_optimiser *optimiser);
/* A number of steps as an array on the device of `beside`, not evaluated. */
wb_array *wb_optimiser_new_count(int64_t steps, const wb_array *beside);
/* Sets counts and cohorts from a file. wb_optimiser_reserve_cohorts makes room before; then the
 * rest cannot fail. */
bool wb_optimiser_reserve_cohorts(wb_optimiser *optimiser, int64_t count);
void wb_optimiser_set_cohorts(wb_optimiser *optimiser, wb_array *count, int64_t cohort_count,
                              const wb_cohort *cohorts);
static inline const wb_rule *wb_group_rule(const wb_optimiser *o, const wb_tie_group *group) {
    return &o->cohorts[group->cohort].rule;
}

/* True if the pattern matches a trainable array of the model. */
bool wb_path_is_there(wb_layer *model, const char *pattern);
/* Copies the settings of a rule with the same rows into all of the optimiser's rules. */
void wb_optimiser_take_settings(wb_optimiser *optimiser, const wb_rule *rule);

/* Makes the groups again and marks those with a member that path matches (NULL: all); no match is
 * an error. */
wb_status wb_optimiser_mark(const char *function, wb_optimiser *optimiser, const char *path);

/* Multiplies a setting by factor, but not below least, in each rule that has it; an error if none
 * has it. */
wb_status wb_optimiser_scale(const char *function, wb_optimiser *optimiser, const char *setting,
                             double factor, double least);

/* Makes the groups again from the arrays in the slots, and keeps the states of arrays that are
 * still there. */
wb_status wb_optimiser_group(wb_optimiser *optimiser);
/* The same where slots have moved since then. To be called before anything looks into a slot. */
wb_status wb_optimiser_follow(wb_optimiser *optimiser);
/* Takes what is in the slots now for what the states belong to. */
void wb_optimiser_see(wb_optimiser *optimiser);

wb_status wb_optimiser_hand_over(void *optimiser);
bool wb_is_optimiser(const void *object);
/* True if it is an optimiser that this thread may use; else an error names the function. */
bool wb_optimiser_check(const char *function, const wb_optimiser *optimiser);

/* wb_move and wb_device_of for optimisers: state and model together (move.c). */
wb_status wb_optimiser_move(const wb_to_desc *desc);
const wb_device *wb_optimiser_device(const void *optimiser);

/* To be called after a step: warns if another optimiser trains the same parameters in between. */
void wb_optimiser_takes_turn(wb_optimiser *optimiser);
/* To be called when the optimiser makes no more steps on this thread. */
void wb_optimiser_leaves_turns(const wb_optimiser *optimiser);

/* Does not count a step that the guard skipped. */
void wb_optimiser_uncount(wb_optimiser *optimiser);

#endif
