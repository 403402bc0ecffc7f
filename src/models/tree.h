/* Models as trees of records, in the shape of Flux.state. */
#ifndef WB_MODELS_TREE_H
#define WB_MODELS_TREE_H

#include "formats/record.h"
#include "layers/layer.h"

/* An object that was met, and its record, which is shared if it is met again. A layer can be met in
 * its model and, with another leaf function (owner), in an optimiser. */
typedef struct wb_met {
    const void *object;
    const void *owner; /* the maker's owner at that time */
    wb_record *record;
} wb_met;

typedef struct wb_tree_maker wb_tree_maker;

/* The record for an array's place. */
typedef wb_record *wb_tree_leaf(wb_tree_maker *maker, wb_array *const *slot);

/* Makes trees in its arena; start with {.is_for_file = ...}. */
struct wb_tree_maker {
    /* arrays are copied to the host, dense; else the records have the arrays themselves */
    bool is_for_file;
    bool has_types; /* the records of layers have the names of their classes as types */
    wb_arena arena;
    wb_met *met;
    int64_t count, capacity;
    int depth;
    wb_tree_leaf *leaf; /* NULL: the array itself */
    const void *owner;  /* the object whose arrays leaf returns */
};

/* The records' arrays belong to the scope. NULL on failure. */
wb_record *wb_tree_of_array(wb_tree_maker *maker, wb_array *x);
wb_record *wb_tree_of_layer(wb_tree_maker *maker, wb_layer *layer);
/* The tree of an open file, valid as long as that is open; of a wb_state, as it is written to
 * files. */
wb_record *wb_tree_of_file(wb_tree_maker *maker, const wb_file *file);
/* True if each object has a name, is not NULL, and belongs to this thread. */
bool wb_may_use_named(const char *function, int64_t count, const wb_named *objects);
/* To be called by all ranks before trees are made: rank 0 gets the whole states of optimisers whose
 * states are divided among ranks. wb_are_gathered_here says whether this rank has them all. */
wb_status wb_gather_objects(int64_t count, const wb_named *objects);
bool wb_are_gathered_here(int64_t count, const wb_named *objects);
void wb_drop_gathered_objects(int64_t count, const wb_named *objects);

/* The tree of any object that can be saved (objects.c): the above, optimisers, and objects with
 * numbers for files. */
wb_record *wb_tree_of_object(wb_tree_maker *maker, const wb_named *named);

/* Finds the record of an object that was met with the maker's current owner, or NULL;
 * wb_tree_remember adds one. */
wb_record *wb_tree_known(const wb_tree_maker *maker, const void *object);
wb_record *wb_tree_remember(wb_tree_maker *maker, const void *object, wb_record *record);

/* The class's field of that name that is an array, layer or list; NULL: there is none. */
const wb_field *wb_class_field(const wb_layer_class *layer_class, const char *name);

void wb_tree_maker_release(wb_tree_maker *maker);

#endif
