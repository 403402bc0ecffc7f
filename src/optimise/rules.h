/* Rules: private side of weber/rules.h. */
#ifndef WB_OPTIMISE_RULES_H
#define WB_OPTIMISE_RULES_H

#include <weber/rules.h>

#include "base/error.h"

int wb_rule_links(const wb_rule *rule);
/* The number of state arrays that a rule keeps for a parameter. */
int wb_rule_states(const wb_rule *rule);

/* The name of a state in files: the name in its row; if an earlier row of the chain has the same
 * name, "m_2" for the second row. */
enum { WB_STATE_NAME_BYTES = 64 };
const char *wb_rule_state_name(const wb_rule *rule, int number, char text[WB_STATE_NAME_BYTES]);

/* A setting of a rule. Loop: for (wb_rule_place at = {.row = NULL}; wb_rule_next(rule, &at);). */
typedef struct wb_rule_place {
    const wb_rule_row *row;
    int link;    /* from 1 on */
    int setting; /* index of the setting in the row */
    int value;   /* index of its value in the rule */
} wb_rule_place;
bool wb_rule_next(const wb_rule *rule, wb_rule_place *at);

/* State number `number` of the rule; place->row is its row, place->link from 0 on, place->value its
 * row's first setting. */
const wb_rule_state *wb_rule_state_of(const wb_rule *rule, int number, wb_rule_place *place);
/* The start value of such a state, unless it starts as a copy of the parameter. */
double wb_rule_start_of(const wb_rule *rule, const wb_rule_state *state,
                        const wb_rule_place *place);

wb_status wb_rule_check(const char *function, const wb_rule *rule);
wb_status wb_setting_check(const char *function, const wb_rule_row *row, int setting, double value);
/* Sets each setting with this name to value; adds their number to *found. */
wb_status wb_rule_set(const char *function, wb_rule *rule, const char *name, double value,
                      int *found);
void wb_rule_list_settings(const wb_rule *rule, char *text, size_t size);
bool wb_rule_equal(const wb_rule *a, const wb_rule *b);
/* Whether wb_clip_norm is among its rows. */
bool wb_rule_clips_norm(const wb_rule *rule);

#endif
