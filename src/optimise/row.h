/* Macros for the rows of rules: expressions over the parameter, the gradient, states and settings,
 * and tables of the settings in a desc. */
#ifndef WB_OPTIMISE_ROW_H
#define WB_OPTIMISE_ROW_H

#include <weber/rules.h>

#include "ops/build.h"

#define X              at->x
#define G              at->g
#define S(name)        wb_setting(at, #name)
#define REST(name)     wb_setting_rest(at, #name)     /* 1 - name */
#define UNBIASED(name) wb_setting_unbiased(at, #name) /* 1 - name^t */

/* Rows of settings over the desc named DESC. */
#define RATE(name)                                                                                 \
    { #name, WB_SETTING_RATE, 0, offsetof(DESC, name), NULL }
#define FRACTION(name)                                                                             \
    { #name, WB_SETTING_FRACTION, 0, offsetof(DESC, name), NULL }
#define STATE_FROM(name, setting)                                                                  \
    { #name, WB_START_SETTING, #setting }
#define STATE(name)                                                                                \
    { #name, WB_START_ZERO, NULL }
#define FLAG(name, flux)                                                                           \
    { #name, WB_SETTING_FLAG, 0, offsetof(DESC, name), flux }

/* wb_rule_make from a desc; an error if no macro has made the desc. */
wb_rule wb_rule_of_desc(const wb_rule_row *row, const void *desc);

/* decay old + (1 - decay) new */
#define AVERAGE(decay, old, new) ADD(MUL(old, S(decay)), MUL(new, REST(decay)))

#endif
