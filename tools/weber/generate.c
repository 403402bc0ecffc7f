/* `weber generate FOLDER TEXT`: continues a text with a model of language, token by token. */
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <weber.h>

#include "tool.h"

static const char help[] =
    "usage: weber generate FOLDER|FILE.gguf TEXT [options]\n"
    "\n"
    "Continues TEXT with the model in FOLDER (config.json, tokenizer.json, model.safetensors: a\n"
    "folder of Hugging Face's) or in FILE.gguf, which must have a tokenizer.json beside it, and\n"
    "prints the text as it comes.\n"
    "\n"
    "  --tokens=N        at most so many new ones (default 100)\n"
    "  --temperature=X   logits are divided by it; 0: always the likeliest token (default 1)\n"
    "  --top-k=N         of the N likeliest tokens alone (default: of all)\n"
    "  --top-p=X         of the likeliest that together have the probability X (default 1)\n"
    "  --repetition=X    makes tokens that the text has less likely, above 1 (default 1)\n"
    "  --lora=FOLDER     low-rank adapters for the model, in a folder of Hugging Face's PEFT\n"
    "  --seed=N          other numbers, other texts (default 0)\n"
    "  --device=NAME     where to compute: CPU, OpenCL, OpenCL:1, ... (default: a GPU, else the "
    "CPU)\n"
    "  --help            this text\n"
    "\n"
    "Exit status: 0, 1 after an error, 2 for a command line that is not understood.\n";

typedef struct settings {
    const char *folder, *text, *device, *lora;
    int64_t tokens, top_k, seed;
    double temperature, top_p, repetition;
} settings;

/* What was generated, and how much of it is printed. */
typedef struct stream {
    const wb_tokenizer *tokenizer;
    int32_t *ids; /* those of the text, and the new ones, which wb_generate writes */
    int64_t count, printed;
} stream;

/* ---- the text ---- */

/* As put_plain_to, but lines end and tabs stay. */
static void put_text(const char *text, size_t length) {
    for (const char *end = text + length; text < end;) {
        const size_t plain = strcspn(text, "\n\t");
        put_plain_to(stdout, text, plain);
        if ((text += plain) < end) (void)putchar(*text++);
    }
}

/* Prints what the ids have beyond what is printed; `partial`: a character may be unfinished. */
static bool print_more(stream *s, bool partial) {
    const int64_t bytes = wb_decode(s->tokenizer, s->ids, s->count, NULL, 0, .partial = partial);
    char *text = bytes >= 0 ? malloc((size_t)bytes + 1) : NULL;
    if (text &&
        wb_decode(s->tokenizer, s->ids, s->count, text, bytes + 1, .partial = partial) >= 0 &&
        bytes > s->printed) {
        put_text(text + s->printed, (size_t)(bytes - s->printed));
        (void)fflush(stdout);
        s->printed = bytes;
    }
    free(text);
    return text && !wb_failed() && !ferror(stdout);
}

static bool on_token(void *user, int32_t token) {
    stream *s = user;
    (void)token;
    s->count++;
    return print_more(s, true);
}

/* The ids of the text, with room for the new ones; NULL with an error. */
static int32_t *encode(const settings *s, const wb_tokenizer *tokenizer, int64_t *count) {
    *count = wb_encode(tokenizer, s->text);
    if (*count == 0) (void)wb_fail(WB_ERROR_ARGUMENT, "the text must have a token, but has none");
    int32_t *ids = *count > 0 ? calloc((size_t)(*count + s->tokens), sizeof *ids) : NULL;
    if (ids && wb_encode(tokenizer, s->text, ids, *count) == *count) return ids;
    free(ids);
    return NULL;
}

static bool generate(const settings *s, wb_layer *model, const wb_tokenizer *tokenizer) {
    stream out = {.tokenizer = tokenizer};
    out.ids = encode(s, tokenizer, &out.count);
    const int64_t given = out.count;
    bool good = out.ids != NULL;
    if (good)
        good = wb_generate(model, given, out.ids, .most = given + s->tokens,
                           .temperature = s->temperature, .top_k = s->top_k, .top_p = s->top_p,
                           .repetition = s->repetition, .end = wb_end_token(s->folder),
                           .each = on_token, .user = &out) >= 0 &&
               print_more(&out, false);
    if (out.printed) (void)putchar('\n');
    free(out.ids);
    return good;
}

static bool is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* That of the folder, or of the folder in which the file is. */
static wb_tokenizer *open_tokenizer(const char *model) {
    static const char name[] = "tokenizer.json", end[] = ".gguf";
    const size_t length = strlen(model), last = sizeof end - 1;
    if (is_folder(model)) return wb_tokenizer_load(model);
    if (length < last || strcmp(model + length - last, end) != 0) {
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "%s: a model must be a folder with tokenizer.json and config.json, or a "
                      ".gguf with tokenizer.json beside it",
                      model);
        return NULL;
    }
    const char *slash = strrchr(model, '/');
    const size_t before = slash ? (size_t)(slash - model) + 1 : 0;
    char *path = malloc(before + sizeof name);
    if (!path) return NULL;
    memcpy(path, model, before);
    memcpy(path + before, name, sizeof name);
    wb_tokenizer *tokenizer = wb_tokenizer_load(path);
    free(path);
    return tokenizer;
}

