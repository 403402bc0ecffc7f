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
 * The second argument is the forward function that wb_apply calls, or NULL. The list says what
 * takes part: WB_STATE_FIELD is moved but not trained (wb_set says how it changes), WB_FIXED_FIELD
 * and WB_FIXED_CHILD_FIELD are released with the struct but neither moved nor trained. A member
 * that is not listed is a plain value: copied as bytes, neither trained nor saved. wb_setup and
 * wb_save warn of such a member if it points to a layer or an array (list it as FIXED if it is to
 * stay as it is), and wb_save warns if it is not zero; WB_VALUE_FIELD says that it is meant to be a
 * plain value. A struct without a table is refused: wb_new does not compile, and at run time the
 * error names the struct.
 *
 * Settings are rows too. They are printed, "Power(2 => 3, tanh, p=0.5)", saved, and read back:
 *
 *     WB_FUNCTOR(Power, forward, WB_SETTING(Power, in, WB_FIELD_PAIR, .low = 1),
 *                WB_SETTING(Power, activation, WB_FIELD_ACTIVATION),
 *                WB_SETTING(Power, p, WB_FIELD_REAL, .usual = 2, .high = 10),
 *                WB_ARRAY_FIELD(Power, weight));
 *     wb_register_layer(&Power_functor);                           // for wb_load_model
 *     wb_layer *layer = wb_layer_complete(&power->layer);          // defaults and ranges
 *
 * The layers of the library: weber/layers.h; what is done to a model: weber/model.h. Members ending
 * in _ belong to the library. Errors: weber/error.h. */
#ifndef WEBER_CLASS_H
#define WEBER_CLASS_H

#include "ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- a struct of your own ---- */

typedef struct wb_layer_class wb_layer_class;

/* What every layer begins with. */
typedef struct wb_layer {
    int64_t object_[2];
    const wb_layer_class *class_;
    void *spare_;
    uint64_t stamp_;
    int32_t refs_, owned_; /* references; how many of them are not the caller's */
    uint32_t owner_;       /* the thread that it belongs to */
    uint8_t mode_;
    bool shared_;
} wb_layer;

/* Fields that are layers, arrays or both, named or not: chains and trees. Filled by
 * wb_list_append, released by the library. */
typedef struct wb_layer_item {
    char *name; /* NULL: known by its place, from 1 */
    wb_layer *layer;
    wb_array *array; /* one of the two is NULL */
} wb_layer_item;
typedef struct wb_layer_list {
    wb_layer_item *items;
    int64_t count;
} wb_layer_list;

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

/* Makes layers of the class known by its name, for wb_load_model: in the whole process, from then
 * on. The class has to stay. Fails on a name that another class has. */
WB_API wb_status wb_register_layer(const wb_layer_class *layer_class);

/* Ends the making of a layer: defaults for settings that are 0, then their ranges, "Power: p must
 * be from 0 to 10, got 11". The layer, or NULL after releasing it. */
WB_API wb_layer *wb_layer_complete(wb_layer *layer);

/* A zeroed struct of the class, released by wb_free. Fails, naming it, if the class has no
 * table. */
#define wb_new(type) ((type *)(void *)wb_layer_new(&type##_functor))
WB_API wb_layer *wb_layer_new(const wb_layer_class *layer_class);

/* Puts a layer or an array after the others in a list (WB_LIST_FIELD) of a struct of your own,
 * with a name if its entries have names, else NULL:
 *
 *     wb_list_append(&m->layer, "blocks", NULL, wb_dense(4, 4));   // m->blocks.items[0].layer
 *
 * The struct owns a layer, also on failure, and holds an array. Fails, leaving the list as it was,
 * with WB_ERROR_ARGUMENT on a list that the struct does not have, on a name that another entry has,
 * and on a layer that contains the struct; that layer stays the caller's. Chains:
 * wb_chain_append. */
WB_API wb_status wb_list_append(wb_layer *layer, const char *list, const char *name, void *object);

/* ---- the rows of a table ---- */

