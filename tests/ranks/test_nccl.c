/* Collectives of devices' memory over NCCL, on the fake CUDA driver and the library that stands for
 * NCCL (tests/backends/cuda/nccl.c): values beside those of the host's memory, and what ranks do
 * when a call fails or another rank is gone. */
#include <dlfcn.h>
#include <string.h>

#include <weber.h>

#include "base/clock.h"
#include "support/ranks.h"
#include "support/stage.h"
#include "support/support.h"

static void expect_failure(wb_status status, const char *text) {
    if (status != WB_OK && strstr(wb_error_message(), text)) {
        wb_clear_error();
        return;
    }
    (void)fprintf(stderr, "rank %d: expected \"%s\", got %d \"%s\"\n", wb_rank(), text, (int)status,
                  wb_error_message());
    exit(1);
}

static void put_variable(const char *name, const char *file) {
    (void)setenv(name, stage_build(file), 1);
}

static void set_up(void) {
    put_variable("WEBER_PLUGIN_PATH", "weber");
    put_variable("WEBER_CUDA_LIBRARY", "tests/backends/cuda/fake_cuda.so");
    put_variable("WEBER_NVRTC_LIBRARY", "tests/backends/cuda/fake_cuda.so");
    put_variable("WEBER_NCCL_LIBRARY", "tests/backends/cuda/fake_nccl.so");
    (void)setenv("WEBER_CUBLASLT_LIBRARY", "/no/such/library.so", 1);
    (void)setenv("WEBER_CUDNN_LIBRARY", "/no/such/library.so", 1);
    (void)setenv("FAKE_CUDA_DEVICES", "4", 1);
    (void)unsetenv("WEBER_DEVICE");
    (void)unsetenv("CUDA_VISIBLE_DEVICES");
}

static void join(void) { CHECK(wb_distributed_initialize("NCCL") == WB_OK); }

/* ---- values ---- */

enum { COUNT = 300001 };

/* Magnitudes mixed, so that the order of a sum is seen. */
static wb_array *given(wb_dtype dtype) {
    const int64_t count = COUNT;
    wb_array *i = wb_iota_make(WB_F32, 0, 1, &count);
    wb_array *x = wb_mod(wb_mul(i, wb_number(wb_rank() + 3)), wb_number(31));
    wb_array *size = wb_exp(wb_mod(wb_mul(i, wb_number(wb_rank() + 5)), wb_number(8)));
    return wb_cast(wb_dtype_is_float(dtype) ? wb_mul(wb_sub(x, wb_number(15)), size) : x, dtype);
}

static bool is_same(wb_array *a, wb_array *b) {
    if (!a || !b || wb_count(a) != wb_count(b)) return false;
    wb_array *here = wb_cpu(a), *there = wb_cpu(b);
    if (wb_eval(here) != WB_OK || wb_eval(there) != WB_OK) return false; /* halves are rounded */
    wb_array *same = wb_cast(wb_eq(here, there), WB_I64);
    return wb_item(wb_sum(same)) == (double)wb_count(a);
}

typedef wb_array *collective_fn(wb_array *x);
static wb_array *sum(wb_array *x) { return wb_allreduce(x, WB_REDUCE_SUM); }
static wb_array *most(wb_array *x) { return wb_allreduce(x, WB_REDUCE_MAX); }
static wb_array *least(wb_array *x) { return wb_allreduce(x, WB_REDUCE_MIN); }
static wb_array *to_root(wb_array *x) { return wb_reduce_to(x, WB_REDUCE_SUM, 1); }
static wb_array *from_root(wb_array *x) { return wb_bcast(x, wb_total_workers() - 1); }
static wb_array *all(wb_array *x) { return wb_allgather(wb_slice(x, 0, 5, 1005, 1)); }
static wb_array *part(wb_array *x) {
    return wb_reduce_scatter(wb_slice(x, 0, 0, 120000, 1), WB_REDUCE_SUM);
}
static wb_array *mean(wb_array *x) { return wb_allreduce(x, WB_REDUCE_MEAN); }
static wb_array *mean_to_root(wb_array *x) { return wb_reduce_to(x, WB_REDUCE_MEAN, 0); }
static wb_array *few(wb_array *x) { return wb_allreduce(wb_slice(x, 0, 7, 20, 1), WB_REDUCE_SUM); }
static wb_array *none(wb_array *x) { return wb_allreduce(wb_slice(x, 0, 0, 0, 1), WB_REDUCE_SUM); }

