#include <stdio.h>
#include <string.h>

#include "tool.h"

static const char usage[] =
    "usage: weber devices [--json]          what there is: backends, devices, the current choice\n"
    "       weber backend                   the preferred backend\n"
    "       weber backend NAME              prefers a backend: CUDA, AMDGPU, Metal, OpenCL, CPU\n"
    "       weber backend --reset           prefers none: the choice is automatic\n"
    "       weber show FILE                 what a file of models or arrays holds\n"
    "       weber convert IN OUT [--rename TABLE]\n"
    "                                       a file in another format, under other names\n"
    "       weber evaluate MODEL --data fashion-mnist\n"
    "                                       loss, accuracy and confusion matrix of a saved model\n"
    "       weber --help | --version        weber show --help and so on say more\n"
    "\n"
    "Exit status: 0, 1 after an error, 2 for a command line that is not understood.\n"
    "WEBER_DEVICE=backend[:index] chooses for one run, WEBER_BACKENDS=cpu,opencl limits what is\n"
    "loaded, WEBER_PREFERENCES=file and WEBER_PLUGIN_PATH=/folder:/folder say where to look.\n";

int tool_usage(void) {
    (void)fputs(usage, stderr);
    return 2;
}

int tool_help(const char *help, bool is_asked) {
    (void)fputs(help, is_asked ? stdout : stderr);
    return is_asked ? 0 : 2;
}

static int help(int count, char **arguments) {
    (void)arguments;
    if (count) return tool_usage();
    (void)fputs(usage, stdout);
    return 0;
}

static int version(int count, char **arguments) {
    (void)arguments;
    if (count) return tool_usage();
    (void)puts("weber " WEBER_VERSION);
    return 0;
}

static const struct {
    const char *name;
    int (*run)(int count, char **arguments);
} commands[] = {
    {"devices",   tool_devices },
    {"backend",   tool_backend },
    {"show",      tool_show    },
    {"convert",   tool_convert },
    {"evaluate",  tool_evaluate},
    {"--help",    help         },
    {"-h",        help         },
    {"--version", version      },
};

int main(int count, char **arguments) {
    for (size_t i = 0; count > 1 && i < sizeof commands / sizeof *commands; i++)
        if (strcmp(arguments[1], commands[i].name) == 0)
            return commands[i].run(count - 2, arguments + 2);
    return tool_usage();
}
