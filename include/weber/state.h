/* weber/state.h: models and arrays in files.
 *
 *     wb_save("model.bson", model);                              // under the key "model"
 *     wb_load("model.bson", model); // into a model of the same structure
 *     // a new model, made from the file alone; Flux's files, too
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
 * The format follows the name: .bson (Julia's BSON.jl, as Flux saves), .safetensors, .npy, .npz.
 * Arrays are copied to the host on the way out, wherever they are, and the model stays where it is;
 * a file never depends on a device. Saving is atomic: at any moment the name is the old file or the
 * new one, whole; a killed save may leave PATH.XXXXXX (six letters) beside it. Nothing in a file is
 * ever executed. Errors: weber/error.h; a damaged file is WB_ERROR_FORMAT and names path and
 * offset. */
#ifndef WEBER_STATE_H
#define WEBER_STATE_H

#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- saving and loading ---- */

/* A model, tree or array under the key "model". A model is the tree of its fields by name, as
 * Flux.state has it, and beside it, as "model_structure", the text that makes it: "Chain(Dense(10
 * => 5, relu), Dense(5 => 2))". Ties are kept. */
#define wb_save(path, object) wb_save_make(path, 1, &(const wb_named){"model", object})
/* Several under keys of their own: wb_save_named("run.bson", {"model", model}, {"epoch", epoch}).
 * Besides models, trees and arrays:
 *   an optimiser (its rule with all settings, the state of each parameter, the steps; with .zero
 *   all ranks must call, and rank 0 alone writes),
 *   a loader (its place: epoch, batch, the seed of the order; not its data),
 *   wb_random_state() (where this thread's sequence of random numbers is),
 *   a state, or an open file: its tree, {"model_state", wb_state(model)},
 *   a text, {"vocabulary", wb_text("cat\ndog")}, but not in npy; numbers are arrays, {"epoch",
 *   wb_number(3)}.
 * Together they are a checkpoint: training that goes on from it gives the bits of training that was
 * never interrupted. */
#define wb_save_named(path, ...)                                                                   \
    wb_save_make(path, (int64_t)(sizeof((const wb_named[]){__VA_ARGS__}) / sizeof(wb_named)),      \
                 (const wb_named[]){__VA_ARGS__})
WB_API wb_status wb_save_make(const char *path, int64_t count, const wb_named *objects);

/* True if the place at path ("layers.1.weight") takes part. */
typedef bool wb_load_filter(void *user, const char *path);

/* A layer of a list, of the model or of what it is loaded from. */
typedef struct wb_load_layer {
    const char *path; /* "layers.2", in its own tree */
    const char *type; /* "Dropout"; NULL if unknown: in files of arrays, and states */
    bool is_source;   /* in the file, or the model that arrays are taken from */
} wb_load_layer;

/* Whether the layer takes part. */
typedef bool wb_layer_filter(void *user, const wb_load_layer *layer);

typedef struct wb_load_desc {
    WB_START_MEMBER;
    const char *path;
    wb_layer *model;
    /* where in the file, a path; "": the whole file. Default: "model"; if the file has no "model",
     * or that does not fit, the whole file, as with PyTorch's names model.* beside lm_head */
    const char *key;
    wb_load_filter *filter; /* default: all places */
    /* default: all layers. Layers of lists without names, as chains have them, that are left meet
     * in order: the second one here takes the arrays of the second one there */
    wb_layer_filter *layers;
    void *user;   /* given to filter and layers */
    bool partial; /* arrays of the file that no place takes are ignored */
    /* a rename table's text (below): from names in the file to places in the model; names are those
     * below key */
    const char *rename;
} wb_load_desc;

/* wb_load("m.bson", model), wb_load("m.bson", model, .key = "model_state"): arrays of the file into
 * the model's places, by path. Each is moved to the device, and converted to the type, of the array
 * that it replaces. Functions, probabilities and modes stay the model's own.
 *
 * A missing array, one that no place takes (unless .partial), and other sizes are errors that name
 * path and sizes, and nothing has changed. As in Flux.loadmodel!, a bias that is absent on one side
 * fits one that is false or all zeros on the other; places that are tied take arrays that are
 * equal. A list of arrays (Flux.params) goes to the trainable places in order, ties once.
 *
 * .layers aligns chains of different length (Flux's filter): with
 *
 *     bool no_dropout(void *user, const wb_load_layer *l) {
 *         return !l->type || strcmp(l->type, "Dropout") != 0;
 *     }
 *
 * wb_load_from(model, old, .layers = no_dropout) loads Chain(Dense, Dense) into Chain(Dense,
 * Dropout, Dense), and the other way round. If one of the two chains is longer after the filter,
 * its further layers are arrays without a place, or places without an array. That is an error, but
 * .partial allows arrays without a place. */
