/* A struct of one's own as a model: the guides' ActorCritic. WB_FUNCTOR says which fields take
 * part.
 *
 * | ActorCritic(
 * |   actor = f32 (2, 2),                   # 4 parameters
 * |   critic = f32 (2),                     # 2 parameters
 * | )
 * | both fields:
 * |   actor is doubled
 * |   critic is doubled
 * |   actor[0, 0] 2, critic[0] 2, moves 7
 * |   d sum / d actor[1, 1] = 4
 * | the actor alone:
 * |   actor is doubled
 * |   actor[0, 0] 2, critic[0] 1, moves 7
 * |   d sum / d actor[1, 1] = 4
 * | Undeclared has no field table: declare it with WB_FUNCTOR (weber/class.h)
 * */
#include <stdio.h>

#include <weber.h>

typedef struct ActorCritic {
    wb_layer layer; /* first, in every struct that is a model */
    wb_array *actor;
    wb_array *critic;
    int moves; /* in no table: a plain value */
} ActorCritic;

/* m(x) = actor x + critic */
static wb_array *act(wb_layer *layer, wb_array *x) {
    const ActorCritic *m = (const ActorCritic *)layer;
    return wb_add(wb_matmul(m->actor, x), m->critic);
}

WB_FUNCTOR(ActorCritic, act, WB_ARRAY_FIELD(ActorCritic, actor),
           WB_ARRAY_FIELD(ActorCritic, critic));

/* The same fields, but only the actor takes part: @functor ActorCritic (actor,) */
typedef ActorCritic ActorOnly;
WB_FUNCTOR(ActorOnly, act, WB_ARRAY_FIELD(ActorOnly, actor), WB_FIXED_FIELD(ActorOnly, critic));

static ActorCritic *filled(ActorCritic *m) {
    if (!m) return NULL;
    m->actor = wb_keep(wb_ones(WB_F32, 2, 2)); /* held by the struct; wb_free(m) releases it */
    m->critic = wb_keep(wb_ones(WB_F32, 2));
    m->moves = 7;
    return m;
}

/* what cu was in the guides: any function from array to array */
static wb_array *doubled(void *user, const char *path, wb_array *x) {
    (void)user;
    printf("  %s is doubled\n", path);
    return wb_mul_number(x, 2);
}

static void demonstrate(const char *title, wb_layer *m) {
    printf("%s:\n", title);
    wb_layer *twice = wb_map(doubled, NULL, m); /* a new model; m stays as it is */
    const ActorCritic *seen = (const ActorCritic *)twice;
    printf("  actor[0, 0] %g, critic[0] %g, moves %d\n", wb_at(seen->actor, 0, 0),
           wb_at(seen->critic, 0), seen->moves);

    wb_gradients *grads = wb_gradient(wb_sum(wb_apply(twice, wb_vector(3, 4))), twice);
    printf("  d sum / d actor[1, 1] = %g\n", wb_at(wb_gradients_get(grads, "actor"), 1, 1));
    wb_free(twice);
}

int main(void) {
    wb_scope_open();
    ActorCritic *both = filled(wb_new(ActorCritic)), *one = filled(wb_new(ActorOnly));
    wb_show(both);
    demonstrate("both fields", &both->layer);
    demonstrate("the actor alone", &one->layer);
    wb_free(both), wb_free(one);

    /* a struct without a table is refused by name, not left behind in silence */
    const wb_layer_class undeclared = {.name = "Undeclared", .size_bytes = sizeof(ActorCritic)};
    char message[256];
    if (!wb_layer_new(&undeclared)) {
        wb_take_error(message, sizeof message);
        printf("%s\n", message);
    }
    wb_scope_close();
    return wb_report("03_custom_struct");
}
