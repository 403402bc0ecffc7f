/* Finds the command, runs it, and makes sure that its output was written. Also the text of `weber
 * help`. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <weber/show.h>

#include "tool.h"

static const char usage[] =
    "usage: weber devices [--json]          what there is: backends, devices, the current choice\n"
    "       weber backend                   the preferred backend\n"
    "       weber backend NAME              prefers a backend: CUDA, AMDGPU, Metal, OpenCL, CPU\n"
    "       weber backend --reset           prefers none: the choice is automatic\n"
    "       weber show FILE [--records]     what a file of models or arrays holds\n"
    "       weber convert IN OUT [--rename TABLE] [--model | --structure TEXT]\n"
    "                                       a file in another format, under other names\n"
    "       weber evaluate MODEL --data DATA\n"
    "                                       loss, accuracy and confusion matrix of a saved model\n"
    "       weber generate MODEL TEXT       continues a text: a folder, or a .gguf\n"
    "       weber run -n N PROGRAM ...      the program in N processes that train together\n"
    "       weber ranks                     checks the group of processes that it is run in\n"
    "       weber profile PROGRAM ...       where its time goes, by layer and operation\n"
    "       weber layers                    the layers that models in files are made of\n"
    "       weber help [COMMAND]            this text, or what a command takes\n"
    "       weber --version\n"
    "\n"
    "Exit status: 0, 1 after an error, 2 for a command line that is not understood.\n"
    "WEBER_DEVICE=backend[:index] chooses for one run, WEBER_BACKENDS=cpu,opencl limits what is\n"
    "loaded, WEBER_PREFERENCES=file and WEBER_PLUGIN_PATH=/folder:/folder say where to look.\n";

int tool_help(const char *help, bool is_asked) {
    (void)fputs(help, is_asked ? stdout : stderr);
    return is_asked ? 0 : 2;
}

int tool_wrong(const char *help, const char *format, ...) {
    char why[1024];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    (void)fputs("weber ", stderr);
    put_plain_to(stderr, why, strlen(why));
    (void)fputc('\n', stderr);
    return tool_help(help, false);
}

int tool_wrong_count(const char *help, const char *command, const char *wanted, int count) {
    if (count == 0) return tool_wrong(help, "%s: takes %s, got none", command, wanted);
    return tool_wrong(help, "%s: takes %s, got %d word%s", command, wanted, count,
                      count == 1 ? "" : "s");
}

void tool_say_error(const char *command, const char *const words[][2], size_t count) {
    char message[2048], *at;
    (void)wb_take_error(message, sizeof message);
    (void)fprintf(stderr, "weber %s: ", command);
    for (size_t i = 0; i < count; i++) {
        if (!(at = strstr(message, words[i][0]))) continue;
        char rest[sizeof message];
        (void)snprintf(rest, sizeof rest, "%s", at + strlen(words[i][0]));
        (void)snprintf(at, sizeof message - (size_t)(at - message), "%s%s", words[i][1], rest);
    }
    put_plain_to(stderr, message, strlen(message));
    (void)fputc('\n', stderr);
}

int tool_usage(const char *command, int count, char **arguments) {
    if (count == 1 && strcmp(arguments[0], "--help") == 0) return tool_help(usage, true);
    return tool_wrong(usage, "%s: does not take \"%s\"", command, arguments[count - 1]);
}

static int help(int count, char **arguments);

static int layers(int count, char **arguments) {
    if (count) return tool_usage("layers", count, arguments);
    if (wb_show_layers() == WB_OK) return 0;
    if (!ferror(stdout)) return wb_report("weber layers");
    wb_clear_error(); /* close_output reports it */
    return 1;
}

static int version(int count, char **arguments) {
    if (count) return tool_usage("--version", count, arguments);
    (void)puts("weber " WEBER_VERSION);
    return 0;
}

typedef struct command {
    const char *name;
    int (*run)(int count, char **arguments);
} command;

static const command commands[] = {
    {"devices", tool_devices},
    {"backend", tool_backend},
    {"show", tool_show},
    {"convert", tool_convert},
    {"evaluate", tool_evaluate},
    {"generate", tool_generate},
    {"run", tool_run},
    {"ranks", tool_ranks},
    {"profile", tool_profile},
    {"layers", layers},
    {"help", help},
    {"--help", help},
    {"-h", help},
    {"--version", version},
};

/* The exit status; 1 if something of what was printed is lost, as on a full disk. */
static int close_output(int status) {
    const bool had_failed = ferror(stdout) != 0;
    errno = 0;
    if (fclose(stdout) == 0 && !had_failed) return status;
    (void)fprintf(stderr, "weber: the output could not be written%s%s\n", errno ? ": " : "",
                  errno ? strerror(errno) : "");
    return status ? status : 1;
}

static const command *find(const char *name) {
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(name, commands[i].name) == 0) return &commands[i];
    (void)fprintf(stderr, "weber: there is no command \"");
    put_plain_to(stderr, name, strlen(name));
    (void)fprintf(stderr, "\"; weber help lists them\n");
    return NULL;
}

static int help(int count, char **arguments) {
    char asked[] = "--help", *list[] = {asked, NULL};
    if (count > 1) return tool_wrong(usage, "help: takes one COMMAND, got %d words", count);
    if (count == 0) return tool_help(usage, true);
    const command *c = find(arguments[0]);
    if (!c) return 2;
    return c->run == help || c->run == version ? tool_help(usage, true) : c->run(1, list);
}

int main(int count, char **arguments) {
    if (count < 2) return tool_wrong(usage, "needs a COMMAND");
    const command *c = find(arguments[1]);
    return c ? close_output(c->run(count - 2, arguments + 2)) : 2;
}