#define wb_load(...) WB_MAKE(wb_load_make, load, __VA_ARGS__)
WB_API wb_status wb_load_make(wb_load_desc desc);

/* The opposite of wb_save_named, into objects that exist: takes the same list. Models and trees as
 * wb_load; an optimiser over a model of the same structure and with the same kind of rule, which
 * gets the file's settings; a loader over as much data, with the same batchsize, shuffle and
 * drop_partial: its next {0} goes on with the batch after the last one that was handed out. A bare
 * array in the list keeps its numbers: to load into it, put it into a tree. Ties stay. All or
 * nothing: if one does not fit, the error names file, path, and both sizes or numbers, and nothing
 * has changed. */
#define wb_load_named(path, ...)                                                                   \
    wb_load_named_make(path,                                                                       \
                       (int64_t)(sizeof((const wb_named[]){__VA_ARGS__}) / sizeof(wb_named)),      \
                       (const wb_named[]){__VA_ARGS__})
WB_API wb_status wb_load_named_make(const char *path, int64_t count, const wb_named *objects);

/* ---- checkpoints: a folder of files, the newest of which counts ----
 *
 * The path is a folder, "run/", with files checkpoint-000000000100.npz, or it names begin and
 * format of the files: "run/net.bson" with run/net-000000000100.bson. Another ending of letters is
 * WB_ERROR_FORMAT: "run.v2/" is a folder. wb_train does all this by itself (.checkpoint); for a
 * loop by hand:
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

/* Saves the objects as the file with that number, which is not negative; makes the folder if there
 * is none. When the new file is whole, older files are removed, except the keep - 1 newest of them
 * (keep 0: the 2 newest), and so are files that killed writers did not finish. */
#define wb_checkpoint_save(path, number, keep, ...)                                                \
    wb_checkpoint_save_make(path, number, keep,                                                    \
                            (int64_t)(sizeof((const wb_named[]){__VA_ARGS__}) / sizeof(wb_named)), \
                            (const wb_named[]){__VA_ARGS__})
WB_API wb_status wb_checkpoint_save_make(const char *path, int64_t number, int64_t keep,
                                         int64_t count, const wb_named *objects);

/* Loads the file with the highest number, which goes to *number (unless that is NULL). No file, no
 * folder: -1, WB_OK, and nothing has changed. A damaged file is skipped with a warning and renamed
 * to NAME.damaged if an older one is whole; if all are damaged that is an error. A file that does
 * not fit is an error, as in wb_load_named. */
#define wb_checkpoint_load(path, number, ...)                                                      \
    wb_checkpoint_load_make(path, number,                                                          \
                            (int64_t)(sizeof((const wb_named[]){__VA_ARGS__}) / sizeof(wb_named)), \
                            (const wb_named[]){__VA_ARGS__})
WB_API wb_status wb_checkpoint_load_make(const char *path, int64_t *number, int64_t count,
                                         const wb_named *objects);

/* ---- other names, other formats ---- */

/* A rename table brings the arrays of another library's file under the names of a model. It is a
 * text with a row on each line,
 *
 *     # a LeNet of PyTorch's                        what follows # is a remark
 *     0.weight -> layers.1.weight flip              Conv2d into Conv: the kernel runs backwards
 *     *.bias   -> layers.*+1.bias                   * is a part of a name without dots, *+1 that
 *              number and one more
 *     7.weight -> layers.6.weight transpose         Linear into Dense
 *     encoder.** -> model.encoder.**                ** is a part of a name with its dots
 *     *.num_batches_tracked ->                      left out
 *     in_proj_bias -> k_proj.bias part 2/3          the second third, along the last dimension
 *     c_attn.weight -> k_proj.weight part 2/3 along 0      the second third of dimension 0
 *
 * The first row that takes a name counts, and with it the rows that have the same left side: one
 * array may go to several places. Names that no row takes stay. A star on the left stands for one
 * or more characters; the first star on the right is replaced by what the first one on the left
 * took, and so on. A row whose *+1 meets no number does not take the name. A name in double quotes
 * is taken letter by letter, stars too.
 *
 * After the names stand the changes that are made to the array, in this order; dimensions count
 * from 0, in Weber's sizes, the first one fastest:
 *
 *     part 2/3 [along D]      the second third of dimension D (default: the last one), whose size
 *                             3 divides
 *     transpose               the two dimensions of a matrix change places
 *     permute 2,3,1,0         the new dimensions are the old 2, 3, 1 and 0, in this order
 *     flip                    all dimensions but the last two run backwards
 *     into 2/3 [along D]      the second third of what has the new name; all of 1/3 to 3/3 are
 *                             needed, of one type and size
 *
 * They are written [transpose | permute] [flip] [part | into] and there are at most 64 parts.
 * docs/files.md says what has to be turned between PyTorch and Weber. Errors name the line. A row
 * without stars whose name is not in the file is an error, and so are two names that become the
 * same. A row with stars that takes no name is a warning. */

