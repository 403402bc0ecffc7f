/* Functions by name: the inverse of wb_activation_name. */
#include <string.h>

#include "layers/layer.h"

typedef struct named {
    const char *name;
    wb_activation *function;
} named;

static const named operations[] = {
#define WB_UNARY(name, class, text, dx, lo, hi, doc)                 {#name, wb_##name},
#define WB_MACRO(name, class, a_default, expansion, dx, lo, hi, doc) {#name, wb_##name},
#include <weber/ops.def>
};

/* What has no row there, and what NNlib calls otherwise or too. */
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
    return name ? name : name_in(others, sizeof others / sizeof *others, function);
}

wb_activation *wb_activation_named(const char *name) {
    wb_activation *function = find(operations, sizeof operations / sizeof *operations, name);
    return function ? function : find(others, sizeof others / sizeof *others, name);
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