typedef enum wb_field_kind {
    WB_FIELD_ARRAY, /* wb_array *: a parameter, held (wb_keep) by the struct; NULL: not there */
    WB_FIELD_STATE, /* wb_array *: moved, saved, never trained (running statistics) */
    WB_FIELD_CHILD, /* wb_layer *: owned by the struct */
    WB_FIELD_LIST,  /* wb_layer_list */
    /* wb_array *: what a call leaves for the next one, NULL at first; not trained, moved, saved or
     * copied. wb_reset forgets it */
    WB_FIELD_HIDDEN,
    /* anything else: copied as bytes, otherwise left alone; a number that C11 can tell (not an
     * array of them) is sent by wb_synchronize */
    WB_FIELD_VALUE,

    /* settings: printed, saved and read back; the C type of each in the struct, and its form in
     * text */
    WB_FIELD_INTEGER, /* int64_t */
    /* int64_t for each name in the row's form, "in => out" or, say, "(in, in2) => out"; equal ones
     * of a group are written once, (8, 8) => 4 as 8 => 4 */
    WB_FIELD_PAIR,
    WB_FIELD_REAL,       /* double */
    WB_FIELD_BOOL,       /* bool */
    WB_FIELD_ACTIVATION, /* wb_activation *; NULL is the identity */
    WB_FIELD_CONNECTION, /* wb_connection *; NULL: all arrays, tuple */
    WB_FIELD_CHOICE,     /* int, place in the row's choices, from 0 */
    WB_FIELD_NAME,       /* char[48]: a path, :weight; empty: the first of the row's choices */
    WB_FIELD_REALS,      /* double[3]; the first 0 ends them: 2, (2, 3) */
    WB_FIELD_SIZES,      /* int64_t[3], or as the row says; the first 0 ends them: (5, 5) */
    WB_FIELD_EACH,       /* int64_t[3]: one for each of the SIZES above; one stands for all */
    WB_FIELD_PADDING,    /* two int64_t[3]: before each of the SIZES, and how much more after it */
    WB_FIELD_DIMS,       /* unsigned, WB_DIM(0) | ...; 0 is all; from 1 in text */
    WB_FIELD_MODE,       /* of the layer itself: train, test (active=false) or auto */
    WB_FIELD_OTHER,      /* the last: a field of Flux's struct alone */
} wb_field_kind;

/* A row of a struct's table: an array or layer that it holds, or a setting. */
typedef struct wb_field {
    const char *name; /* part of paths, key in text; NULL in a list: its items' names alone */
    size_t offset;
    wb_field_kind kind;
    bool trainable; /* arrays, and what is below children */
    /* arrays and children that belong to the struct but are neither moved nor trained */
    bool fixed;

    /* For settings. INTEGER, REAL and BOOL begin as `usual` in a new struct; then the value that
     * the program puts there counts, but a 0 that is out of range stands for `usual`, too, unless
     * the row says `.zero_counts`: then it is an error. Numbers, flags and pads that are usual are
     * not written into text. `usual` of some kinds has another meaning:
     *     EACH        -1  the default of an entry is the same entry of SIZES
     *     PAIR        -1  the default of a group is the first number; one number alone is all
     *     ACTIVATION   1  NULL is not the identity
     *     DIMS        -1  0 is the last dimension
     *     CHOICE      -1  the setting is always written
     * Numbers are at least low, or above it (is_above), and at most high, unless high is 0. */
    double usual, low, high;
    bool is_above; /* low itself is too low */
    bool zero_counts;
    /* written first and without its name, as PAIR, ACTIVATION, CONNECTION and SIZES are; of a
     * CHILD, too */
    bool positional;
    bool spread; /* the entries of a LIST are written as arguments of their own */
    int most;    /* of SIZES: how many numbers the member has; default 3 */
    /* of CHOICE: the names, "+|sum" if others are understood, too; NULL ends them. Of PAIR: the
     * names of its numbers in messages; NULL: those of its form */
    const char *const *choices;
    /* of PAIR: its numbers as text has them, at most four groups, "(in, in2) => out"; the default
     * of a number is the one before in its group. NULL: "in => out" */
    const char *form;
    /* of REALS: offset of the REALS that are given instead; 0: there are none */
    size_t instead;
    /* offset of the array that a number is taken from where it is not given; 0: there is none */
    size_t given_by;
    /* offset of the BOOL that says that this array or child is there, or that this setting is not
     * used; 0: none */
    size_t with, without;
    /* of a CHILD: taken over by wb_layer_complete, as chains take layers */
    bool counted;
    const wb_layer_class *part; /* of a CHILD that is a part of the layer: it is not written */

    /* Flux's struct has its fields in the order of this table. */
    const char *flux; /* the name there; NULL: as here */
    int since;        /* structs with fewer fields, of older versions, do not have this one */
    bool text_only;   /* no field there */
    /* of an array: where the field of this name is a tuple there, its item, from 1 */
    const char *tuple;
    int item;
    bool parameter; /* of a CHOICE or BOOL: the first parameter of its type */
    int rank;       /* in text -1: before those with 0; 1: after them */
    int number;     /* of a VALUE: WB_NUMBERS_AT its address (weber/dtype.h); 0: anything */
} wb_field;