static bool has_halves(wb_layer *model) {
    bool is_half = false;
    for (wb_parameter p = {0}; wb_next_parameter(model, &p);) {
        const wb_dtype dtype = wb_dtype_of(p.array);
        is_half = is_half || dtype == WB_F16 || dtype == WB_BF16;
    }
    return is_half;
}

/* The CPU widens a matrix of halves for each product: a model of f32 is ten times as fast. */
static wb_layer *widened(wb_layer *model, const wb_device *device) {
    if (!model || !device || strcmp(wb_device_name(device), "CPU") != 0 || !has_halves(model))
        return model;
    wb_layer *wide = wb_f32(model);
    wb_free(model);
    return wide;
}

static int run(const settings *s) {
    wb_tokenizer *tokenizer = open_tokenizer(s->folder);
    wb_layer *model = tokenizer ? wb_load_model(s->folder, NULL) : NULL;
    if (model && s->lora && wb_lora_load(s->lora, model) == WB_OK) (void)wb_lora_merge(model);
    const wb_device *device = s->device ? wb_get_device_named(s->device) : wb_get_device();
    model = widened(model, device);
    wb_seed((uint64_t)s->seed);
    const bool is_there = model && !wb_failed() && device &&
                          (wb_device_of(model) == device || wb_move(device, model) == WB_OK);
    const bool good = is_there && generate(s, model, tokenizer);
    wb_free(model), wb_free(tokenizer);
    static const char *const words[][2] = {{"wb_generate: top_p", "--top-p"},
                                           {"wb_generate: top_k", "--top-k"},
                                           {"wb_generate: temperature", "--temperature"},
                                           {"wb_generate: repetition", "--repetition"},
                                           {"wb_generate: ", ""},
                                           {"wb_cache: length", "the text with --tokens"}};
    if (wb_failed()) tool_say_error("generate", words, sizeof words / sizeof *words);
    return !good;
}

/* ---- the command line ---- */

static bool read_integer(const char *text, int64_t least, int64_t *number) {
    char *end;
    *number = strtoll(text, &end, 10);
    return *text && !*end && *number >= least;
}

static bool read_real(const char *text, double *number) {
    char *end;
    *number = strtod(text, &end);
    return *text && !*end && isfinite(*number);
}

int tool_generate(int count, char **arguments) {
    static const struct option options[] = {{"tokens", required_argument, NULL, 'n'},
                                            {"temperature", required_argument, NULL, 't'},
                                            {"top-k", required_argument, NULL, 'k'},
                                            {"top-p", required_argument, NULL, 'p'},
                                            {"repetition", required_argument, NULL, 'r'},
                                            {"lora", required_argument, NULL, 'l'},
                                            {"seed", required_argument, NULL, 's'},
                                            {"device", required_argument, NULL, 'd'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    settings s = {.tokens = 100, .temperature = 1, .top_p = 1, .repetition = 1};
    int place = 0;
    for (int letter; (letter = getopt_long(count + 1, arguments - 1, "", options, &place)) != -1;) {
        bool good = true;
        if (letter == 'h' || letter == '?') return tool_help(help, letter == 'h');
        if (letter == 'n') good = read_integer(optarg, 0, &s.tokens) && s.tokens <= INT32_MAX;
        if (letter == 'k') good = read_integer(optarg, 0, &s.top_k);
        if (letter == 's') good = read_integer(optarg, INT64_MIN, &s.seed);
        if (letter == 't') good = read_real(optarg, &s.temperature) && s.temperature >= 0;
        if (letter == 'p') good = read_real(optarg, &s.top_p) && s.top_p > 0 && s.top_p <= 1;
        if (letter == 'r') good = read_real(optarg, &s.repetition) && s.repetition > 0;
        if (letter == 'd') s.device = optarg;
        if (letter == 'l') s.lora = optarg;
        if (!good)
            return tool_wrong(help, "generate: --%s takes %s, got \"%s\"", options[place].name,
                              letter == 's'                    ? "a whole number"
                              : letter == 'n' || letter == 'k' ? "a whole number from 0 on"
                              : letter == 't'                  ? "a number from 0 on"
                              : letter == 'p'                  ? "a number above 0 and at most 1"
                                                               : "a number above 0",
                              optarg);
    }
    if (count + 1 - optind != 2)
        return tool_wrong_count(help, "generate", "a FOLDER and a TEXT", count + 1 - optind);
    s.folder = arguments[optind - 1], s.text = arguments[optind];
    return run(&s);
}
