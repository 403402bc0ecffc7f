/* Functions by name, the library's and those that a program registers: the inverse of
 * wb_activation_name. */
#include <string.h>

#include "base/memory.h"
#include "layers/layer.h"
#include "platform/locks.h"

typedef struct named {
    const char *name;
    wb_activation *function;
} named;

static const named operations[] = {
#define WB_UNARY(name, class, text, dx, lo, hi, doc)                 {#name, wb_##name},
#define WB_MACRO(name, class, a_default, expansion, dx, lo, hi, doc) {#name, wb_##name},
#include <weber/ops.def>
};

/* Functions without a row there, and further names that NNlib uses. */
static const named others[] = {
    {"identity", wb_identity},
    {"softmax", wb_softmax},
    {"logsoftmax", wb_logsoftmax},
    {"σ", wb_sigmoid},
    {"sigmoid_fast", wb_sigmoid},
    {"tanh_fast", wb_tanh},
    {"hardσ", wb_hardsigmoid},
    {"logσ", wb_logsigmoid},
    {"gelu_tanh", wb_gelu},
    {"gelu_sigmoid", wb_gelu},
    {"silu", wb_swish},
    {"thresholdrelu", wb_trelu},
    {"rrelu", wb_rrelu},
    {"glu", wb_glu},
};

typedef struct entry {
    wb_link link; /* first */
    named named;
} entry;
static const wb_link *registered;

/* By name or by function; the other one is NULL. */
static const named *find_registered(const char *name, wb_activation *function) {
    for (const wb_link *at = wb_link_first(&registered); at; at = at->next) {
        const named *n = &((const entry *)(const void *)at)->named;
        if (name ? strcmp(n->name, name) == 0 : n->function == function) return n;
    }
    return NULL;
}

static wb_activation *find(const named *list, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0) return list[i].function;
    return NULL;
}

static const char *name_in(const named *list, size_t count, wb_activation *function) {
    for (size_t i = 0; i < count; i++)
        if (list[i].function == function) return list[i].name;
    return NULL;
}

const char *wb_activation_listed(wb_activation *function) {
    const char *name = name_in(operations, sizeof operations / sizeof *operations, function);
    if (!name) name = name_in(others, sizeof others / sizeof *others, function);
    const named *own = name ? NULL : find_registered(NULL, function);
    return own ? own->name : name;
}

wb_activation *wb_activation_named(const char *name) {
    wb_activation *function = find(operations, sizeof operations / sizeof *operations, name);
    if (!function) function = find(others, sizeof others / sizeof *others, name);
    const named *own = function ? NULL : find_registered(name, NULL);
    return own ? own->function : function;
}

/* A word that term.c reads as the name of a function, and not too long for a message. */
static bool is_word(const char *name) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    static const char *const taken[] = {WB_NAMELESS, "true", "false", "nothing"};
    enum { MOST = 47 };
    const size_t length = strspn(name, letters);
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (strcmp(name, taken[i]) == 0) return false;
    return length > 0 && length <= MOST && !name[length] && !(*name >= '0' && *name <= '9');
}

static wb_status register_function(const char *name, wb_activation *function) {
    wb_activation *known = wb_activation_named(name);
    if (known == function) return WB_OK;
    if (known)
        return wb_fail(WB_ERROR_ARGUMENT, "wb_register_function: another function has the name %s",
                       name);
    entry *e = wb_alloc(sizeof *e);
    char *copy = e ? wb_copy_text(name) : NULL;
    if (!copy) {
        wb_release(e);
        return WB_ERROR_MEMORY;
    }
    *e = (entry){.named = {copy, function}};
    wb_link_add(&registered, &e->link);
    return WB_OK;
}

wb_status wb_register_function(const char *name, wb_activation *function) {
    if (!name || !function)
        return wb_fail(WB_ERROR_ARGUMENT, "wb_register_function: the %s is NULL",
                       name ? "function" : "name");
    if (!is_word(name))
        return wb_fail(
            WB_ERROR_ARGUMENT,
            "wb_register_function: the name must be a word of at most 47 letters, digits "
            "and _, not true, false, nothing or function, got \"%.80s\"",
            name);
    wb_lock_take(WB_LOCK_NAMES);
    const wb_status status = register_function(name, function);
    wb_lock_give(WB_LOCK_NAMES);
    return status;
}

/* ---- names that are nearly right ---- */

enum { NAME = 32 }; /* bytes that are compared */

/* Bytes that have to be changed, added or taken away (Wagner and Fischer 1974). */
static int distance_of(const char *a, const char *b) {
    const int wide = (int)strnlen(b, NAME);
    int row[NAME + 1];
    for (int j = 0; j <= wide; j++) row[j] = j;
    for (int i = 0; i < NAME && a[i]; i++) {
        int diagonal = row[0]++;
        for (int j = 1; j <= wide; j++) {
            const int changed = diagonal + (a[i] != b[j - 1]);
            const int moved = 1 + (row[j] < row[j - 1] ? row[j] : row[j - 1]);
            diagonal = row[j];
            row[j] = changed < moved ? changed : moved;
        }
    }
    return row[wide];
}

static void take_nearer(const named *list, size_t count, const char *name, const char **found,
                        int *least) {
    for (size_t i = 0; i < count; i++) {
        const int distance = distance_of(name, list[i].name);
        if (distance < *least) *least = distance, *found = list[i].name;
    }
}

const char *wb_activation_near(const char *name) {
    const char *found = NULL;
    int least = 2 + (int)strnlen(name, NAME) / 8; /* one slip, two in a long name */
    take_nearer(operations, sizeof operations / sizeof *operations, name, &found, &least);
    take_nearer(others, sizeof others / sizeof *others, name, &found, &least);
    return found;
}

/* ---- connections ---- */

static const struct {
    const char *name;
    wb_connection *connection;
} connections[] = {
    {"+", wb_connect_add},     {"*", wb_connect_mul}, {"vcat", wb_connect_vcat},
    {"hcat", wb_connect_hcat}, {"tuple", NULL},       {"channels", wb_connect_channels},
};
enum { CONNECTIONS = sizeof connections / sizeof *connections };

const char *wb_connection_name(wb_connection *connection) {
    for (int i = 0; i < CONNECTIONS; i++)
        if (connections[i].connection == connection) return connections[i].name;
    return WB_NAMELESS;
}

bool wb_connection_named(const char *name, wb_connection **connection) {
    for (int i = 0; i < CONNECTIONS; i++) {
        if (strcmp(connections[i].name, name) != 0) continue;
        *connection = connections[i].connection;
        return true;
    }
    return false;
}