/* Those of memory of a device beside those of the host's, which go by the other transport. */
static void has_values(void) {
    static collective_fn *const rows[] = {sum, most, least, to_root, from_root,
                                          all, part, few,   none};
    static collective_fn *const means[] = {mean, mean_to_root};
    static const wb_dtype types[] = {WB_F32, WB_F64, WB_F16, WB_BF16, WB_I32, WB_I64, WB_U8};
    join();
    CHECK(strcmp(wb_get_distributed_backend("NCCL"), "NCCL") == 0);
    const wb_device *own = wb_default_device();
    CHECK(strcmp(wb_device_backend_name(own), "CUDA") == 0 && wb_device_id(own) == wb_rank());
    CHECK(wb_gpu_device() == own && wb_get_device_named("CUDA") == own);
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        if (wb_total_workers() != 3 && types[t] != WB_F32 && types[t] != WB_BF16) continue;
        wb_scope_open();
        wb_array *y = given(types[t]), *x = wb_to(wb_cpu_device(), y); /* which keeps f64 */
        CHECK(wb_eval(y) == WB_OK && wb_dtype_of(y) == types[t] && wb_device_of(y) == own);
        CHECK(x && wb_device_of(x) == wb_cpu_device());
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            CHECK(is_same(rows[i](y), rows[i](x)));
        for (size_t i = 0; i < 2 && wb_dtype_is_float(types[t]); i++)
            CHECK(is_same(means[i](y), means[i](x)));
        CHECK(wb_scope_close() == WB_OK);
    }
}

/* More than is added up at once. */
static void has_large_values(void) {
    join();
    wb_scope_open();
    const int64_t count = 6000001;
    wb_array *i = wb_iota_make(WB_F32, 0, 1, &count);
    wb_array *x = wb_mod(wb_mul(i, wb_number(wb_rank() + 3)), wb_number(31));
    x = wb_to(wb_cpu_device(), x);
    wb_array *y = wb_to(wb_default_device(), x);
    CHECK(is_same(sum(y), sum(x)));
    wb_array *even = wb_slice(x, 0, 1, count, 1);
    CHECK(is_same(wb_reduce_scatter(wb_to(wb_default_device(), even), WB_REDUCE_SUM),
                  wb_reduce_scatter(even, WB_REDUCE_SUM)));
    CHECK(wb_scope_close() == WB_OK);
}

static void collectives(void **state) {
    (void)state;
    for (int n = 2; n <= 4; n++) assert_int_equal(ranks_run(n, has_values), 0);
    assert_int_equal(ranks_run(2, has_large_values), 0);
}

/* ---- training ---- */

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_mse(wb_apply(model, batch->x), batch->y);
}

/* Products may round otherwise on another device. */
static bool is_about(wb_array *a, wb_array *b) {
    wb_array *off = wb_gt(wb_abs(wb_sub(wb_cpu(a), wb_cpu(b))), wb_number(1e-5));
    return wb_item(wb_sum(wb_cast(off, WB_I64))) == 0;
}

static wb_array *trained_on(const wb_device *device) {
    wb_seed(3);
    wb_array *x = wb_uniform(WB_F32, 4, 40), *y = wb_sin(x);
    const int64_t own = 20 * wb_rank();
    wb_batch batch = {.x = wb_to(device, wb_slice(x, 1, own % 40, own % 40 + 20, 1)),
                      .y = wb_to(device, wb_slice(y, 1, own % 40, own % 40 + 20, 1))};
    wb_layer *model = wb_chain(wb_dense(4, 9, wb_tanh), wb_dense(9, 4));
    CHECK(wb_move(device, model) == WB_OK);
    wb_optimiser *o = wb_setup(wb_momentum(.eta = 0.05), model, .distributed = true);
    for (int i = 0; i < 10; i++) CHECK(wb_train_step(loss, model, &batch, NULL, o));
    wb_array *sums = wb_number(0);
    int k = 1;
    for (wb_parameter p = {0}; wb_next_parameter(model, &p); k++)
        sums = wb_add(sums, wb_mul(wb_sum(wb_cpu(p.array)), wb_number(k)));
    CHECK(wb_keep(sums) && wb_eval(sums) == WB_OK);
    wb_free(o), wb_free(model);
    return sums;
}

static void trains(void) {
    join();
    wb_scope_open();
    wb_array *there = trained_on(wb_default_device()), *here = trained_on(wb_cpu_device());
    CHECK(is_about(there, here));
    CHECK(wb_scope_close() == WB_OK);
}

