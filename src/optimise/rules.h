/* Rules: private side of weber/rules.h. */
#ifndef WB_OPTIMISE_RULES_H
#define WB_OPTIMISE_RULES_H

#include <weber/rules.h>

#include "base/error.h"

int wb_rule_links(const wb_rule *rule);
/* Arrays of state that a rule keeps for a parameter. */
int wb_rule_states(const wb_rule *rule);

/* Its name in files: that of the row, and where an earlier row of the chain has the same, "m_2" for
 * the second row's. */
enum { WB_STATE_NAME_BYTES = 64 };
const char *wb_rule_state_name(const wb_rule *rule, int number, char text[WB_STATE_NAME_BYTES]);

/* A setting of a rule: for (wb_rule_place at = {.row = NULL}; wb_rule_next(rule, &at);). */
typedef struct wb_rule_place {
    const wb_rule_row *row;
    int link;    /* from 1 on */
    int setting; /* of the row */
    int value;   /* of the rule's settings */
} wb_rule_place;
bool wb_rule_next(const wb_rule *rule, wb_rule_place *at);

/* State number `number` of the rule; place->row is its row, place->link from 0 on, place->value its
 * row's first setting. */
const wb_rule_state *wb_rule_state_of(const wb_rule *rule, int number, wb_rule_place *place);
/* The number that such a state starts from, unless it is the parameter. */
double wb_rule_start_of(const wb_rule *rule, const wb_rule_state *state,
                        const wb_rule_place *place);

wb_status wb_rule_check(const char *function, const wb_rule *rule);
wb_status wb_setting_check(const char *function, const wb_rule_row *row, int setting, double value);
/* The value to each setting of that name; counts them in *found. */
wb_status wb_rule_set(const char *function, wb_rule *rule, const char *name, double value,
                      int *found);
void wb_rule_list_settings(const wb_rule *rule, char *text, size_t size);
bool wb_rule_equal(const wb_rule *a, const wb_rule *b);
/* Whether wb_clip_norm is among its rows. */
bool wb_rule_clips_norm(const wb_rule *rule);

#endif
