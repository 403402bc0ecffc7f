/* One model serves two threads: wb_share gives each a view of the same parameters.
 *
 * | thread 0: 1000 requests, all right: yes
 * | thread 1: 1000 requests, all right: yes
 * | the model is still ours: 40.25
 */
#include <pthread.h>
#include <stdio.h>

#include <weber.h>

enum { THREADS = 2, REQUESTS = 1000 };

typedef struct server {
    pthread_t thread;
    wb_layer *model; /* shared: over the memory of the first thread's parameters */
    double sum;      /* of all answers */
    int status;
} server;

/* The wanted answer to request i, computed by hand: the layers' weights are ones. */
static double expected(int i) { return 4.0 * (i + 1.0) + 0.25; }

static void *serve(void *argument) {
    server *s = argument;
    for (int i = 0; i < REQUESTS; i++) {
        wb_scope_open(); /* scopes, errors and random numbers belong to their thread */
        const float request[2] = {(float)i, 1};
        s->sum += wb_item(wb_apply(s->model, wb_from(WB_F32, request, 2))) - expected(i);
        wb_scope_close();
    }
    wb_free(s->model); /* on the thread that used it */
    s->status = wb_report("server");
    return NULL;
}

int main(void) {
    wb_scope_open();
    wb_layer *model =
        wb_chain(wb_dense(2, 4, .init = wb_ones_init), wb_dense(4, 1, .init = wb_ones_init));
    wb_set(model, "layers.2.bias", wb_vector(0.25));

    server servers[THREADS] = {{0}};
    for (int t = 0; t < THREADS; t++) {
        servers[t].model = wb_share(model); /* here, before the thread starts */
        if (pthread_create(&servers[t].thread, NULL, serve, &servers[t]) != 0) return 1;
    }
    int status = 0;
    for (int t = 0; t < THREADS; t++) {
        pthread_join(servers[t].thread, NULL);
        printf("thread %d: %d requests, all right: %s\n", t, REQUESTS,
               servers[t].sum == 0 ? "yes" : "no");
        status |= servers[t].status;
    }
    printf("the model is still ours: %g\n", wb_item(wb_apply(model, wb_vector(9, 1))));
    wb_free(model);
    wb_scope_close();
    return status | wb_report("06_two_threads");
}