static void training(void **state) {
    (void)state;
    assert_int_equal(ranks_run(2, trains), 0);
}

/* ---- which device ---- */

static void by_list(void) {
    CHECK(wb_distributed_initialize("NCCL", .devices = (const int[]){3, 1}, .device_count = 2) ==
          WB_OK);
    join(); /* again */
    CHECK(wb_device_id(wb_default_device()) == (wb_rank() ? 1 : 3));
    wb_scope_open();
    CHECK(wb_item(wb_sum(
              wb_allreduce(wb_to(wb_default_device(), wb_vector(1, 2)), WB_REDUCE_SUM))) == 6);
}

static void by_hand(void) {
    wb_set_default_device(wb_get_device("CUDA", 2 + wb_rank()));
    CHECK(wb_distributed_initialize("NCCL", .choose_device = false) == WB_OK); /* after wb_rank */
    CHECK(strcmp(wb_get_distributed_backend("NCCL"), "NCCL") == 0);
    CHECK(wb_device_id(wb_default_device()) == 2 + wb_rank());
    CHECK(wb_barrier() == WB_OK);
}

static void no_hand(void) {
    expect_failure(wb_distributed_initialize("NCCL", .choose_device = false),
                   "must be one of CUDA, but is CPU");
}

static void same_device(void) {
    expect_failure(
        wb_distributed_initialize("NCCL", .devices = (const int[]){1, 1}, .device_count = 2),
        "both have CUDA(1) (0000:02:00.0)");
}

/* A driver that does not say which it is leaves the address. */
static void same_device_by_address(void) {
    (void)setenv("FAKE_CUDA_FAIL", "cuDeviceGetUuid_v2:1:999", 1);
    same_device();
}

/* Parts of one GPU have one address. */
static void parts_of_one_device(void) {
    (void)setenv("FAKE_CUDA_PART", wb_rank() ? "1" : "2", 1);
    CHECK(wb_distributed_initialize("NCCL", .devices = (const int[]){1, 1}, .device_count = 2) ==
          WB_OK);
    const wb_properties about = wb_device_properties(wb_default_device());
    CHECK(strcmp(about.address, "0000:02:00.0") == 0);
    CHECK(strcmp(about.uuid, wb_rank() ? "00112233-4455-6677-8899-aabbccdd0101"
                                       : "00112233-4455-6677-8899-aabbccdd0201") == 0);
    CHECK(wb_item(wb_sum(
              wb_allreduce(wb_to(wb_default_device(), wb_vector(1, 2)), WB_REDUCE_SUM))) == 6);
}

static void short_list(void) {
    expect_failure(
        wb_distributed_initialize("NCCL", .devices = (const int[]){1}, .device_count = 1),
        "must name one for each of the 2 ranks of this machine, but names 1");
    expect_failure(wb_distributed_initialize("NCCL", .device_count = 1),
                   ".devices must have .device_count numbers, got 1 and NULL");
}

static void too_few(void) {
    (void)setenv("FAKE_CUDA_DEVICES", "1", 1);
    expect_failure(wb_distributed_initialize("NCCL"), "this machine has 1 for 2 ranks");
}

static void no_library(void) {
    const bool is_one = strcmp(getenv("WEBER_RANK"), "1") == 0;
    if (is_one) (void)setenv("WEBER_NCCL_LIBRARY", "/no/such.so", 1);
    expect_failure(wb_distributed_initialize("NCCL"),
                   is_one ? "NCCL cannot be used: WEBER_NCCL_LIBRARY=/no/such.so cannot be opened"
                          : "rank 1 has failed: distributed: NCCL cannot be used");
}

static void not_installed(void) {
    (void)unsetenv("WEBER_NCCL_LIBRARY");
    if (dlopen("libnccl.so.2", RTLD_NOW)) return;
    expect_failure(wb_distributed_initialize("NCCL"),
                   "there is no libnccl.so.2: NCCL is not installed (Debian: libnccl2");
}

static void too_old(void) {
    (void)setenv("FAKE_NCCL_VERSION", "2808", 1);
    expect_failure(wb_distributed_initialize("NCCL"),
                   "this is NCCL 2.8, but 2.14 or later is needed");
}

static void no_nccl(void) {
    (void)setenv("WEBER_NCCL_LIBRARY", "libz.so.1", 1);
    expect_failure(wb_distributed_initialize("NCCL"), "the library has no ncclGetVersion");
}

