/* weber/state.h: models and arrays in files.
 *
 *     wb_save("model.bson", model);                              // under the key "model"
 *     wb_load("model.bson", model); // into a model of the same structure
 *     // a new model, from nothing but the file; also from Flux's files
 *     wb_layer *again = wb_load_model("model.bson", "model");
 *
 *     wb_save_named("run.bson", {"model", model}, {"adam", adam}, {"data", loader},
 *                   {"random", wb_random_state()});
 *     wb_load_named("run.bson", {"model", model}, {"adam", adam}, {"data", loader},
 *                   {"random", wb_random_state()});
 *
 *     wb_file *file = wb_open("run.bson");
 *     const wb_record *root = wb_file_root(file);
 *     wb_array *w = wb_record_array(file, wb_record_get(root, "model.layers.1.weight"));
 *
 * The format follows the name: .bson (Julia's BSON.jl, as Flux saves), .safetensors, .npy, .npz,
 * .gguf (llama.cpp); files of PyTorch (.pt) and of Julia's JLD2 (.jld2) are recognised by their
 * content, and only read. A model in several files is opened by its index
 * (model.safetensors.index.json), or by the folder that has it, as one file. Saving copies arrays
 * from their devices to the host; the model stays where it is, and a file never depends on a
 * device. Saving is atomic: at any moment the path is either the whole old file or the whole new
 * one; a killed save may leave a file PATH.XXXXXX (six letters). Nothing in a file is ever
 * executed. Errors: weber/error.h; a damaged file is WB_ERROR_FORMAT and names path and offset. */
#ifndef WEBER_STATE_H
#define WEBER_STATE_H

#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- saving and loading ---- */

/* A model, tree or array under the key "model". A model is saved as the tree of its fields by name,
 * as in Flux.state, together with "model_structure", the text from which it can be made again:
 * "Chain(Dense(10 => 5, relu), Dense(5 => 2))". Ties are kept. */
#define wb_save(path, object) wb_save_make(path, 1, &(const wb_named){"model", object})
/* Several objects, each under its key: wb_save_named("run.bson", {"model", model}, {"epoch", e}).
 * An object is a model, a tree, an array, or
 *   an optimiser (its rule with all settings, the state of each parameter, the steps; with .zero
 *   all ranks must call this, but only rank 0 writes),
 *   a loader (its position: epoch, batch, the seed of the order; not its data),
 *   wb_random_state() (the position in this thread's random sequence),
 *   a wb_state or an open file: its tree, {"model_state", wb_state(model)},
 *   a text, {"vocabulary", wb_text("cat\ndog")}, but not in npy. Numbers are saved as arrays,
 *   {"epoch", wb_number(3)}.
 * Together they make a checkpoint: training continued from it gives the same bits as training that
 * was never interrupted. */
#define wb_save_named(path, ...)                                                                   \
    wb_save_make(path, (int64_t)(sizeof((const wb_named[]){__VA_ARGS__}) / sizeof(wb_named)),      \
                 (const wb_named[]){__VA_ARGS__})
WB_API wb_status wb_save_make(const char *path, int64_t count, const wb_named *objects);

/* Whether the array at path ("layers.1.weight") is to be loaded. */
typedef bool wb_load_filter(void *user, const char *path);

/* A layer in a list (a chain's layers), either in the model or in the source that it is loaded
 * from. */
typedef struct wb_load_layer {
    const char *path; /* "layers.2", in the model or the source */
    const char *type; /* "Dropout"; NULL if unknown: in files of arrays, and states */
    bool is_source;   /* in the source: the file, or the other model */
} wb_load_layer;

/* Whether the layer is to be loaded, or loaded from. */
typedef bool wb_layer_filter(void *user, const wb_load_layer *layer);

