/* `weber backend [NAME | --reset]`: shows, sets or removes the preferred backend. */
#include <stdio.h>
#include <string.h>
#include <weber/device.h>

#include "tool.h"

static int show(void) {
    const char *backend = wb_gpu_backend();
    wb_choice choice;
    if (wb_device_choice(&choice) != WB_OK) return wb_report("weber backend");
    if (backend)
        (void)printf("%s (%s)\n", backend, wb_preference_file());
    else
        (void)printf("none: the choice is automatic\n");
    (void)printf("now used: %s (%s)\n", choice.device, choice.why);
    return 0;
}

static int reset(void) {
    const char *backend = wb_gpu_backend();
    if (!backend) {
        (void)puts("There is no preference.");
        return 0;
    }
    if (wb_gpu_backend_reset() != WB_OK) return 1;
    (void)printf("Deleted the preference from %s.\n", wb_preference_file());
    return 0;
}

static int set(const char *name) {
    if (wb_gpu_backend_set(name) != WB_OK) {
        (void)wb_report("weber backend"); /* a file that cannot be written was a warning already */
        return 1;
    }
    const char *backend = wb_gpu_backend();
    (void)printf("New GPU backend set: %s (%s).\n", backend ? backend : "", wb_preference_file());
    if (!wb_functional(backend)) (void)printf("It does not work here: %s.\n", wb_reason());
    return wb_report("weber backend");
}

int tool_backend(int count, char **arguments) {
    if (count == 0) return show();
    if (count > 1) return tool_usage("backend", count, arguments);
    if (strcmp(arguments[0], "--reset") == 0) return reset();
    return arguments[0][0] == '-' ? tool_usage("backend", count, arguments) : set(arguments[0]);
}
