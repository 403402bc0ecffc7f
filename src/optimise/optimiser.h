/* Optimisers: private side of weber/optimise.h. */
#ifndef WB_OPTIMISE_OPTIMISER_H
#define WB_OPTIMISE_OPTIMISER_H

#include <weber/optimise.h>

#include "array/array.h"
#include "optimise/gradients.h"
#include "optimise/rules.h"

/* Groups with the same rule, settings and past: they share the numbers of a step. */
typedef struct wb_cohort {
    wb_rule rule;
    wb_array *count; /* held: steps that counted, i32, one number; NULL: the optimiser's, which it
                        has all taken part in */
    wb_array *fresh_count, *numbers; /* of the step that is being made */
    int64_t steps;                   /* what count says, as wb_optimiser_count has read it */
} wb_cohort;

/* Which rank has the state of an array (shard.c). */
typedef enum wb_division {
    WB_DIVIDED_NOT,   /* each has all of it */
    WB_DIVIDED_CUT,   /* each has a range of it */
    WB_DIVIDED_WHOLE, /* one has it, the others nothing */
} wb_division;

/* Slots over the same numbers, with one state. */
typedef struct wb_tie_group {
    wb_array *states[WB_RULE_ALL_STATES]; /* held */
    wb_division division;
    int owner;           /* the rank that has a state that is whole */
    wb_dtype state_type; /* what states are made for, also where another rank has them */
    int ndim;
    int64_t sizes[WB_MAX_DIMS];
    int64_t cohort;
    bool is_frozen;
    bool is_marked; /* by wb_optimiser_mark */
    int64_t first;  /* its first member; the others follow by next */
} wb_tie_group;

/* A trainable slot of the model. */
typedef struct wb_member {
    wb_array **slot;
    wb_array *seen; /* what the slot held after the last step; only compared */
    int64_t group;
    int64_t next;    /* the next member of the group, or -1 */
    bool is_view;    /* another array than the first member's: a view of it */
    int part;        /* whose rule it has: place in the optimiser's parts, or -1 */
    wb_array *fresh; /* of the step that is being made */
} wb_member;

/* A rule for what a path matches. */
typedef struct wb_part_rule {
    char *path;
    wb_rule rule;
} wb_part_rule;

/* Sums over some parts of a step, one after another (mean.c). */
typedef struct wb_partial {
    wb_array **arrays; /* held */
    int64_t count, parts;
} wb_partial;
enum { WB_PARTIALS = 32 }; /* so many for 2^32 micro-batches */

struct wb_optimiser {
    wb_object object;
    wb_rule rule;
    double clip_norm;
    bool is_distributed; /* its steps are those of all ranks, two or more */
    bool draws_for_all;  /* masks are those of all parts' batches; alone, too, if asked for ranks */
    bool may_miss;       /* gradients on some ranks */
    bool is_divided;     /* states are divided among the ranks */
    int64_t compare_every, compared_at; /* steps; 0: not, -1: not yet */
    wb_array **gathered;                /* WB_RULE_ALL_STATES per group; held: on rank 0, or NULL */
    int64_t gathered_count;
    int64_t micro_batches;            /* of each batch; 0: it is one, and the step one plan */
    wb_partial partials[WB_PARTIALS]; /* in a step: sums of the micro-batches so far */
    int64_t partial_count;
    struct wb_sharing *sharing;        /* what they are sums of */
    struct wb_part_hidden *hidden;     /* in a step: what its parts have left in hidden states */
    wb_part_rule parts[WB_PATH_RULES]; /* those after the last have no path */
    wb_layer *model;                   /* owned */
    int64_t step;                      /* steps made, with those that the guard skipped */
    wb_array *count, *fresh_count;     /* held: those that counted, i32, one number */
    int64_t counted, counted_at;       /* what count said when step was counted_at; -1: not read */
    wb_dtype send;                     /* in which ranks send f32 gradients */
    wb_dtype compute;                  /* in which losses see f32 parameters; f32: as they are */
    wb_array ***written;               /* slots of states that the step being made writes */
    int64_t written_count, written_room;
    double first_scale;              /* 0: no scale */
    int64_t scale_interval;          /* good steps from one growth to the next */
    wb_array *scale, *fresh_scale;   /* held: of the loss, f32, one number; or NULL */
    wb_array *streak, *fresh_streak; /* held: good steps since it changed, i32, one number */
    wb_cohort *cohorts;
    int64_t cohort_count, cohort_capacity;
    wb_member *members;
    int64_t member_count;
    wb_tie_group *groups;
    int64_t group_count;
    wb_array **fresh_states; /* WB_RULE_ALL_STATES per group, of the step that is being made */
    wb_array **sums;         /* the gradient of each group */
    wb_array **roots;        /* of the step's plan */
    int64_t root_room;
    /* of the step that is being made, over all its parts: and what they were divided by */
    wb_array *mean_loss, *mean_watched, *mean_divisor;
    /* of that step: writes of states that its guard looks at afterwards, and the number that it
     * watches, then */
    int64_t rest;
    wb_array *watched;
    int settled_count;    /* those of them that slots will hold */
    wb_aux_list aux;      /* held: what the loss of the last step handed out */
    wb_array *divisor;    /* held: what it was divided by, over all parts; NULL: by observations */
    int64_t observations; /* of the last step on this rank */
    bool has_stepped, is_compared; /* turns.c */
    bool is_stepping;              /* in wb_train_step */
};