typedef struct wb_load_desc {
    WB_START_MEMBER;
    const char *path;
    wb_layer *model;
    /* path, in the file, of the part to load; "": the whole file. Default: "model", else
     * "model_state", as Flux calls it; if the file has neither, or it does not fit, the whole file
     * (PyTorch's files can have model.* and lm_head) */
    const char *key;
    wb_load_filter *filter; /* default: all places */
    /* default: all layers. In lists without names, such as a chain's, the layers that pass the
     * filter are paired in order: the second one of the model with the second one of the source */
    wb_layer_filter *layers;
    void *user;   /* given to filter and layers */
    bool partial; /* ignore arrays of the file that have no place in the model */
    /* the text of a rename table (below). Names on its left are those in the file, without the
     * key; names on its right are paths in the model */
    const char *rename;
    /* "torch": the names are PyTorch's, and the rows of the table are made from the order, the
     * names and the sizes of its modules (below); those of .rename come first. Default: the names
     * are the model's */
    const char *from;
} wb_load_desc;

/* wb_load("m.bson", model), wb_load("m.bson", model, .key = "model_state"): loads arrays of the
 * file into the places of the model with the same paths. Each is moved to the device and converted
 * to the type of the array that it replaces. Functions, probabilities and modes of the model do
 * not change.
 *
 * An array that the file lacks, one that has no place in the model (unless .partial), and one of
 * other sizes are errors that name path and sizes; then nothing has changed. As in Flux.loadmodel!,
 * a bias that is absent on one side matches one that is false or all zeros on the other; tied
 * places need equal arrays. A list of arrays (Flux.params) is loaded into the trainable places in
 * order, where a tie counts once.
 *
 * .layers aligns chains of different length (Flux's filter): with
 *
 *     bool no_dropout(void *user, const wb_load_layer *l) {
 *         return !l->type || strcmp(l->type, "Dropout") != 0;
 *     }
 *
 * wb_load_from(model, old, .layers = no_dropout) loads Chain(Dense, Dense) into Chain(Dense,
 * Dropout, Dense), and the other way round. If the two chains have different lengths after the
 * filter, that is an error; but with .partial the file may have more layers than the model. */
#define wb_load(...) WB_MAKE(wb_load_make, load, __VA_ARGS__)
WB_API wb_status wb_load_make(wb_load_desc desc);

/* The opposite of wb_save_named: takes the same list and loads into the objects, which must exist.
 * Models and trees are loaded as by wb_load. An optimiser must have a model of the same structure
 * and the same kind of rule; it gets the file's settings. A loader must have as much data and the
 * same batchsize, shuffle and drop_partial; its next batch of {0} is the one after the last that
 * was handed out. A bare array in the list is not changed: to load into an array, put it into a
 * tree. Ties stay. If one object does not fit, the error names file, path, and both sizes or
 * numbers, and nothing has changed. */
#define wb_load_named(path, ...)                                                                   \
    wb_load_named_make(path,                                                                       \
                       (int64_t)(sizeof((const wb_named[]){__VA_ARGS__}) / sizeof(wb_named)),      \
                       (const wb_named[]){__VA_ARGS__})
WB_API wb_status wb_load_named_make(const char *path, int64_t count, const wb_named *objects);

/* ---- checkpoints: a folder of files, of which the newest is loaded ----
 *
 * The path is a folder, "run/", for files run/checkpoint-000000000100.npz; or it has a name and a
 * format, "run/net.bson", for files run/net-000000000100.bson. A path that ends in another
 * extension of letters is WB_ERROR_FORMAT; a folder with a dot needs the slash, "run.v2/". wb_train
 * does all this by itself (.checkpoint); for a loop by hand:
 *
 *     int64_t step;
 *     wb_checkpoint_load("run/", &step, {"model", model}, {"adam", adam}, {"data", loader},
 *                        {"random", wb_random_state()});
 *     for (int64_t epoch = wb_loader_epoch(loader); epoch < 5; epoch++) {
 *         wb_batch batch = {0};
 *         while (wb_next(loader, &batch)) {
 *             ...
 *             if (wb_step_count(adam) % 100 == 0)
 *                 wb_checkpoint_save("run/", wb_step_count(adam), 3, ... as above);
 *         }
 *     } */

