/* The functions that kernel texts share: functions.txt. */
#ifndef WB_PROGRAM_FUNCTIONS_H
#define WB_PROGRAM_FUNCTIONS_H

#include "program/text.h"

/* Appends the definitions of those that `body` names, directly or through others: what stands in
 * front of body. Several texts may be compiled as one: what is defined stays as it is. */
void wb_functions_add(wb_text *text, const char *body);

#endif
