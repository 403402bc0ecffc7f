/* `weber convert IN OUT`: one file's arrays and values in another format. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weber/lora.h>
#include <weber/state.h>

#include "tool.h"

static const char help[] =
    "usage: weber convert IN OUT [--rename=TABLE] [--type=q8_0]\n"
    "       weber convert IN OUT (--model[=KEY] | --structure=TEXT [--from=torch]) [--lora=FOLDER] "
    "[--check=FILE]\n"
    "       weber convert IN OUT --like=FILE\n"
    "\n"
    "Writes what the file IN holds to the file OUT; both formats follow the names: .bson, "
    ".safetensors\n"
    "(named arrays), .npy (one array), .npz, .gguf (llama.cpp's); IN may be PyTorch's .pt or "
    "Julia's\n"
    ".jld2, too. What OUT cannot hold is left out, "
    "with a warning. OUT is replaced only when it is written whole.\n"
    "\n"
    "  --rename=TABLE    a file with a row for each name:\n"
    "                        FROM -> TO [transpose | permute 1,0,2] [flip] [part 1/3 | into 1/3] "
    "[along 0]\n"
    "                        0.weight -> model.layers.1.weight flip     Conv2d into Conv\n"
    "                        *.bias   -> model.layers.*+1.bias          * a part without dots, ** "
    "with dots\n"
    "                        *.num_batches_tracked ->                   left out\n"
    "                    The first row that takes a name counts, with those that have the same "
    "left side; other\n"
    "                    names stay. # begins a remark. weber/state.h has all rules.\n"
    "  --model[=KEY]     instead of the tree: the model at KEY (default model) is built and saved, "
    "so that the\n"
    "                    layers of a file of Flux's become Weber's, with the names of their "
    "fields\n"
    "  --structure=TEXT  the same for a file of arrays alone, which have the model's names (also "
    "by --rename) or are\n"
    "                    a list: \"Chain(Dense(784 => 128, relu), Dense(128 => 10))\"\n"
    "  --from=torch      with --structure, for PyTorch's weights: the rows of the table are made "
    "from "
    "the order,\n"
    "                    the names and the sizes of its modules, and printed; those of --rename "
    "come first\n"
    "  --like=FILE       back to PyTorch: IN is a model that Weber saved, and its arrays get the "
    "names "
    "and the form that\n"
    "                    they have in FILE, a .pt or .safetensors of PyTorch's, for "
    "load_state_dict\n"
    "  --lora=FOLDER     with --model: low-rank adapters (PEFT's folder) are added to the weights\n"
    "  --type=q8_0       OUT is a .gguf: matrices become bytes with a scale for each 32 of "
    "them; a model of Weber's\n"
    "                    is first written as .safetensors by --model\n"
    "  --check=FILE      for a model: FILE (.npz) has an input x (or x1, x2) and the result y, as "
    "PyTorch gave them in\n"
    "                    eval mode; the largest difference is printed, and without agreement OUT "
    "is not written\n"
    "  --help            this text\n"
    "\n"
    "Exit status: 0, 1 after an error, 2 for a command line that is not understood.\n";

enum { MOST_TABLE_BYTES = 16 << 20 };

/* To be freed; NULL after saying why. */
static char *read_text(const char *path) {
    FILE *file = fopen(path, "r");
    char *text = file ? calloc(1, MOST_TABLE_BYTES + 1) : NULL;
    const size_t size = text ? fread(text, 1, MOST_TABLE_BYTES + 1, file) : 0;
    const bool is_read = text && !ferror(file);
    if (!is_read)
        (void)fprintf(stderr, "weber convert: %s: %s\n", path, strerror(errno));
    else if (size > MOST_TABLE_BYTES || strlen(text) != size)
        (void)fprintf(stderr, "weber convert: %s: is not a rename table\n", path);
    if (file) (void)fclose(file);
    if (is_read && size <= MOST_TABLE_BYTES && strlen(text) == size) return text;
    free(text);
    return NULL;
}

/* A struct of Julia's that BSON cannot express may be a model: says how to convert that. */
static void advise(const char *from, const char *to) {
    wb_file *file = wb_open(from);
    const wb_record *root = wb_file_root(file);
    wb_layer *model = NULL;
    for (int64_t i = 0; i < wb_record_count(root) && !model; i++) {
        if (wb_record_kind_of(wb_record_at(root, i)) != WB_RECORD_STRUCT) continue;
        if (!(model = wb_load_model(from, wb_record_name(root, i)))) {
            wb_clear_error();
            continue;
        }
        (void)fprintf(stderr,
                      "weber convert: `weber convert %s %s --model=%s` builds the model and saves "
                      "it under the names of its fields; .npz takes the struct as it is\n",
                      from, to, wb_record_name(root, i));
    }
    wb_free(model), wb_free(file);
    wb_clear_error();
}

static bool is_bson(const char *path) {
    const size_t length = strlen(path);
    return length > 5 && strcmp(path + length - 5, ".bson") == 0;
}

static int convert(const char *from, const char *to, const char *table, const char *type) {
    char *rename = table ? read_text(table) : NULL;
    if (table && !rename) return 1;
    const wb_status status = wb_convert(from, to, .rename = rename, .type = type);
    static const char *const words[][2] = {{".type ", "--type "}};
    const int failed = wb_failed();
    if (failed) tool_say_error("convert", words, 1);
    if (!table && is_bson(to) && (status == WB_OK || status == WB_ERROR_UNSUPPORTED))
        advise(from, to);
    free(rename);
    return failed;
}