/* Saves the objects as the file with this number, which must not be negative; makes the folder if
 * there is none. When the new file is complete, older files are removed, except the keep - 1 newest
 * of them (keep 0 means 3), and so are unfinished files of killed writers. */
#define wb_checkpoint_save(path, number, keep, ...)                                                \
    wb_checkpoint_save_make(path, number, keep,                                                    \
                            (int64_t)(sizeof((const wb_named[]){__VA_ARGS__}) / sizeof(wb_named)), \
                            (const wb_named[]){__VA_ARGS__})
WB_API wb_status wb_checkpoint_save_make(const char *path, int64_t number, int64_t keep,
                                         int64_t count, const wb_named *objects);

/* Loads the file with the highest number, which is written to *number (unless number is NULL).
 * Without a file or a folder *number is -1, nothing changes, and the status is WB_OK. A damaged
 * file is skipped with a warning and renamed to NAME.damaged if an older file is undamaged; if all
 * are damaged, that is an error. A file that does not fit is an error, as in wb_load_named. */
#define wb_checkpoint_load(path, number, ...)                                                      \
    wb_checkpoint_load_make(path, number,                                                          \
                            (int64_t)(sizeof((const wb_named[]){__VA_ARGS__}) / sizeof(wb_named)), \
                            (const wb_named[]){__VA_ARGS__})
WB_API wb_status wb_checkpoint_load_make(const char *path, int64_t *number, int64_t count,
                                         const wb_named *objects);

/* ---- other names, other formats ---- */

/* A rename table maps the names of arrays in another library's file to the names in a model. It is
 * a text with a row on each line,
 *
 *     # a LeNet of PyTorch's                        comments begin with #
 *     0.weight -> layers.1.weight flip              Conv2d into Conv: reverses the kernel
 *     *.bias   -> layers.*+1.bias                   * is a part of a name without dots; *+1: that
 *                                                   part is a number, to which 1 is added
 *     7.weight -> layers.6.weight transpose         Linear into Dense
 *     encoder.** -> model.encoder.**                ** is a part of a name with its dots
 *     *.num_batches_tracked ->                      left out
 *     in_proj_bias -> k_proj.bias part 2/3          the second third, along the last dimension
 *     c_attn.weight -> k_proj.weight part 2/3 along 0      the second third of dimension 0
 *
 * For each name, the first row that matches it is used, together with all rows that have the same
 * left side: one array may go to several places. Names that no row matches stay. A star on the left
 * matches one or more characters; the first star on the right stands for what the first star on the
 * left matched, the second for the second, and so on. A row with *+1 matches only if its star
 * matched a number. In a name in double quotes a star is an ordinary character.
 *
 * The names may be followed by changes to the array, which are made in this order; dimensions count
 * from 0, in Weber's order of sizes, fastest first:
 *
 *     part 2/3 [along D]      the second third of dimension D (default: the last one), whose size
 *                             3 divides
 *     transpose               exchanges the two dimensions of a matrix
 *     permute 2,3,1,0         the new dimensions are the old 2, 3, 1 and 0, in this order
 *     flip                    reverses all dimensions but the last two
 *     squeeze 2               drops the last two dimensions, which have size 1
 *     unsqueeze 2             adds two dimensions of size 1 at the end
 *     into 2/3 [along D]      the array becomes the second third of the new one; rows with 1/3 to
 *                             3/3 are all needed, with arrays of one type and size
 *
 * They are written [transpose | permute] [flip] [squeeze | unsqueeze] [part | into], and there are
 * at most 64 parts.
 * docs/files.md says which arrays have to be transposed or reversed between PyTorch and Weber.
 * Errors name the line. A row without stars whose name is not in the file is an error, and so are
 * two arrays that get the same name. A row with stars that matches no name gives a warning. */