/* ---- the class of a struct ---- */

/* Where a layer is in a sequence that comes piece by piece (wb_cache). */
typedef struct wb_positions {
    int64_t length; /* at most; 0: there is no cache */
    int64_t passed;
} wb_positions;

struct wb_layer_class {
    const char *name; /* "Dense" */
    size_t size_bytes;
    const wb_field *fields;
    int field_count;
    wb_array *(*forward)(wb_layer *layer, wb_array *x); /* NULL: cannot be applied */
    /* One line, "Dense(784 => 128, relu)"; brief: as places in messages want it, without settings.
     * NULL: by the table. */
    void (*describe)(const wb_layer *layer, bool brief, char *text, size_t size_bytes);
    /* Fills numbers that are not given, from arrays that are. NULL: fills the rows with given_by: a
     * number from an array (n), a PAIR from an array whose sizes are its groups, the last one
     * first, as (out, in), sizes from any array. */
    void (*derive)(wb_layer *layer);
    /* Checks that need several settings, and arrays that are still missing; all settings are within
     * their ranges. False with the error recorded. NULL: nothing. */
    bool (*complete)(wb_layer *layer);
    const char *before_keys; /* in text; NULL: ", " */
    const char *equals;      /* between key and value; NULL: "=" */
    const char *former;      /* the name that older versions of Flux have; NULL: this one */
    /* A size that a text gives as _ is the size of the input's last dimension but one if the input
     * has three or more dimensions, else the size of its first. */
    bool has_channels;
    /* Instead of forward, for a layer that takes several arrays or gives several: writes its
     * results and returns how many they are, 1 to WB_MOST_ARRAYS; 0 with the error recorded. */
    int (*forward_many)(wb_layer *layer, int count, wb_array *const *inputs, wb_array **results);
    /* For a layer whose results depend on positions: the offset of its wb_positions (0: it has
     * none), and how many positions it takes (0: a cache does not concern it; NULL: any number). */
    size_t positions;
    int64_t (*most_positions)(const wb_layer *layer);
    /* For what a struct owns that no row lists, as memory or a reference of another language.
     * copied: of wb_clone, wb_map, wb_share and the like; the members of no row, and settings, are
     * those of the original, byte by byte, arrays and layers are not there yet. It gives the copy
     * what is to be its own; false with the error recorded fails the copy, whose members are then
     * zeroed. NULL: the bytes do. released: when the last reference goes, before the fields are
     * released; on the thread that frees it. Members may be zeroed, as wb_new leaves them. */
    bool (*copied)(wb_layer *copy);
    void (*released)(wb_layer *layer);
};
enum { WB_MOST_ARRAYS = 16 };

#ifdef __cplusplus
}
#endif
#endif
