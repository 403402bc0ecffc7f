/* weber/class.h: layers of your own: structs with a table of their fields.
 *
 *     typedef struct ActorCritic {
 *         wb_layer layer;                                          // first
 *         wb_layer *actor;
 *         wb_array *critic;
 *     } ActorCritic;
 *     WB_FUNCTOR(ActorCritic, NULL, WB_CHILD_FIELD(ActorCritic, actor),
 *                WB_ARRAY_FIELD(ActorCritic, critic));
 *
 *     ActorCritic *m = wb_new(ActorCritic);
 *     m->actor = wb_dense(4, 2);
 *     m->critic = wb_keep(wb_ones(WB_F32, 2));
 *     ... wb_gradient(l, &m->layer), wb_map(f, NULL, &m->layer), wb_show(m) ...
 *     wb_free(m);
 *
 * The second argument is the forward function that wb_apply calls, or NULL. The list names the
 * members that Weber handles: WB_ARRAY_FIELD and WB_CHILD_FIELD are trained, WB_STATE_FIELD is
 * moved and saved but not trained (wb_set changes it), WB_FIXED_FIELD and WB_FIXED_CHILD_FIELD are
 * released with the struct but neither moved nor trained. A member that is not listed is a plain
 * value: copied as bytes, neither trained nor saved. wb_setup and wb_save warn of such a member if
 * it points to a layer or an array (list it as FIXED if neither should move or train it), and
 * wb_save warns if it is not zero; WB_VALUE_FIELD declares a plain value and avoids that. A struct
 * without a table is refused: wb_new does not compile, and at run time the error names the struct.
 *
 * Settings are rows of the table, too. They are printed, "Power(2 => 3, tanh, p=0.5)", saved, and
 * read back:
 *
 *     WB_FUNCTOR(Power, forward, WB_SETTING(Power, in, WB_FIELD_PAIR, .low = 1),
 *                WB_SETTING(Power, activation, WB_FIELD_ACTIVATION),
 *                WB_SETTING(Power, p, WB_FIELD_REAL, .usual = 2, .high = 10),
 *                WB_ARRAY_FIELD(Power, weight));
 *     wb_register_layer(&Power_functor);                           // for wb_load_model
 *     wb_layer *layer = wb_layer_complete(&power->layer);          // defaults and ranges
 *
 * The layers of the library: weber/layers.h; functions on models: weber/model.h. Members whose
 * names end in _ are private. Errors: weber/error.h. */
#ifndef WEBER_CLASS_H
#define WEBER_CLASS_H

#include "ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- a struct of your own ---- */

typedef struct wb_layer_class wb_layer_class;

/* The first member of every layer's struct. */
typedef struct wb_layer {
    int64_t object_[2];
    const wb_layer_class *class_;
    void *spare_;
    uint64_t stamp_;
    int32_t refs_, owned_; /* references; how many of them are not the caller's */
    uint32_t owner_;       /* the context that it belongs to */
    uint8_t mode_;
    bool shared_, frozen_;
} wb_layer;

/* A list of layers and arrays, with or without names, as in chains and trees. Filled by
 * wb_list_append, released by the library. */
typedef struct wb_layer_item {
    char *name;      /* NULL: its path has its number in the list, from 1 */
    wb_layer *layer; /* an item is a layer or an array; the other one is NULL */
    wb_array *array;
} wb_layer_item;
typedef struct wb_layer_list {
    wb_layer_item *items;
    int64_t count;
} wb_layer_list;

/* An activation function: wb_relu, wb_tanh, ...; NULL is the identity. */
typedef wb_array *wb_activation(wb_array *x);

/* The table of a struct, and the function that wb_apply calls or NULL. */
#define WB_FUNCTOR(type, function, ...) WB_FUNCTOR_(type, forward, function, __VA_ARGS__)
/* The same with a forward function of several arrays (forward_many of the class). */
#define WB_FUNCTOR_MANY(type, function, ...) WB_FUNCTOR_(type, forward_many, function, __VA_ARGS__)
#define WB_FUNCTOR_(type, member, function, ...)                                                   \
    static const wb_field type##_fields[] = {__VA_ARGS__};                                         \
    static const wb_layer_class type##_functor = {                                                 \
        .name = #type,                                                                             \
        .size_bytes = sizeof(type),                                                                \
        .fields = type##_fields,                                                                   \
        .field_count = (int)(sizeof type##_fields / sizeof *type##_fields),                        \
        .member = function}