/* What the command line says of a model. */
typedef struct request {
    const char *key, *structure, *table, *library, *check, *lora;
} request;

static void print_table(const char *from, const request *r, wb_layer *model, const char *rename) {
    wb_file *file = wb_open(from);
    const char *rows = file ? wb_torch_table(file, r->key, model, rename) : NULL;
    for (const char *end; rows && *rows; rows = *end ? end + 1 : end) {
        end = rows + strcspn(rows, "\n");
        put_plain_to(stdout, rows, (size_t)(end - rows));
        (void)putchar('\n');
    }
    wb_free(file);
}

/* Without a table the file's own types are shown. */
static wb_layer *build(const char *from, const request *r, const char *rename) {
    if (!rename && !r->library) return wb_load_model_as(from, r->key, r->structure);
    wb_layer *model = wb_parse(.text = r->structure);
    if (model &&
        wb_load(from, model, .key = r->key, .rename = rename, .from = r->library) == WB_OK) {
        if (r->library) print_table(from, r, model, rename);
        return model;
    }
    wb_free(model);
    return NULL;
}

/* The arrays of a model's file under the names of a PyTorch file. */
static int convert_back(const char *from, const char *to, const char *like) {
    wb_layer *model = wb_load_model(from, "model");
    wb_file *file = model ? wb_open(like) : NULL;
    const char *rows = file ? wb_torch_table_back(file, NULL, model) : NULL;
    if (rows) (void)wb_convert(from, to, .rename = rows);
    wb_free(file), wb_free(model);
    return wb_report("weber convert");
}

static int convert_model(const char *from, const char *to, const request *r) {
    char *rename = r->table ? read_text(r->table) : NULL;
    if (r->table && !rename) return 1;
    wb_layer *model = build(from, r, rename);
    if (model && r->lora && wb_lora_load(r->lora, model) == WB_OK) (void)wb_lora_merge(model);
    const bool good = model && !wb_failed() && (!r->check || tool_check(r->check, model));
    if (good) (void)wb_save_named(to, {r->key ? r->key : "model", model});
    wb_free(model);
    free(rename);
    if (!wb_failed()) return !good;
    static const char *const words[][2] = {
        {"; .partial leaves out such arrays",
         "; a row NAME -> of a rename table leaves an array out"},
        {"; wb_load puts a file's arrays into a model that you give",
         "; --model=KEY takes a part of the file, --rename=TABLE gives its arrays other names"},
        {"make the model by wb_parse, and load it by wb_load with .from = \"torch\"",
         "--from=torch reads them"},
        {".from = \"torch\" finds out", "--from=torch finds out"},
        {": .key chooses one", ": --model=KEY chooses one"},
        {"rename table (.rename)", "rename table (--rename)"}};
    tool_say_error("convert", words, sizeof words / sizeof *words);
    return 1;
}

int tool_convert(int count, char **arguments) {
    static const struct option options[] = {{"rename", required_argument, NULL, 'r'},
                                            {"model", optional_argument, NULL, 'm'},
                                            {"structure", required_argument, NULL, 's'},
                                            {"from", required_argument, NULL, 'f'},
                                            {"like", required_argument, NULL, 'l'},
                                            {"type", required_argument, NULL, 't'},
                                            {"check", required_argument, NULL, 'c'},
                                            {"lora", required_argument, NULL, 'a'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    request r = {.key = NULL};
    const char *like = NULL, *type = NULL;
    for (int letter; (letter = getopt_long(count + 1, arguments - 1, "", options, NULL)) != -1;) {
        if (letter == 'h' || letter == '?') return tool_help(help, letter == 'h');
        if (letter == 'r') r.table = optarg;
        if (letter == 's') r.structure = optarg;
        if (letter == 'f') r.library = optarg;
        if (letter == 'c') r.check = optarg;
        if (letter == 'a') r.lora = optarg;
        if (letter == 'l') like = optarg;
        if (letter == 't') type = optarg;
        if (letter == 'm') r.key = optarg ? optarg : "model";
    }
    if (count + 1 - optind != 2)
        return tool_wrong_count(help, "convert", "two files, IN and OUT", count + 1 - optind);
    if (r.table && r.key && !r.structure)
        return tool_wrong(help, "convert: --rename and --model exclude each other");
    if (r.check && !r.key && !r.structure)
        return tool_wrong(help, "convert: --check needs --model or --structure");
    if (r.lora && !r.key && !r.structure)
        return tool_wrong(help, "convert: --lora needs --model or --structure");
    if (r.library && !r.structure)
        return tool_wrong(help, "convert: --from needs --structure, the layers of the model");
    if (type && (like || r.key || r.structure))
        return tool_wrong(help, "convert: --type goes without --like, --model and --structure; "
                                "write the model as .safetensors, then convert that");
    if (like && (r.table || r.key || r.structure))
        return tool_wrong(help, "convert: --like goes without --rename, --model and --structure");
    const char *from = arguments[optind - 1], *to = arguments[optind];
    if (like) return convert_back(from, to, like);
    return r.key || r.structure ? convert_model(from, to, &r) : convert(from, to, r.table, type);
}
