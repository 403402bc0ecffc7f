#include "onednn_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "isa.h"
#include "platform/memory.h"
#include "window.h"

/* The library and what it makes at first; with less it may end the process (2.6). */
enum { OPENED_IN = 256 << 20 };

wb_dnnl wb_dnnl_api;
static wb_dnnl *const dnnl = &wb_dnnl_api;

/* ISO C has no cast from an object pointer to a function pointer; POSIX promises the same size */
static bool find(void *library, const char *name, void *function) {
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol;
}

static bool find_all(void *library) {
#define X(result, name, arguments)                                                                 \
    if (!find(library, "dnnl_" #name, &dnnl->name)) return false;
    INTERFACE(X)
#undef X
    const version *v = dnnl->version();
    if (v->major != VERSION || v->cpu_runtime > RUNTIME_OPENMP) return false;
    return v->cpu_runtime < RUNTIME_OPENMP ||
           (find(library, "omp_get_max_threads", &dnnl->omp_get_max_threads) &&
            find(library, "omp_set_num_threads", &dnnl->omp_set_num_threads));
}

static void open_library(void) {
    const wb_conv_choice asked = wb_conv_asked();
    if (asked == WB_CONV_OWN || asked == WB_CONV_DIRECT) return;
    if (asked == WB_CONV_AUTO && wb_cpu_isa() == WB_ISA_BASELINE) return;
    if (!wb_platform_has_address_space(OPENED_IN)) return;
    void *library = dlopen("libdnnl.so.2", RTLD_NOW | RTLD_LOCAL);
    dnnl->is_open =
        library && find_all(library) && dnnl->engine_create(&dnnl->engine, ON_CPU, 0) == SUCCESS &&
        dnnl->primitive_attr_create(&dnnl->attributes) == SUCCESS &&
        dnnl->primitive_attr_set_scratchpad_mode(dnnl->attributes, SCRATCH_OF_USER) == SUCCESS;
}

bool wb_dnnl_open(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_library);
    return dnnl->is_open;
}

int wb_dnnl_take_one_thread(void) {
    if (!dnnl->omp_set_num_threads) return 1;
    const int before = dnnl->omp_get_max_threads();
    dnnl->omp_set_num_threads(1);
    return before;
}

void wb_dnnl_give_threads(int before) {
    if (dnnl->omp_set_num_threads) dnnl->omp_set_num_threads(before);
}
