/* Memory of a device: how much, held by what; a limit; giving it back.
 *
 *     CUDA.memory_status()                wb_memory_status(device)
 *     JULIA_CUDA_HARD_MEMORY_LIMIT        wb_memory_limit(device, bytes), at any time
 *     CUDA.reclaim()                      wb_memory_reclaim(device)
 *     CUDA.unsafe_free!(y)                wb_free(y), or the end of its scope: there is no
 *                                         collector to wait for wb_memory_holders(device, capacity,
 *                                         holders)
 *
 * | recipes only: 0 MiB live, 0 MiB cached
 * | computed: 3 MiB live, 0 MiB cached
 * | uniform: 1 array, 2 MiB
 * | exp: 1 array, 1 MiB
 * | checked(0): out of memory: 3145728 bytes cannot be allocated
 * | after that: 3 MiB live, 0 MiB cached
 * | y freed: 2 MiB live, 1 MiB cached
 * | three others, one after another: 2 MiB live, 1 MiB cached
 * | scope closed: 0 MiB live, 3 MiB cached
 * | reclaimed: 0 MiB live, 0 MiB cached
 * */
#include <stdio.h>
#include <string.h>

#include <weber.h>

enum { MIB = 1 << 20, FLOATS = MIB / sizeof(float) };

static double mib(int64_t bytes) { return (double)(bytes * 10 / MIB) / 10; }

static void show(const char *when, const wb_device *device) {
    const wb_memory_info m = wb_memory_status(device);
    printf("%s: %g MiB live, %g MiB cached\n", when, mib(m.live), mib(m.cached));
}

int main(void) {
    const wb_device *device = wb_get_device("checked", 0); /* or wb_get_device() */
    wb_scope_open();
    wb_array *x = wb_to(device, wb_uniform(WB_F32, 2 * FLOATS));
    wb_array *y = wb_exp(wb_slice(x, 0, 0, FLOATS, 1)); /* of its first half */
    show("recipes only", device);
    wb_eval(x, y);
    show("computed", device);

    wb_memory_holder holders[4];
    const int kinds = wb_memory_holders(device, 4, holders);
    for (int i = 0; i < kinds && i < 4; i++)
        printf("%s: %lld array, %g MiB\n", holders[i].tag, (long long)holders[i].arrays,
               mib(holders[i].bytes));

    /* out of memory is an error like others: nothing is lost, and the program goes on */
    wb_memory_limit(device, 5 * MIB);
    wb_array *too_much = wb_concat(0, x, y);
    char message[512];
    wb_eval(too_much);
    wb_take_error(message, sizeof message);
    message[strcspn(message, ";")] = 0; /* next: what is live, cached and allowed, who has it */
    printf("%s\n", message);
    show("after that", device);

    wb_free(too_much), wb_free(y); /* its recipe held y */
    show("y freed", device);
    for (int i = 0; i < 3; i++) {
        wb_scope_open();
        /* takes the cached memory, and puts it back with its scope */
        wb_eval(wb_sqrt(wb_slice(x, 0, FLOATS, 2 * FLOATS, 1)));
        wb_scope_close();
    }
    show("three others, one after another", device);
    wb_scope_close();
    show("scope closed", device);
    wb_memory_reclaim(device);
    show("reclaimed", device);
    return wb_report("12_device_memory");
}