/* What it holds, in any order: fills slots unless that is NULL; how many. */
int64_t wb_optimiser_slots(wb_optimiser *optimiser, wb_array ***slots);

/* Its precision, where the parameters are; false with an error. */
bool wb_optimiser_precision(wb_optimiser *optimiser, wb_precision *precision);
/* The recipes of the next scale, if there is one; false on failure. */
bool wb_optimiser_next_scale(wb_optimiser *optimiser, wb_array *watched);
/* Holds these evaluated numbers in the place of scale and streak. */
void wb_optimiser_set_scale(wb_optimiser *optimiser, wb_array *scale, wb_array *streak);

/* Holds what the loss of these gradients has handed out, in the place of what it holds. */
void wb_optimiser_hold_aux(wb_optimiser *optimiser, const wb_gradients *gradients);
/* The same of what it was divided by, and its observations. */
void wb_optimiser_hold_divisor(wb_optimiser *optimiser, const wb_gradients *gradients);
/* Holds neither any more. */
void wb_optimiser_forget_loss(wb_optimiser *optimiser);
/* What the last step counts in a mean over several. NaN with an error. */
double wb_optimiser_weight(const wb_optimiser *optimiser);

/* Reads the counts of all cohorts, and the optimiser's own. */
wb_status wb_optimiser_count(wb_optimiser *optimiser);
/* A number of steps as an array beside x, not yet evaluated. */
wb_array *wb_optimiser_new_count(int64_t steps, const wb_array *beside);
/* The counts and cohorts of a file, room for which was reserved: cannot fail. */
bool wb_optimiser_reserve_cohorts(wb_optimiser *optimiser, int64_t count);
void wb_optimiser_set_cohorts(wb_optimiser *optimiser, wb_array *count, int64_t cohort_count,
                              const wb_cohort *cohorts);
static inline const wb_rule *wb_group_rule(const wb_optimiser *o, const wb_tie_group *group) {
    return &o->cohorts[group->cohort].rule;
}

/* True if the pattern, or the pattern and a dot and more, is the path; * stands for any letters. */
bool wb_path_matches(const char *pattern, const char *path);

/* True if the pattern matches a trainable array of the model. */
bool wb_path_is_there(wb_layer *model, const char *pattern);
/* The settings of a rule with the same rows become those of all its rules. */
void wb_optimiser_take_settings(wb_optimiser *optimiser, const wb_rule *rule);

/* Marks the groups with a member that path matches (NULL: all), after making the groups again; no
 * match is an error. */
wb_status wb_optimiser_mark(const char *function, wb_optimiser *optimiser, const char *path);

/* Multiplies a setting in each rule that has it by factor, down to least; none has it: an error. */
wb_status wb_optimiser_scale(const char *function, wb_optimiser *optimiser, const char *setting,
                             double factor, double least);

/* Makes the groups again from what the slots hold, keeping the states of arrays that are in their
 * places. */
wb_status wb_optimiser_group(wb_optimiser *optimiser);

wb_status wb_optimiser_hand_over(void *optimiser);
bool wb_is_optimiser(const void *object);
/* True if it is there and one; else an error names the function. */
bool wb_optimiser_check(const char *function, const wb_optimiser *optimiser);

/* wb_move and wb_device_of for optimisers: state and model together (move.c). */
wb_status wb_optimiser_move(const wb_to_desc *desc);
const wb_device *wb_optimiser_device(const void *optimiser);

/* It has made a step: warns where another one trains the same parameters in between. */
void wb_optimiser_takes_turn(wb_optimiser *optimiser);
/* It makes no more steps on this thread. */
void wb_optimiser_leaves_turns(const wb_optimiser *optimiser);

/* Takes back the count of a step that the guard stopped. */
void wb_optimiser_uncount(wb_optimiser *optimiser);

#endif