/* PyTorch's weights without a table: wb_load("resnet.pt", model, .from = "torch") makes the rows
 * itself. PyTorch's modules with arrays and the model's layers with arrays are brought together in
 * order; names and sizes must agree: the weight of Linear(3, 4) is that of Dense(3, 4), transposed,
 * and so on for all layers that PyTorch has, too. A chain of recurrent layers may be one module;
 * the branches of Parallel, and the parts of transformer blocks, may come in another order. Where
 * two modules have the same sizes, names must say which is which: numbers in them, 2 before 10, or
 * the model's own names. The order of the modules, which a .pt keeps, must not contradict that.
 * Where two modules could be one layer, or something does not fit, the error names the place and
 * both sizes, and nothing is loaded. num_batches_tracked is left out.
 *
 * What such a file does not say is taken from the model: strides, padding, the eps of norms, which
 * gelu. wb_torch_table returns the rows. */

typedef struct wb_convert_desc {
    WB_START_MEMBER;
    const char *rename; /* a table's text; default: names stay */
    /* "q8_0", for a .gguf: floats in two dimensions or more, whose first size is a multiple of 32,
     * become bytes with a scale for each 32; default: as they are */
    const char *type;
} wb_convert_desc;

/* Writes the tree of one file into another file, in the format of its name:
 * wb_convert("lenet.safetensors", "lenet.npz", .rename = table). Values that the format cannot
 * represent are left out, and a warning lists them; it is an error if the file has arrays and none
 * remains. bf16 becomes f32 if the format lacks bf16. .safetensors can have named arrays and texts
 * about the file, .gguf numbers and lists about it, too; .bson and .npz can have numbers, texts,
 * lists and maps; .npz also Julia's structs with their fields. */
#define wb_convert(from, ...) WB_CONVERT(from, __VA_ARGS__, WB_NO_MORE)
#define WB_CONVERT(from, to, ...)                                                                  \
    WB_QUIET_(wb_convert_make(from, to, WB_GIVEN_(convert, __VA_ARGS__)))
WB_API wb_status wb_convert_make(const char *from, const char *to, wb_convert_desc desc);
/* A new model from the part of the file at key (NULL: the default of wb_load), with the
 * file's types, on the default device. Possible for files that wb_save wrote, which have the
 * structure as text besides the arrays, and for BSON and JLD2 of Flux, since version 0.8
 * (docs/files.md lists the layers). A part that cannot be made, such as an anonymous function or a
 * layer that Weber lacks, is an error that names the place; wb_load still puts the arrays into a
 * model that you give. path may also be a folder of Hugging Face's with config.json and weights,
 * or a GGUF file: GPT-2, Llama, Mistral, Qwen2 or BERT (weber/language.h); key is then NULL or
 * "model". */
WB_API wb_layer *wb_load_model(const char *path, const char *key);
/* The same for files of arrays without a structure, as other libraries write them: structure is the
 * text, "Chain(Dense(10 => 5, relu), Dense(5 => 2))"; it is used instead of the file's own, if any.
 * The arrays have the model's paths, or are a list (Flux.params), which is loaded into the
 * trainable places of a new model in order. */
WB_API wb_layer *wb_load_model_as(const char *path, const char *key, const char *structure);

typedef struct wb_parse_desc {
    WB_START_MEMBER;
    const char *text;
    int64_t input[WB_MAX_DIMS]; /* sizes of the model's input, with the batch; 0 ends the list */
    bool pad_batch;             /* the input gets a last dimension of size 1 */
    wb_dtype dtype;             /* of the input; default f32 */
} wb_parse_desc;

/* A new model from a text, in the form that wb_save writes and that is Flux's code; its arrays are
 * initialised as by the layers' makers: wb_parse("Chain(Dense(784 => 128, relu), Dense(128 =>
 * 10))"). Where a size is _, as in Dense(_ => 5) or BatchNorm(_), it becomes the number of features
 * or channels that reach the layer from an input of the given sizes: wb_parse(text, .input = {28,
 * 28, 1, 32}), Flux's @autosize. NULL with WB_ERROR_FORMAT for a text that is not such a model,
 * with WB_ERROR_UNSUPPORTED for a layer or function that Weber does not have
 * (wb_register_layer). */
#define wb_parse(...) WB_MAKE(wb_parse_make, parse, __VA_ARGS__)
WB_API wb_layer *wb_parse_make(wb_parse_desc desc);

