/* PyTorch's files without a table: the modules of a file and the layers of a model are brought
 * together by their order, their arrays' names and sizes, and the rows of a rename table are made
 * of the pairs.
 *
 * Both sides are trees of nodes. A unit is a module, or a layer, that has arrays; a node with items
 * says in which order its units may come. */
#ifndef WB_MODELS_TORCH_H
#define WB_MODELS_TORCH_H

#include "formats/record.h"
#include "layers/layer.h"
#include "models/rename_table.h"

typedef enum wb_torch_kind {
    WB_TORCH_UNIT,
    WB_TORCH_SEQUENCE, /* items come in order */
    WB_TORCH_BRANCHES, /* items come in any order */
    WB_TORCH_EITHER,   /* one of the items: other forms of the same arrays */
    WB_TORCH_NAMES,    /* items come in any order, but those of one word in that of numbers */
} wb_torch_kind;

/* How PyTorch may have an array of the model: "weight" of these sizes, and what the table does with
 * it. */
typedef struct wb_torch_form {
    const char *role, *options; /* "weight_ih_l#", # for a number; "transpose" or "" */
    bool is_fused;              /* a part of an array that is q, k and v; the module says so */
    /* a Linear's, or that of Hugging Face's Conv1D, where the row has both */
    enum { WB_TORCH_ANY, WB_TORCH_LINEAR, WB_TORCH_CONV1D } of;
    int ndim;
    int64_t sizes[WB_MAX_DIMS];
} wb_torch_form;

enum { WB_TORCH_FORMS = 6 };

typedef struct wb_torch_array {
    const char *name;                    /* in the file; of the model: its path */
    const char *role;                    /* of the file: "weight" */
    const wb_record *record;             /* of the file */
    wb_torch_form forms[WB_TORCH_FORMS]; /* of the model */
    int form_count;
} wb_torch_array;

/* What says in which order the modules of a file may come. */
typedef enum wb_torch_order {
    WB_TORCH_BY_FILE,    /* that of the file */
    WB_TORCH_BY_NAMES,   /* numbers in names */
    WB_TORCH_BY_NOTHING, /* any */
} wb_torch_order;

typedef struct wb_torch_node wb_torch_node;
struct wb_torch_node {
    wb_torch_kind kind;
    wb_torch_node *parent;
    const char *name, *torch; /* in the parent; and as PyTorch's module has it; or NULL */
    /* of the file: the module's path, as "encoder.layers.0"; of the model: the layer's */
    const char *path;
    const wb_layer *layer; /* of units of the model: for messages */
    char head;             /* q, k, v: the module must have this letter; o: it must have none */
    wb_torch_array *arrays;
    int64_t array_count, array_capacity;
    wb_torch_node **items;
    int64_t count, capacity;
    /* of an item of NAMES: its name without the number at its end, which is NULL without one; and
     * the item of the same word that must come before */
    const char *word;
    size_t word_bytes;
    int64_t number;
    const wb_torch_node *before;
    int64_t at;                /* of units of an ordered file: their place */
    const wb_torch_node *mate; /* of units of the file: the one layer that it may be; NULL: any */
    bool is_conv1d;            /* of units of the file: a Conv1D in place of a Linear */

    /* of the search */
    int64_t begin; /* the step in which it began; -1: not yet */
    bool is_done;
    wb_torch_node *chosen; /* of EITHER */
    int64_t left;          /* items that are not done */
};

/* An array of the model that is tied to an earlier one. */
typedef struct wb_torch_tie {
    wb_torch_array array, first;
    struct wb_torch_tie *next;
} wb_torch_tie;

typedef struct wb_torch {
    wb_file *file;
    wb_arena arena;
    wb_rename_table given; /* rows of the user, which come first */
    const char **taken;    /* places of the model that they fill */
    int64_t taken_count, taken_capacity;
    bool is_ordered;    /* the file keeps the order of the state_dict */
    bool told_by_names; /* of a misfit: the search by names came further than that by the order */
    bool ties_are_once; /* an array in two places of the model is in the file once */
    wb_torch_node *model, *modules;
    wb_torch_node **units; /* of the file */
    int64_t module_count;
    wb_torch_tie *ties;
    const char *back; /* rows from the model's names, which begin so, to PyTorch's; NULL: to ours */
    wb_text table;    /* the rows */
} wb_torch;

void *wb_torch_take(wb_torch *t, size_t size_bytes);
wb_torch_node *wb_torch_node_new(wb_torch *t, wb_torch_kind kind, const char *name);
bool wb_torch_add(wb_torch *t, wb_torch_node *node, wb_torch_node *item);
wb_torch_array *wb_torch_add_array(wb_torch *t, wb_torch_node *unit);

/* torch_model.c: makes t->model, NULL where no array is left for it. False with the error
 * recorded. */
bool wb_torch_read_model(wb_torch *t, wb_layer *model);
/* torch_file.c: makes t->units of the arrays below root, and rows for what is left out. */
bool wb_torch_read_file(wb_torch *t, const wb_record *root);
/* Takes modules with the names of Hugging Face's Conv1D for such; false: there are none. */
bool wb_torch_take_conv1d(wb_torch *t);
/* Makes t->modules of the units. */
bool wb_torch_arrange(wb_torch *t, wb_torch_order order);

/* torch_match.c: pairs in the order of the model. */
typedef struct wb_torch_pair {
    wb_torch_node *layer, *module;
} wb_torch_pair;
/* The pairs, as many as *count, in t's arena; NULL with an error that says where the two differ. */
const wb_torch_pair *wb_torch_match(wb_torch *t, int64_t *count);

/* A name as it is written in a table: in quotes where it needs them. */
void wb_torch_put_name(wb_text *text, const char *name);

/* The form in which the module has the array of the layer, and its array there; NULL: it has
 * none. */
const wb_torch_form *wb_torch_form_in(const wb_torch_node *module, const wb_torch_array *array,
                                      const wb_torch_array **found);

/* q, k or v if the module's name is that of a projection of attention; else 0. */
char wb_torch_head(const char *path);

/* torch_advice.c: the error where a model and a file do not fit: at this pair, of which one may be
 * NULL. */
void wb_torch_fail(const wb_torch *t, int64_t step, const wb_torch_node *layer,
                   const wb_torch_node *module);
/* Two modules could both be the layer; the file's order and the names may contradict each other. */
typedef struct wb_torch_doubt {
    const wb_torch_node *layer, *first, *second;
    bool names_contradict; /* first by the file's order, second by the names */
} wb_torch_doubt;
void wb_torch_fail_either(const wb_torch *t, const wb_torch_doubt *doubt);

/* Logs what the model says and the file does not, where libraries differ. */
void wb_torch_tell_assumed(wb_file *file, wb_layer *model);

/* torch.c: the text of a rename table for the arrays below root, that of the user first; in the
 * file's arena. With back, the opposite: from back and the model's names to those of the file. NULL
 * with the error recorded. */
const char *wb_torch_rows(wb_file *file, const wb_record *root, wb_layer *model, const char *rename,
                          const char *back);
/* The table of a load, .rename first; its rows are logged. */
const char *wb_torch_table_for(wb_file *file, const wb_record *root, const wb_load_desc *desc);
/* The part of a checkpoint that is the model's, by the names that PyTorch's users give it; else
 * root. */
const wb_record *wb_torch_state_dict(const wb_record *root);
/* False, with the error recorded, if the name of a library is not one that is known. */
bool wb_check_from(const char *function, const char *from);

#endif
