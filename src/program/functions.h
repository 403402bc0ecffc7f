/* The functions that kernel texts share: functions.txt. */
#ifndef WB_PROGRAM_FUNCTIONS_H
#define WB_PROGRAM_FUNCTIONS_H

#include "program/text.h"

/* Appends the definitions of the functions that `body` uses, directly or through others; they go in
 * front of body. Several texts may be compiled as one, so functions are not defined twice. */
void wb_functions_add(wb_text *text, const char *body);

#endif