typedef struct wb_convert_desc {
    WB_START_MEMBER;
    const char *rename; /* a table's text; default: names stay */
} wb_convert_desc;

/* The tree of one file into another, of the format that its name says:
 * wb_convert("lenet.safetensors", "lenet.npz", .rename = table). What the format cannot hold is
 * left out, and a warning lists it; it is an error if the file has arrays and none remains. bf16
 * becomes f32 where the format has none. .safetensors holds named
 * arrays and texts about the file; .bson and .npz hold numbers, texts, lists and maps, too; .npz
 * also Julia's structs with their fields. */
#define wb_convert(from, ...) WB_CONVERT(from, __VA_ARGS__, WB_NO_MORE)
#define WB_CONVERT(from, to, ...)                                                                  \
    WB_QUIET_(wb_convert_make(from, to, WB_GIVEN_(convert, __VA_ARGS__)))
WB_API wb_status wb_convert_make(const char *from, const char *to, wb_convert_desc desc);
/* The model at key (NULL: "model", or the whole file), made from the file alone, with the file's
 * types, on the default device: files that wb_save wrote, where the structure stands beside the
 * arrays as text, and BSON that Flux wrote, from version 0.8 on (docs/files.md lists the layers).
 * A part that cannot be made, such as an anonymous function or a layer that Weber lacks, is an
 * error that names the place; wb_load still puts the arrays into a model that you give. */
WB_API wb_layer *wb_load_model(const char *path, const char *key);
/* The same for arrays that have no structure beside them, as other libraries write: structure is
 * the text, "Chain(Dense(10 => 5, relu), Dense(5 => 2))"; it comes before the file's own. The
 * arrays have the model's paths, or are a list (Flux.params), which goes to the trainable places of
 * a new model in order. */
WB_API wb_layer *wb_load_model_as(const char *path, const char *key, const char *structure);

typedef struct wb_parse_desc {
    WB_START_MEMBER;
    const char *text;
    int64_t input[WB_MAX_DIMS]; /* sizes of the model's input, with the batch; 0 ends them */
    bool pad_batch;             /* the input gets a last dimension of size 1 */
    wb_dtype dtype;             /* of the input; default f32 */
} wb_parse_desc;

/* A new model from a text, in the form that wb_save writes and that Flux's users write; its arrays
 * are initialised as by the layers' makers: wb_parse("Chain(Dense(784 => 128, relu), Dense(128 =>
 * 10))"). Where a size is _, as in Dense(_ => 5) or BatchNorm(_), it becomes the number of features
 * or channels that reach the layer from an input of the given sizes: wb_parse(text, .input = {28,
 * 28, 1, 32}), Flux's @autosize. NULL with WB_ERROR_FORMAT for any other text, with
 * WB_ERROR_UNSUPPORTED for
 * a layer or function that Weber does not have (wb_register_layer). */
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
    /* typed, but not understood: a function, a device's array; its children may be */
    WB_RECORD_OPAQUE
} wb_record_kind;

/* A place in a file's tree; it lives as long as the file is open. */
typedef struct wb_record wb_record;

/* An open file, mapped into memory, or a model's state; released by wb_free. Arrays that were taken
 * from it stay valid after that; records and texts do not. */
typedef struct wb_file wb_file;
WB_API wb_file *wb_open(const char *path);
WB_API const wb_record *wb_file_root(const wb_file *file);
WB_API const char *wb_file_format(const wb_file *file); /* "BSON", "safetensors", "npy", "npz" */
WB_API int64_t wb_file_size(const wb_file *file);       /* bytes */
/* All of them, wb_file_size bytes, as long as the file is open: borrowed from the file. NULL for a
 * model's state. */
WB_API const void *wb_file_bytes(const wb_file *file);
/* The texts that the file has about itself, a map (safetensors' __metadata__); NULL: none. */
WB_API const wb_record *wb_file_metadata(const wb_file *file);

/* A text that wb_save_named put there (wb_text): among the metadata of safetensors, a value of BSON
 * and npz. It lives as long as the file is open. NULL, with an error, if there is no text of this
 * name. */
WB_API const char *wb_file_text(const wb_file *file, const char *name);

/* An array that wb_save_named put there, such as a mean by which inputs are scaled:
 * wb_file_array(file, "mean"), as wb_record_array gives it, on the CPU. NULL, with an error, if
 * there is no array of this name. */
WB_API wb_array *wb_file_array(const wb_file *file, const char *name);