static void only_one_asks(void) {
    if (strcmp(getenv("WEBER_RANK"), "1") != 0)
        expect_failure(wb_distributed_initialize("NCCL"),
                       "of rank 0 is wb_distributed_initialize for devices, number 0 of rank 1 is "
                       "barrier");
    else
        expect_failure(wb_barrier(), "ranks must make the same collectives");
}

static void late_without_devices(void) {
    CHECK(wb_rank() < 2);
    (void)setenv("FAKE_CUDA_DEVICES", "1", 1);
    expect_failure(wb_distributed_initialize("NCCL"), "this machine has 1 for 2 ranks");
    expect_failure(wb_barrier(), "the group of ranks was given up");
}

static void by_variable(void) {
    (void)setenv("WEBER_TRANSPORT", "NCCL", 1);
    CHECK(strcmp(wb_get_distributed_backend(NULL), "NCCL") == 0);
}

static void by_rccl(void) {
    put_variable("WEBER_HIP_LIBRARY", "tests/backends/cuda/fake_amdgpu.so");
    put_variable("WEBER_HIPRTC_LIBRARY", "tests/backends/cuda/fake_amdgpu.so");
    put_variable("WEBER_RCCL_LIBRARY", "tests/backends/cuda/fake_rccl.so");
    (void)setenv("WEBER_HIPBLASLT_LIBRARY", "/no/such/library.so", 1);
    (void)setenv("WEBER_MIOPEN_LIBRARY", "/no/such/library.so", 1);
    CHECK(dlopen(stage_build("tests/backends/cuda/libamd_comgr.so.3"), RTLD_NOW | RTLD_GLOBAL));
    CHECK(wb_distributed_initialize("RCCL") == WB_OK);
    const wb_device *own = wb_default_device();
    CHECK(strcmp(wb_device_backend_name(own), "AMDGPU") == 0 && wb_device_id(own) == wb_rank());
    wb_scope_open();
    CHECK(wb_item(wb_sum(wb_allreduce(wb_to(own, wb_ones(WB_F32, 9)), WB_REDUCE_SUM))) == 18);
    CHECK(wb_scope_close() == WB_OK);
}

