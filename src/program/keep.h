/* Saves programs as files, for tests that compile every program of the suite. */
#ifndef WB_PROGRAM_KEEP_H
#define WB_PROGRAM_KEEP_H

#include <weber/plugin.h>

/* Writes the program into the folder WEBER_PROGRAMS, if there is one: a file for each different
 * text. Failures are silent. */
void wb_program_keep(const wb_program *program);

#endif