/* ---- files as trees ---- */

typedef enum wb_record_kind {
    WB_RECORD_NULL,
    WB_RECORD_BOOL,
    WB_RECORD_INTEGER,
    WB_RECORD_REAL,
    WB_RECORD_TEXT,
    WB_RECORD_ARRAY,
    WB_RECORD_LIST,   /* in order, without names: a vector or tuple */
    WB_RECORD_MAP,    /* named: a dictionary or named tuple */
    WB_RECORD_STRUCT, /* typed, fields in order: "Flux.Dense" */
    /* of a type that Weber does not know, such as a function or a device's array; its children
     * may be of known types */
    WB_RECORD_OPAQUE
} wb_record_kind;

/* A place in a file's tree; it lives as long as the file is open. */
typedef struct wb_record wb_record;

/* An open file, mapped into memory, or a model's state; released by wb_free. Arrays that were taken
 * from it stay valid after that; records and texts do not. */
typedef struct wb_file wb_file;
WB_API wb_file *wb_open(const char *path);
WB_API const wb_record *wb_file_root(const wb_file *file);
WB_API const char *wb_file_format(const wb_file *file); /* "BSON", "npz", "JLD2", ... */
WB_API int64_t wb_file_size(const wb_file *file);       /* bytes */
/* The bytes of the file, wb_file_size of them, borrowed from it while it is open. NULL for a
 * model's state. */
WB_API const void *wb_file_bytes(const wb_file *file);
/* The file's metadata, a map of texts (safetensors' __metadata__); of GGUF also of numbers, bools,
 * lists of texts, and arrays. NULL: none. */
WB_API const wb_record *wb_file_metadata(const wb_file *file);

/* A text (wb_text) that wb_save_named wrote: in safetensors it is in the metadata, in BSON and npz
 * a value. Valid as long as the file is open. NULL, with an error, if there is no text of this
 * name. */
WB_API const char *wb_file_text(const wb_file *file, const char *name);

/* An array that wb_save_named wrote, such as the mean that is subtracted from inputs:
 * wb_file_array(file, "mean"). On the CPU, owned by the scope (wb_record_array). NULL, with an
 * error, if there is no array of this name. */
WB_API wb_array *wb_file_array(const wb_file *file, const char *name);

/* The model as a tree without a file, structured as Flux.state: maps and lists of the model's
 * arrays, which are shared, not copied. Later updates of the model do not change the tree. */
WB_API wb_file *wb_state(wb_layer *model);

/* ---- the same in memory ----
 *
 * To put a model into a message, a database or another language's file:
 *
 *     wb_file *saved = wb_save_memory("run.npz", {"model", model}, {"adam", adam});
 *     send(wb_file_bytes(saved), wb_file_size(saved));
 *     wb_free(saved);
 *
 *     wb_file *file = wb_open_memory("run.npz", bytes, size, NULL, NULL);
 *     wb_layer *again = wb_file_model(file, "model", NULL);
 *     wb_load_named_from(file, {"model", model}, {"adam", adam});
 *     wb_free(file); */

/* What wb_save_named would write, as an open file in memory, which is the caller's: released by
 * wb_free. name is used in messages, and its extension says the format. NULL on failure, and, for
 * an optimiser with .zero, on all ranks but rank 0. */
#define wb_save_memory(name, ...)                                                                  \
    wb_save_memory_make(name,                                                                      \
                        (int64_t)(sizeof((const wb_named[]){__VA_ARGS__}) / sizeof(wb_named)),     \
                        (const wb_named[]){__VA_ARGS__})
WB_API wb_file *wb_save_memory_make(const char *name, int64_t count, const wb_named *objects);

/* Opens the bytes of a file in memory, as wb_open opens a file; name is as for wb_save_memory. The
 * bytes are not copied. They must not change until release(context, bytes) is called; without
 * release, as long as the file, or an array from it, lives. release is also called if this call
 * fails. */