static void choices(void **state) {
    (void)state;
    void (*const rows[])(void) = {
        by_list,
        by_hand,
        no_hand,
        same_device,
        short_list,
        too_few,
        no_library,
        same_device_by_address,
        parts_of_one_device,
        not_installed,
        too_old,
        no_nccl,
        only_one_asks,
        by_variable,
        by_rccl,
        late_without_devices,
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (ranks_run(2, rows[i])) fail_msg("row %zu", i);
}

/* ---- failures ---- */

static wb_array *on_device(double value) {
    return wb_to(wb_default_device(), wb_full(WB_F32, value, 1000));
}

static void other_place(void) {
    join();
    wb_scope_open();
    wb_array *x = wb_rank() ? wb_to(wb_cpu_device(), on_device(1)) : on_device(1);
    CHECK(wb_eval(x) == WB_OK);
    expect_failure(wb_eval(wb_allreduce(x, WB_REDUCE_SUM)),
                   "allreduce of 1000 f32, sum, of a device's memory, number 0 of rank 1 is "
                   "allreduce of 1000 f32, sum");
    CHECK(wb_item(wb_sum(on_device(2))) == 2000); /* nothing was lost */
}

static void other_count(void) {
    join();
    wb_scope_open();
    wb_array *x = wb_slice(on_device(1), 0, 0, 10 + wb_rank(), 1);
    expect_failure(wb_eval(wb_allreduce(x, WB_REDUCE_SUM)), "ranks must make the same collectives");
}

/* It has begun the sum, which is on the other's device for ever. */
static void is_killed(void) {
    join();
    wb_scope_open();
    CHECK(wb_item(wb_sum(wb_allreduce(on_device(1), WB_REDUCE_SUM))) == 2000);
    wb_array *x = wb_allreduce(on_device(1), WB_REDUCE_SUM);
    if (wb_rank() == 1) {
        CHECK(wb_allreduce(on_device(1), WB_REDUCE_SUM));
        (void)raise(SIGKILL);
    }
    const double begin = wb_clock();
    wb_array *total = wb_sum(x);
    wb_status status = wb_eval(total);
    if (status == WB_OK && wb_item(total) >= 0) status = wb_error_status();
    expect_failure(status ? status : wb_error_status(), "rank 1 has died");
    CHECK(wb_clock() - begin < 5);
    expect_failure(wb_eval(wb_allreduce(wb_ones(WB_F32, 2), WB_REDUCE_SUM)), "");
}

static void is_gone(void **state) {
    (void)state;
    const char *run = ranks_start(2, is_killed);
    assert_int_equal(ranks_wait(0), 0);
    assert_int_equal(ranks_wait(1), 128 + SIGKILL);
    (void)shm_unlink(run);
}

/* The n-th call of each function fails on rank 1: an error on both, which names it, or success
 * where there are not so many. */
static const char *failing;

static int one_round(void) {
    if (wb_distributed_initialize("NCCL") != WB_OK) return 1;
    const int rank =
        wb_rank(); /* 0 once the group has failed, which may be after the last number */
    wb_scope_open();
    wb_array *x = on_device(1);
    wb_array *all_of_it =
        wb_cpu(wb_add(wb_sum(wb_allreduce(x, WB_REDUCE_SUM)),
                      wb_add(wb_sum(wb_reduce_to(x, WB_REDUCE_SUM, 0)),
                             wb_add(wb_sum(wb_bcast(x, 1)),
                                    wb_add(wb_sum(wb_allgather(x)),
                                           wb_sum(wb_reduce_scatter(x, WB_REDUCE_SUM)))))));
    const double value = wb_item(all_of_it);
    if (wb_failed()) return 1;
    const double expected = 2000 + (rank == 0 ? 2000 : 1000) + 1000 + 2000 + 1000;
    if (value != expected)
        (void)fprintf(stderr, "rank %d: %s: %g, not %g\n", rank, failing, value, expected);
    return value == expected ? 0 : 2;
}

static void fails_at(void) {
    if (strcmp(getenv("WEBER_RANK"), "1") == 0) (void)setenv("FAKE_NCCL_FAIL", failing, 1);
    const int result = one_round();
    if (result == 1) {
        const bool is_named = strstr(wb_error_message(), "nccl") != NULL;
        if (!is_named)
            (void)fprintf(stderr, "rank %d: %s: %s\n", wb_rank(), failing, wb_error_message());
        wb_clear_error();
        exit(is_named ? 4 : 8);
    }
    exit(result);
}

static void each_call_fails(void **state) {
    (void)state;
    static const char *const rows[] = {
        "GetVersion:1:3",
        "CommInitRankConfig:1:2",
        "CommGetAsyncError:1:6",
        "CommGetAsyncError:9:6",
        "GroupStart:2:3",
        "Send:3:1",
        "Recv:4:5",
        "GroupEnd:2:3",
        "Broadcast:1:3",
        "AllGather:1:4",
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        failing = rows[i];
        const int status = ranks_run(2, fails_at);
        if (status != 4) fail_msg("%s: %d", failing, status);
    }
    failing = "CommFinalize:1:3"; /* by which nobody fails */
    assert_int_equal(ranks_run(2, fails_at), 0);
}

/* Rank 1's device fails at its n-th call while they join. */
static int failing_call;

static void device_fails_at(void) {
    char text[40];
    (void)snprintf(text, sizeof text, "cuCtxSetCurrent:%d:2", failing_call);
    if (strcmp(getenv("WEBER_RANK"), "1") == 0) (void)setenv("FAKE_CUDA_FAIL", text, 1);
    (void)setenv("WEBER_TIMEOUT", "20", 1);
    const time_t begin = time(NULL);
    const bool has_joined = wb_distributed_initialize("NCCL") == WB_OK;
    wb_clear_error();
    (void)unsetenv("FAKE_CUDA_FAIL");
    exit(has_joined ? 0 : time(NULL) - begin < 10 ? 4 : 8);
}

/* Whatever it is: all fail at once. */
static void device_fails(void **state) {
    (void)state;
    int status = 4;
    for (failing_call = 1; status == 4 && failing_call < 100; failing_call++)
        status = ranks_run(2, device_fails_at);
    assert_int_equal(status, 0);
    assert_true(failing_call > 2);
}

static void differences(void **state) {
    (void)state;
    assert_int_equal(ranks_run(2, other_place), 0);
    assert_int_equal(ranks_run(2, other_count), 0);
}

int main(void) {
    set_up();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collectives),  cmocka_unit_test(training),
        cmocka_unit_test(choices),      cmocka_unit_test(differences),
        cmocka_unit_test(is_gone),      cmocka_unit_test(each_call_fails),
        cmocka_unit_test(device_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