#define WB_FIELD_(type, field, ...)                                                                \
    { .name = #field, .offset = offsetof(type, field), .kind = __VA_ARGS__ }
#define WB_ARRAY_FIELD(type, field)  WB_FIELD_(type, field, WB_FIELD_ARRAY, .trainable = true)
#define WB_STATE_FIELD(type, field)  WB_FIELD_(type, field, WB_FIELD_STATE)
#define WB_CHILD_FIELD(type, field)  WB_FIELD_(type, field, WB_FIELD_CHILD, .trainable = true)
#define WB_FROZEN_FIELD(type, field) WB_FIELD_(type, field, WB_FIELD_CHILD)
#define WB_LIST_FIELD(type, field)   WB_FIELD_(type, field, WB_FIELD_LIST, .trainable = true)
#define WB_HIDDEN_FIELD(type, field) WB_FIELD_(type, field, WB_FIELD_HIDDEN, .text_only = true)
#define WB_VALUE_FIELD(type, field)                                                                \
    WB_FIELD_(type, field, WB_FIELD_VALUE, .number = WB_NUMBERS_AT(&((type *)0)->field))
#define WB_FIXED_FIELD(type, field)       WB_FIELD_(type, field, WB_FIELD_ARRAY, .fixed = true)
#define WB_FIXED_CHILD_FIELD(type, field) WB_FIELD_(type, field, WB_FIELD_CHILD, .fixed = true)
/* The kind, then members of wb_field: WB_SETTING(Power, p, WB_FIELD_REAL, .usual = 2). */
#define WB_SETTING(type, field, ...) WB_FIELD_(type, field, __VA_ARGS__)

/* Registers the class under its name, so that wb_load_model can make its layers: for the whole
 * process, from then on. The class must stay valid. Fails if another class has the name. */
WB_API wb_status wb_register_layer(const wb_layer_class *layer_class);

/* The last step of making a layer: fills in the defaults of settings that are 0, then checks
 * ranges, "Power: p must be from 0 to 10, got 11". Returns the layer, or NULL after releasing
 * it. */
WB_API wb_layer *wb_layer_complete(wb_layer *layer);

/* A zeroed struct of the class, released by wb_free. Fails, naming it, if the class has no
 * table. */
#define wb_new(type) ((type *)(void *)wb_layer_new(&type##_functor))
WB_API wb_layer *wb_layer_new(const wb_layer_class *layer_class);

/* Appends a layer or an array to a list (WB_LIST_FIELD) of a struct of your own, with a name if the
 * list's entries have names, else NULL:
 *
 *     wb_list_append(&m->layer, "blocks", NULL, wb_dense(4, 4));   // m->blocks.items[0].layer
 *
 * A list without a name of its own is "". The struct takes over a layer, also on failure; of an
 * array it holds a reference. Fails with WB_ERROR_ARGUMENT, without changing the list, on a list
 * that the struct does not have, on a list without a name beside other arrays, layers, lists or
 * settings, on a name that another entry has, and on a layer that contains the struct; that layer
 * stays the caller's. Chains: wb_chain_append. */
WB_API wb_status wb_list_append(wb_layer *layer, const char *list, const char *name, void *object);

/* ---- the rows of a table ---- */

typedef enum wb_field_kind {
    WB_FIELD_ARRAY, /* wb_array *: a parameter, held (wb_keep) by the struct; may be NULL */
    WB_FIELD_STATE, /* wb_array *: moved, saved, never trained (running statistics) */
    WB_FIELD_CHILD, /* wb_layer *: owned by the struct */
    WB_FIELD_LIST,  /* wb_layer_list */
    /* wb_array *: a hidden state, from one call to the next; NULL at first; not trained, moved,
     * saved or copied; wb_reset makes it NULL */
    WB_FIELD_HIDDEN,
    /* anything else: copied as bytes, otherwise ignored; in C11, wb_synchronize sends a single
     * number (whose type WB_VALUE_FIELD can tell) */
    WB_FIELD_VALUE,

    /* settings: printed, saved and read back. For each kind: the C type of the member, and its
     * form in text */
    WB_FIELD_INTEGER, /* int64_t */
    /* one int64_t for each name in the row's form, "in => out" or, say, "(in, in2) => out"; equal
     * numbers in parentheses are written once: (8, 8) => 4 as 8 => 4 */
    WB_FIELD_PAIR,
    WB_FIELD_REAL,       /* double */
    WB_FIELD_BOOL,       /* bool */
    WB_FIELD_ACTIVATION, /* wb_activation *; NULL is the identity */
    WB_FIELD_CONNECTION, /* wb_connection *; NULL passes all arrays on, in text tuple */
    WB_FIELD_CHOICE,     /* int, index of one of the row's choices, from 0 */
    WB_FIELD_NAME,       /* char[48]: a path, in text :weight; empty: the row's first choice */
    WB_FIELD_REALS,      /* double[3]; the first 0 ends the list: 2, (2, 3) */
    WB_FIELD_SIZES,      /* int64_t[3], or [most]; the first 0 ends the list: (5, 5) */
    WB_FIELD_EACH,       /* int64_t[3]: one for each number of SIZES; a single one is for all */
    WB_FIELD_PADDING,    /* int64_t[2][3]: padding on both sides; more padding after x */
    WB_FIELD_DIMS,       /* unsigned, WB_DIM(0) | ...; 0: all; in text dimensions count from 1 */
    WB_FIELD_MODE,       /* no member: the layer's mode, train, test (active=false) or auto */
    WB_FIELD_OTHER,      /* no member: only Flux's struct has it. Must stay the last kind */
} wb_field_kind;

/* A row of a struct's table: an array or layer that it holds, or a setting. */
typedef struct wb_field {
    /* in paths and text; NULL: a list whose items' names alone are in paths; no other member of the
     * struct is then an array, layer, list or setting */
    const char *name;
    size_t offset;
    wb_field_kind kind;
    bool trainable; /* of arrays; of children: whether anything in them is trained */
    /* arrays and children that belong to the struct but are neither moved nor trained */
    bool fixed;

    /* For settings. `usual` is the default: INTEGER, REAL and BOOL have it in a new struct until
     * the program sets them. A 0 that is out of range means `usual`, too; with .zero_counts it is
     * an error. Numbers, flags and pads that equal their default are not written into text. For
     * some kinds `usual` has another meaning:
     *     EACH        -1  the default of an entry is the same entry of SIZES
     *     PAIR        -1  the default of a group is the first number; in text a single number
     *                     sets all
     *     ACTIVATION   1  NULL is not the identity
     *     DIMS        -1  0 is the last dimension
     *     CHOICE      -1  the setting is always written
     * Numbers are at least low, or above it (is_above), and at most high, unless high is 0. */
    double usual, low, high;
    bool is_above; /* low itself is not allowed */
    bool zero_counts;
    /* written first and without its name, as PAIR, ACTIVATION, CONNECTION and SIZES always are;
     * also possible for a CHILD */
    bool positional;
    bool spread; /* of a LIST: each entry is written as an argument */
    int most;    /* of SIZES: length of the member's array; default 3 */
    /* of CHOICE: the names, ended by NULL; "+|sum" is written + and read as + or sum. Of PAIR: the
     * names of its numbers in messages; NULL: those of its form */
    const char *const *choices;
    /* of PAIR: its form in text, at most four groups, "(in, in2) => out"; a number that is not
     * given equals the one before it in its group. NULL: "in => out" */
    const char *form;
    /* of REALS: offset of other REALS that can be given instead; 0: none */
    size_t instead;
    /* offset of the array from which a number that is not given is derived; 0: none */
    size_t given_by;
    /* offset of a BOOL; 0: none. with: this array or child exists if it is true; without: this
     * setting is not used if it is true */
    size_t with, without;
    /* of a CHILD: wb_layer_complete takes it over, as a chain takes over its layers */
    bool counted;
    const wb_layer_class *part; /* of a CHILD that the layer makes itself: its class; not written */
    bool optional;              /* of such a CHILD: may be NULL; in files it is there, or not */

    /* Flux's struct, whose fields have the order of this table. */
    const char *flux; /* the field's name in Flux; NULL: as here */
    int since;        /* Flux's struct has this field only if it has at least this many fields */
    bool text_only;   /* Flux's struct has no such field */
    /* of an array that Flux has as an item, counted from 1, of its field named `tuple` */
    const char *tuple;
    int item;
    bool parameter; /* of a CHOICE or BOOL: in Flux the first type parameter of the struct */
    /* PyTorch's module. Of an array: its name there, and what a rename table (weber/state.h) does
     * with it, "weight transpose"; NULL: the name here. Of a child: the name that its module has
     * there; or, with a star, what the names of its arrays become in the module of this layer:
     * "in_proj_* part 1/3" makes in_proj_weight of weight; | separates forms */
    const char *torch;
    int rank;   /* order in text: rows with -1 come before those with 0, rows with 1 after */
    int number; /* of a VALUE: WB_NUMBERS_AT its address (weber/dtype.h); 0: anything */
} wb_field;

/* ---- the class of a struct ---- */

/* How far a layer is in a sequence that it gets in pieces (wb_cache). */
typedef struct wb_positions {
    int64_t length; /* most positions; 0: no cache */
    int64_t passed; /* positions of earlier pieces */
} wb_positions;

struct wb_layer_class {
    const char *name; /* "Dense" */
    size_t size_bytes;
    const wb_field *fields;
    int field_count;
    wb_array *(*forward)(wb_layer *layer, wb_array *x); /* NULL: cannot be applied */
    /* Writes one line, "Dense(784 => 128, relu)"; brief: without settings, as in messages. NULL:
     * the table says it. */
    void (*describe)(const wb_layer *layer, bool brief, char *text, size_t size_bytes);
    /* Derives numbers that are not given from arrays that are. NULL: does so for rows with
     * given_by: a number is the size of an array (n); a PAIR has the sizes of an array in reverse,
     * in => out of (out, in); SIZES are an array's sizes. */
    void (*derive)(wb_layer *layer);
    /* Called when all settings are within their ranges: checks that need several settings, and
     * makes missing arrays. Returns false with the error recorded. NULL: nothing to do. */
    bool (*complete)(wb_layer *layer);
    const char *before_keys; /* what text has before settings with a name; NULL: ", " */
    const char *equals;      /* between key and value; NULL: "=" */
    const char *former;      /* the name in older versions of Flux; NULL: this one */
    /* True: a size that a text gives as _ (wb_parse) is that of the input's last dimension but one,
     * if the input has three or more dimensions. Else it is that of the first dimension. */
    bool has_channels;
    /* Instead of forward, for a layer with several inputs or results: writes its results and
     * returns their number, 1 to WB_MOST_ARRAYS, or 0 with the error recorded. */
    int (*forward_many)(wb_layer *layer, int count, wb_array *const *inputs, wb_array **results);
    /* For a layer whose results depend on positions in a sequence: the offset of its wb_positions
     * (0: none), and how many positions it can take (0: wb_cache does not affect it; NULL: any). */
    size_t positions;
    int64_t (*most_positions)(const wb_layer *layer);
    /* For resources that a struct owns and no row lists, such as memory or a reference of another
     * language. copied: called on each copy (wb_clone, wb_map, wb_share ...), when settings and
     * members without a row are copied byte by byte, and before arrays and layers are. It replaces
     * the resources that the copy must not share. False, with the error recorded, fails the copy,
     * whose members are then zeroed. NULL: copying the bytes is enough. released: called when the
     * last reference is freed, on the thread that frees it, before the fields are released. Members
     * may be zero, as after wb_new. */
    bool (*copied)(wb_layer *copy);
    void (*released)(wb_layer *layer);
};
enum { WB_MOST_ARRAYS = 16 };

#ifdef __cplusplus
}
#endif
#endif