WB_API wb_file *wb_open_memory(const char *name, const void *bytes, size_t size_bytes,
                               wb_release_fn *release, void *context);

/* wb_load_model_as from an open file; structure NULL: the text in the file. */
WB_API wb_layer *wb_file_model(wb_file *file, const char *key, const char *structure);

/* wb_load_named from an open file. */
#define wb_load_named_from(file, ...)                                                              \
    wb_load_named_from_make(file,                                                                  \
                            (int64_t)(sizeof((const wb_named[]){__VA_ARGS__}) / sizeof(wb_named)), \
                            (const wb_named[]){__VA_ARGS__})
WB_API wb_status wb_load_named_from_make(const wb_file *file, int64_t count,
                                         const wb_named *objects);

/* The text of the rename table that wb_load(.from = "torch") makes for the model: to look at, to
 * save, and to change for .rename. The rows of `rename`, which may be NULL, come first. Valid as
 * long as the file is open; NULL with an error if the two do not fit. With WEBER_LOG=debug wb_load
 * logs the rows, too. */
WB_API const char *wb_torch_table(wb_file *file, const char *key, wb_layer *model,
                                  const char *rename);

/* The opposite: a table for wb_convert of a file that wb_save wrote, so that the new file has the
 * names of the PyTorch file and load_state_dict takes it:
 *
 *     wb_save("ours.safetensors", model);
 *     wb_convert("ours.safetensors", "theirs.safetensors",
 *                .rename = wb_torch_table_back(resnet_pt, NULL, model)); */
WB_API const char *wb_torch_table_back(wb_file *file, const char *key, wb_layer *model);

typedef struct wb_load_from_desc {
    WB_START_MEMBER;
    wb_layer *model;
    /* a model, a wb_state, or an open file: its part at wb_load's default key */
    const void *source;
    wb_load_filter *filter;
    wb_layer_filter *layers; /* as in wb_load_desc */
    void *user;
    bool partial;
} wb_load_from_desc;

/* wb_load_from(model, source): copies the arrays of another model, a state or a file into model, by
 * the rules of wb_load. */
#define wb_load_from(...) WB_MAKE(wb_load_from_make, load_from, __VA_ARGS__)
WB_API wb_status wb_load_from_make(wb_load_from_desc desc);

/* The kind of value at the place; WB_RECORD_NULL for NULL. */
WB_API wb_record_kind wb_record_kind_of(const wb_record *record);
/* "Flux.Dense"; of an array that is packed in the file, how: "q8_0"; "" if it has no type */
WB_API const char *wb_record_type(const wb_record *record);
WB_API int64_t wb_record_count(const wb_record *record);                  /* children */
WB_API const wb_record *wb_record_at(const wb_record *record, int64_t i); /* from 0; else NULL */
/* child i's name; NULL if it has no name */
WB_API const char *wb_record_name(const wb_record *record, int64_t i);
/* By path: "model.layers.1.weight"; lists and structs count from 1. NULL with an error that lists
 * the names that exist. */
WB_API const wb_record *wb_record_get(const wb_record *record, const char *path);
/* Type, sizes (1 beyond the last dimension) and bytes of an array, without reading it. Sizes and
 * bytes are also known of some opaque values. */
WB_API wb_dtype wb_record_dtype(const wb_record *record);
WB_API int wb_record_ndim(const wb_record *record);
WB_API int64_t wb_record_size(const wb_record *record, int dim);
WB_API int64_t wb_record_bytes(const wb_record *record);
/* The value. A record of another kind is an error; the result is then false, 0, NaN or NULL. */
WB_API bool wb_record_bool(const wb_record *record);
WB_API int64_t wb_record_integer(const wb_record *record);
WB_API double wb_record_real(const wb_record *record);
WB_API const char *wb_record_text(const wb_record *record);
/* The array, on the CPU, owned by the scope. It shares the file's bytes if their alignment allows
 * it, else it is a copy. */
WB_API wb_array *wb_record_array(const wb_file *file, const wb_record *record);

#ifdef __cplusplus
}
#endif
#endif
