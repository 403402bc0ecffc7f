/* The command line, in a scene of support/stage.h. */
#ifndef WB_TESTS_TOOL_H
#define WB_TESTS_TOOL_H

#include <sys/wait.h>

#include "support/stage.h"

static char output[16384];

/* Runs bin/weber in the scene's folder; output is what it printed on both streams. Its exit
 * status. */
static inline int weber(const char *arguments) {
    char command[4096];
    (void)snprintf(command, sizeof command, "'%s' %s 2>&1", stage_build("bin/weber"), arguments);
    FILE *pipe = popen(command, "r");
    if (!pipe) return -1;
    output[fread(output, 1, sizeof output - 1, pipe)] = 0;
    const int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#endif