/* The model as a tree without a file, of the shape that Flux.state gives: maps and lists of its
 * arrays, which are the model's own, not copies. Later updates of the model do not reach it. */
WB_API wb_file *wb_state(wb_layer *model);

/* ---- the same in memory ----
 *
 * For what goes into a message, a database or another language's file:
 *
 *     wb_file *saved = wb_save_memory("run.npz", {"model", model}, {"adam", adam});
 *     send(wb_file_bytes(saved), wb_file_size(saved));
 *     wb_free(saved);
 *
 *     wb_file *file = wb_open_memory("run.npz", bytes, size, NULL, NULL);
 *     wb_layer *again = wb_file_model(file, "model", NULL);
 *     wb_load_named_from(file, {"model", model}, {"adam", adam});
 *     wb_free(file); */

/* What wb_save_named writes into a file, as an open file in memory, which is the caller's: released
 * by wb_free. name is for messages, and its ending is the format. NULL on failure, and, with .zero,
 * on all ranks but rank 0. */
#define wb_save_memory(name, ...)                                                                  \
    wb_save_memory_make(name,                                                                      \
                        (int64_t)(sizeof((const wb_named[]){__VA_ARGS__}) / sizeof(wb_named)),     \
                        (const wb_named[]){__VA_ARGS__})
WB_API wb_file *wb_save_memory_make(const char *name, int64_t count, const wb_named *objects);

/* Opens a file's bytes, as wb_open does the file; name as above. They are read where they are, and
 * must stay as they are until release(context, bytes) is called; without release as long as the
 * file and arrays that were taken from it live. release is called, too, where the call fails. */
WB_API wb_file *wb_open_memory(const char *name, const void *bytes, size_t size_bytes,
                               wb_release_fn *release, void *context);

/* wb_load_model_as of an open file; structure NULL: what stands beside the arrays. */
WB_API wb_layer *wb_file_model(wb_file *file, const char *key, const char *structure);

/* wb_load_named from an open file. */
#define wb_load_named_from(file, ...)                                                              \
    wb_load_named_from_make(file,                                                                  \
                            (int64_t)(sizeof((const wb_named[]){__VA_ARGS__}) / sizeof(wb_named)), \
                            (const wb_named[]){__VA_ARGS__})
WB_API wb_status wb_load_named_from_make(const wb_file *file, int64_t count,
                                         const wb_named *objects);

typedef struct wb_load_from_desc {
    WB_START_MEMBER;
    wb_layer *model;
    /* a model, a state, or an open file: what is at "model" there, or all of it */
    const void *source;
    wb_load_filter *filter;
    wb_layer_filter *layers; /* as in wb_load_desc */
    void *user;
    bool partial;
} wb_load_from_desc;

/* wb_load_from(model, source): copies the arrays of another model, or of a tree, into model, by the
 * rules of wb_load. */
#define wb_load_from(...) WB_MAKE(wb_load_from_make, load_from, __VA_ARGS__)
WB_API wb_status wb_load_from_make(wb_load_from_desc desc);

/* The kind of value at the place; WB_RECORD_NULL for NULL. */
WB_API wb_record_kind wb_record_kind_of(const wb_record *record);
/* "Flux.Dense"; "" if it has no type */
WB_API const char *wb_record_type(const wb_record *record);
WB_API int64_t wb_record_count(const wb_record *record);                  /* children */
WB_API const wb_record *wb_record_at(const wb_record *record, int64_t i); /* from 0; NULL outside */
/* child i's name; NULL: it has none */
WB_API const char *wb_record_name(const wb_record *record, int64_t i);
/* By path: "model.layers.1.weight"; lists and structs count from 1. NULL with an error that lists
 * the names that exist. */
WB_API const wb_record *wb_record_get(const wb_record *record, const char *path);
/* Facts about an array, without reading it. Sizes (1 beyond the last) and bytes also of opaque
 * values that have them. */
WB_API wb_dtype wb_record_dtype(const wb_record *record);
WB_API int wb_record_ndim(const wb_record *record);
WB_API int64_t wb_record_size(const wb_record *record, int dim);
WB_API int64_t wb_record_bytes(const wb_record *record);
/* The value; another kind is an error, and gives false, 0, NaN, NULL. */
WB_API bool wb_record_bool(const wb_record *record);
WB_API int64_t wb_record_integer(const wb_record *record);
WB_API double wb_record_real(const wb_record *record);
WB_API const char *wb_record_text(const wb_record *record);
/* The array, over the file's own bytes where their alignment allows, else a copy; it belongs to the
 * scope, on the CPU. */
WB_API wb_array *wb_record_array(const wb_file *file, const wb_record *record);

#ifdef __cplusplus
}
#endif
#endif
