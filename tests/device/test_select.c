/* src/device/select.c: which device is taken, and what is said about it. Fake plugins stand for the
 * backends. */
#include "support/stage.h"

/* ---- rows: an installation, a call, and every line that comes of it ---- */

typedef const wb_device *call(void);

static const wb_device *get_device(void) { return wb_get_device(); }
static const wb_device *get_device_verbose(void) { return wb_get_device(.verbose = true); }
static const wb_device *gpu_device(void) { return wb_gpu_device(); }
static const wb_device *gpu_device_forced(void) { return wb_gpu_device(.force = true); }
static const wb_device *gpu_device_2(void) { return wb_gpu_device(.id = 2); }
static const wb_device *gpu_device_4(void) { return wb_gpu_device(.id = 4); }
static const wb_device *gpu_device_below(void) { return wb_gpu_device(.id = -1); }
static const wb_device *cuda_0(void) { return wb_get_device("CUDA", 0); }
static const wb_device *cuda_1(void) { return wb_get_device("cuda", 1); }
static const wb_device *cuda_3(void) { return wb_get_device("CUDA", 3); }
static const wb_device *cuda_below(void) { return wb_get_device("CUDA", -1); }
static const wb_device *cudda_0(void) { return wb_get_device("CUDDA", 0); }
static const wb_device *amd_0(void) { return wb_get_device("AMD", 0); }
static const wb_device *cpu_0(void) { return wb_get_device("CPU", 0); }
static const wb_device *cpu_2(void) { return wb_get_device("CPU", 2); }
static const wb_device *named_cuda(void) { return wb_get_device_named("cuda"); }
static const wb_device *named_cuda_1(void) { return wb_get_device_named("CUDA:1"); }
static const wb_device *named_cuda_x(void) { return wb_get_device_named("CUDA:x"); }
static const wb_device *named_cudda(void) { return wb_get_device_named("CUDDA:0"); }
static const wb_device *named_nothing(void) { return wb_get_device_named(NULL); }
static const wb_device *number_1(void) { return wb_get_device(.index = 1); }
static const wb_device *cuda_1_verbose(void) { return wb_get_device("CUDA", 1, .verbose = true); }

typedef struct row {
    const char *name;
    call *call;
    const char *plugins;     /* "cuda amdgpu" */
    const char *preference;  /* of gpu_backend */
    const char *environment; /* "NAME=value" each, with newlines between */
    const char *device;      /* the answer's name; NULL: an error */
    const char *log;         /* all of it */
    const char *error;       /* part of the message */
    int calls;               /* how often, with this log each time; 1 */
} row;

#define NOT_INSTALLED_CUDA                                                                         \
    "libweber_cuda.so is not installed; it needs an NVIDIA GPU and its driver (Debian: libcuda1, " \
    "libnvrtc11.2; section non-free)"
#define NOT_INSTALLED_AMDGPU                                                                       \
    "libweber_amdgpu.so is not installed; it needs an AMD GPU and ROCm (Debian: libamdhip64-5, "   \
    "libhiprtc-builtins5)"
#define NOT_INSTALLED_METAL                                                                        \
    "libweber_metal.so is not installed; it needs an Apple computer with macOS (Debian: no "       \
    "package)"
#define NOT_INSTALLED_OPENCL                                                                       \
    "libweber_opencl.so is not installed; it needs ocl-icd-libopencl1 and a driver, such as "      \
    "pocl-opencl-icd (Debian)"
#define PLEASE                                                                                     \
    "warning: Please install what is missing and call this function again to respect the "         \
    "preferences backend.\n"
#define ALLOW                                                                                      \
    "warning: Please name it in WEBER_BACKENDS and call this function again to respect the "       \
    "preferences backend.\n"
#define NO_GPU                                                                                     \
    "warning: No functional GPU backend found! Defaulting to CPU.\n"                               \
    "warning: 1. If no GPU is available, nothing needs to be done.\n"                              \
    "warning: 2. If a GPU is available, this is what is missing:\n"
#define SUPPORTED "CUDA, AMDGPU, Metal, OpenCL, CPU"
#define THREE_GPUS                                                                                 \
    "FAKE_CUDA_COUNT=3\nFAKE_CUDA_NAMES=GeForce RTX 2080 Ti|GeForce RTX 2080 Ti|TITAN X (Pascal)"
#define GTX "FAKE_CUDA_NAMES=NVIDIA GeForce GTX 1650"

static const row rows[] = {
    /* the transcripts of the Flux 0.14 guides, line for line */
    {"Flux 0.14: the preference works", get_device_verbose, "cuda", "CUDA", GTX,
     .device = "CUDA(0)", .log = "info: Using backend set in preferences: CUDA.\n"},
    {"Flux 0.14: preference CPU with CUDA loaded", get_device_verbose, "cuda", "CPU", NULL,
     .device = "CPU", .log = "info: Using backend set in preferences: CPU.\n"},
    {"Flux 0.14: preference CUDA, which is not loaded", get_device_verbose, "", "CUDA", NULL,
     .device = "CPU",
     .log = "info: Using backend set in preferences: CUDA.\n"
            "warning: Trying to use backend: CUDA but its plugin is not loaded: " NOT_INSTALLED_CUDA
            ".\n" PLEASE "info: Using backend: CPU.\n"},
    {"Flux 0.14: preference AMDGPU, which is not loaded, with CUDA loaded", get_device_verbose,
     "cuda", "AMDGPU", NULL, .device = "CUDA(0)",
     .log = "info: Using backend set in preferences: AMDGPU.\n"
            "warning: Trying to use backend: AMDGPU but its plugin is not "
            "loaded: " NOT_INSTALLED_AMDGPU ".\n" PLEASE "info: Using backend: CUDA.\n"},
    {"Flux 0.14: preference AMDGPU, which is not loaded, and nothing else", get_device_verbose, "",
     "AMDGPU", NULL, .device = "CPU",
     .log = "info: Using backend set in preferences: AMDGPU.\n"
            "warning: Trying to use backend: AMDGPU but its plugin is not "
            "loaded: " NOT_INSTALLED_AMDGPU ".\n" PLEASE "info: Using backend: CPU.\n"},

    /* Lux 0.5 on gpu_device */
    {"Lux 0.5, rule 1: without a GPU it is the CPU", gpu_device, "", NULL, NULL, .device = "CPU",
     .log = NO_GPU "warning:    CUDA: " NOT_INSTALLED_CUDA "\n"
                   "warning:    AMDGPU: " NOT_INSTALLED_AMDGPU "\n"
                   "warning:    Metal: " NOT_INSTALLED_METAL "\n"
                   "warning:    OpenCL: " NOT_INSTALLED_OPENCL "\n"},
    {"Lux 0.5, rule 2: the preference file's backend is used", gpu_device, "cuda amdgpu", "AMDGPU",
     NULL, .device = "AMDGPU(0)", .log = ""},
    {"Lux 0.5, rule 2.1: a warning if its plugin is not loaded", gpu_device, "cuda", "Metal", NULL,
     .device = "CUDA(0)",
     .log =
         "warning: Trying to use backend: Metal but its plugin is not loaded: " NOT_INSTALLED_METAL
         ".\n" PLEASE},
    {"Lux 0.5, rule 2.2: without a file the first working GPU is used", gpu_device,
     "amdgpu cuda metal", NULL, "FAKE_CUDA_COUNT=0", .device = "AMDGPU(0)", .log = ""},

    /* the order */
    {"no preference: the first GPU", get_device_verbose, "cuda", NULL, NULL, .device = "CUDA(0)",
     .log = "info: Using backend: CUDA.\n"},
    {"no preference and no GPU: the CPU", get_device_verbose, "", NULL, NULL, .device = "CPU",
     .log = "info: Using backend: CPU.\n"},
    {"not verbose: nothing is said", get_device, "", NULL, NULL, .device = "CPU", .log = ""},
    {"verbose is heard whatever the level", get_device_verbose, "", NULL, "WEBER_LOG=error",
     .device = "CPU", .log = "info: Using backend: CPU.\n"},
    {"CUDA goes before the others", get_device, "opencl metal amdgpu cuda", NULL, NULL,
     .device = "CUDA(0)", .log = ""},
    {"Metal goes before OpenCL", get_device, "opencl metal", NULL, NULL, .device = "Metal(0)",
     .log = ""},
    {"an unknown plugin comes last", get_device, "vulkan opencl", NULL, NULL, .device = "OpenCL(0)",
     .log = ""},
    {"an unknown plugin goes before the CPU", get_device, "vulkan", NULL, NULL,
     .device = "Vulkan(0)", .log = ""},
    {"a device that is no GPU is not taken by itself", get_device, "opencl", NULL,
     "FAKE_OpenCL_GPUS=0", .device = "CPU", .log = ""},
    {"the first GPU among other devices", get_device, "opencl", NULL,
     "FAKE_OpenCL_COUNT=2\nFAKE_OpenCL_GPUS=01", .device = "OpenCL(1)", .log = ""},
    {"a preference is a name", get_device, "opencl", "OpenCL", "FAKE_OpenCL_GPUS=0",
     .device = "OpenCL(0)", .log = ""},
    {"a name means its first GPU", get_device, "opencl", "OpenCL",
     "FAKE_OpenCL_COUNT=2\nFAKE_OpenCL_GPUS=01", .device = "OpenCL(1)", .log = ""},
    {"a GPU that cannot be opened is passed over", get_device_verbose, "cuda amdgpu", NULL,
     "FAKE_CUDA_CLOSED=0", .device = "AMDGPU(0)",
     .log = "warning: Backend: CUDA is not functional: the driver is busy. Trying the next one.\n"
            "info: Using backend: AMDGPU.\n"},

    /* the preference, at every call */
    {"a preference that is not loaded warns at every call", get_device, "cuda", "AMDGPU", NULL,
     .device = "CUDA(0)",
     .log = "warning: Trying to use backend: AMDGPU but its plugin is not "
            "loaded: " NOT_INSTALLED_AMDGPU ".\n" PLEASE,
     .calls = 3},
    {"a preference that is not functional warns at every call", get_device, "cuda amdgpu", "CUDA",
     "FAKE_CUDA_COUNT=0\nFAKE_CUDA_WHY=hidden by CUDA_VISIBLE_DEVICES", .device = "AMDGPU(0)",
     .log = "warning: Backend: CUDA from the set preferences is not functional: hidden by "
            "CUDA_VISIBLE_DEVICES. Defaulting to automatic device selection.\n",
     .calls = 2},
    {"a preference without a known reason", get_device_verbose, "cuda", "CUDA", "FAKE_CUDA_COUNT=0",
     .device = "CPU",
     .log =
         "info: Using backend set in preferences: CUDA.\n"
         "warning: Backend: CUDA from the set preferences is not functional: there is no device. "
         "Defaulting to automatic device selection.\n"
         "info: Using backend: CPU.\n"},
    {"an unknown preference warns at every call", get_device, "cuda", "CUDDA", NULL,
     .device = "CUDA(0)",
     .log = "warning: `gpu_backend` preference is set to CUDDA, which is not allowed. Defaulting "
            "to automatic "
            "device selection.\n"
            "warning: Allowed are: " SUPPORTED ". Did you mean CUDA?\n",
     .calls = 2},
    {"a preference whose plugin does not load says why", get_device, "cuda", "CUDA",
     "FAKE_CUDA_LOAD=libcuda.so.1 is missing (Debian: libcuda1)", .device = "CPU",
     .log = "warning: Trying to use backend: CUDA but its plugin is not loaded: "
            "libcuda.so.1 is missing (Debian: libcuda1).\n" PLEASE},
    {"a preference whose device cannot be opened", get_device, "cuda", "CUDA", "FAKE_CUDA_CLOSED=0",
     .device = "CPU",
     .log =
         "warning: Backend: CUDA from the set preferences is not functional: the driver is busy. "
         "Defaulting to automatic device selection.\n"
         "warning: Backend: CUDA is not functional: the driver is busy. Trying the next one.\n"},
    {"a preference in other letters", get_device_verbose, "cuda", "cuda", NULL, .device = "CUDA(0)",
     .log = "info: Using backend set in preferences: CUDA.\n"},
    {"the old name of a preference", get_device, "amdgpu", "AMD", NULL, .device = "AMDGPU(0)",
     .log = "warning: the backend AMD is called AMDGPU\n"},
    {"a preference that WEBER_BACKENDS leaves out", get_device, "cuda", "CUDA",
     "WEBER_BACKENDS=cpu", .device = "CPU",
     .log = "warning: Trying to use backend: CUDA but its plugin is not loaded: left out by "
            "WEBER_BACKENDS=cpu.\n" ALLOW},

    /* WEBER_DEVICE */
    {"WEBER_DEVICE with an index", get_device_verbose, "cuda", NULL,
     "WEBER_DEVICE=CUDA:1\n" THREE_GPUS, .device = "CUDA(1)",
     .log = "info: Using backend set in WEBER_DEVICE: CUDA.\n"},
    {"WEBER_DEVICE without an index", get_device, "cuda", NULL, "WEBER_DEVICE=cuda\n" THREE_GPUS,
     .device = "CUDA(0)", .log = ""},
    {"WEBER_DEVICE goes before the preference, and says so", get_device_verbose, "cuda amdgpu",
     "CUDA", "WEBER_DEVICE=AMDGPU", .device = "AMDGPU(0)",
     .log = "info: Using backend set in WEBER_DEVICE: AMDGPU.\n"
            "info: WEBER_DEVICE=AMDGPU overrides the preference CUDA.\n"},
    {"WEBER_DEVICE says so at level info", get_device, "cuda amdgpu", "CUDA",
     "WEBER_DEVICE=AMDGPU\nWEBER_LOG=info", .device = "AMDGPU(0)",
     .log = "info: WEBER_DEVICE=AMDGPU overrides the preference CUDA.\n"},
    {"WEBER_DEVICE and the preference agree", get_device_verbose, "cuda", "CUDA",
     "WEBER_DEVICE=CUDA", .device = "CUDA(0)",
     .log = "info: Using backend set in WEBER_DEVICE: CUDA.\n"},
    {"WEBER_DEVICE=CPU with a GPU there", get_device, "cuda", NULL, "WEBER_DEVICE=CPU",
     .device = "CPU", .log = ""},
    {"WEBER_DEVICE=CPU:2: the index is ignored", get_device, "", NULL, "WEBER_DEVICE=CPU:2",
     .device = "CPU",
     .log = "warning: WEBER_DEVICE=CPU:2: the index is ignored: there is only one CPU device\n"},
    {"WEBER_DEVICE takes a device that is no GPU", get_device, "opencl", NULL,
     "WEBER_DEVICE=OpenCL:0\nFAKE_OpenCL_GPUS=0", .device = "OpenCL(0)", .log = ""},
    {"WEBER_DEVICE takes what is in no list", get_device, "", NULL, "WEBER_DEVICE=checked",
     .device = "checked(0)", .log = ""},
    {"an empty WEBER_DEVICE is none", get_device, "cuda", NULL,
     "WEBER_DEVICE=", .device = "CUDA(0)", .log = ""},
    {"WEBER_DEVICE is unknown", get_device, "cuda", NULL, "WEBER_DEVICE=CUDDA:1", .log = "",
     .error = "WEBER_DEVICE=CUDDA:1: Unsupported backend: CUDDA. Supported backends are: " SUPPORTED
              ". Did you mean CUDA?"},
    {"WEBER_DEVICE is not loaded", get_device, "cuda", "CUDA", "WEBER_DEVICE=Metal", .log = "",
     .error = "WEBER_DEVICE=Metal: Unavailable backend: Metal. " NOT_INSTALLED_METAL
              ". Available are: CUDA, CPU."},
    {"WEBER_DEVICE is not functional", get_device, "cuda", NULL,
     "WEBER_DEVICE=CUDA\nFAKE_CUDA_COUNT=0\nFAKE_CUDA_WHY=no driver", .log = "",
     .error = "WEBER_DEVICE=CUDA: Backend: CUDA is not functional: no driver. Functional backends "
              "are: CPU."},
    {"WEBER_DEVICE is out of range", get_device, "cuda", NULL, "WEBER_DEVICE=CUDA:3\n" THREE_GPUS,
     .log = "", .error = "WEBER_DEVICE=CUDA:3: CUDA(3): there are 3 CUDA devices, 0 to 2"},
    {"WEBER_DEVICE without a number", get_device, "cuda", NULL, "WEBER_DEVICE=CUDA:x", .log = "",
     .error =
         "WEBER_DEVICE=CUDA:x: a device must be BACKEND or BACKEND:INDEX with an index from 0, "
         "got \"CUDA:x\""},
    {"WEBER_DEVICE with a negative number", get_device, "cuda", NULL, "WEBER_DEVICE=CUDA:-1",
     .log = "", .error = "a device must be BACKEND or BACKEND:INDEX"},
    {"WEBER_DEVICE with nothing behind the colon", get_device, "cuda", NULL,
     "WEBER_DEVICE=CUDA:", .log = "", .error = "a device must be BACKEND or BACKEND:INDEX"},
    {"WEBER_DEVICE with a number beyond all", get_device, "cuda", NULL,
     "WEBER_DEVICE=CUDA:99999999999999999999", .log = "",
     .error = "a device must be BACKEND or BACKEND:INDEX"},
    {"WEBER_DEVICE that cannot be opened", get_device, "cuda", NULL,
     "WEBER_DEVICE=CUDA\nFAKE_CUDA_CLOSED=0", .log = "",
     .error = "WEBER_DEVICE=CUDA: the driver is busy"},

    /* gpu_device */
    {"gpu_device with preference CPU: no warning", gpu_device, "cuda", "CPU", NULL, .device = "CPU",
     .log = ""},
    {"gpu_device with WEBER_DEVICE=CPU: no warning", gpu_device, "cuda", NULL, "WEBER_DEVICE=CPU",
     .device = "CPU", .log = ""},
    {"gpu_device names what is there and is no GPU", gpu_device, "opencl", NULL,
     "FAKE_OpenCL_GPUS=0", .device = "CPU",
     .log = NO_GPU
     "warning:    CUDA: " NOT_INSTALLED_CUDA "\n"
     "warning:    AMDGPU: " NOT_INSTALLED_AMDGPU "\n"
     "warning:    Metal: " NOT_INSTALLED_METAL
     "\nwarning:    OpenCL: has no GPU; to use its other devices, name it: WEBER_DEVICE=OpenCL\n"},
    {"force: the CPU is an error (M1)", gpu_device_forced, "", NULL, NULL, .log = "",
     .error = "No functional GPU device found! CUDA: " NOT_INSTALLED_CUDA "."},
    {"force: preference CPU is an error", gpu_device_forced, "cuda", "CPU", NULL, .log = "",
     .error =
         "No functional GPU device found! The CPU was asked for by the preference gpu_backend in "},
    {"force: WEBER_DEVICE=CPU is an error", gpu_device_forced, "cuda", NULL, "WEBER_DEVICE=CPU",
     .log = "",
     .error = "No functional GPU device found! The CPU was asked for by WEBER_DEVICE=CPU."},
    {"force with a GPU", gpu_device_forced, "cuda", NULL, NULL, .device = "CUDA(0)", .log = ""},
    {"id counts from 1", gpu_device_2, "cuda", NULL, THREE_GPUS, .device = "CUDA(1)", .log = ""},
    {"id with a preference", gpu_device_2, "cuda amdgpu", "AMDGPU", "FAKE_AMDGPU_COUNT=2",
     .device = "AMDGPU(1)", .log = ""},
    {"id goes before the index of WEBER_DEVICE", gpu_device_2, "cuda", NULL,
     "WEBER_DEVICE=CUDA:2\n" THREE_GPUS, .device = "CUDA(1)", .log = ""},
    {"id opens no other device", gpu_device_2, "cuda", NULL, THREE_GPUS "\nFAKE_CUDA_CLOSED=0",
     .device = "CUDA(1)", .log = ""},
    {"id is out of range", gpu_device_4, "cuda", NULL, THREE_GPUS, .log = "",
     .error = "CUDA(3): there are 3 CUDA devices, 0 to 2"},
    {"id below 1", gpu_device_below, "cuda", NULL, NULL, .log = "",
     .error = "id must be at least 1, got -1"},
    {"id on the CPU is ignored", gpu_device_2, "cuda", "CPU", NULL, .device = "CPU",
     .log = "warning: the id 2 is ignored: there is only one CPU device\n"},

    /* get_device_at */
    {"by name and number", cuda_1, "cuda", "CPU", THREE_GPUS, .device = "CUDA(1)", .log = ""},
    {"the number of devices is no index (M7)", cuda_3, "cuda", NULL, THREE_GPUS, .log = "",
     .error = "CUDA(3): there are 3 CUDA devices, 0 to 2"},
    {"a single device", cuda_1, "cuda", NULL, NULL, .log = "",
     .error = "CUDA(1): there is 1 CUDA device, 0"},
    {"an index below 0", cuda_below, "cuda", NULL, NULL, .log = "",
     .error = "CUDA(-1): there is 1 CUDA device, 0"},
    {"an unknown backend (M7)", cudda_0, "cuda", NULL, NULL, .log = "",
     .error =
         "Unsupported backend: CUDDA. Supported backends are: " SUPPORTED ". Did you mean CUDA?"},
    {"a backend that is not loaded", cuda_0, "amdgpu", NULL, NULL, .log = "",
     .error = "Unavailable backend: CUDA. " NOT_INSTALLED_CUDA ". Available are: AMDGPU, CPU."},
    {"a backend that is not functional", cuda_0, "cuda", NULL,
     "FAKE_CUDA_COUNT=0\nFAKE_CUDA_WHY=no driver", .log = "",
     .error = "Backend: CUDA is not functional: no driver. Functional backends are: CPU."},
    {"a device that cannot be opened", cuda_0, "cuda", NULL, "FAKE_CUDA_CLOSED=0", .log = "",
     .error = "the driver is busy"},
    {"the old name", amd_0, "amdgpu", NULL, NULL, .device = "AMDGPU(0)",
     .log = "warning: the backend AMD is called AMDGPU\n"},
    {"the CPU", cpu_0, "cuda", NULL, NULL, .device = "CPU", .log = ""},
    {"the CPU's index is ignored", cpu_2, "", NULL, NULL, .device = "CPU",
     .log = "warning: the index 2 is ignored: there is only one CPU device\n"},
    {"a number without a name", number_1, "", NULL, NULL, .log = "",
     .error = "get_device: index 1 needs a backend, as in wb_get_device(\"CUDA\", 1)"},
    {"by name, which is said", cuda_1_verbose, "cuda", NULL, THREE_GPUS, .device = "CUDA(1)",
     .log = "info: Using device: CUDA(1).\n"},
    {"by a text", named_cuda_1, "cuda", NULL, THREE_GPUS, .device = "CUDA(1)", .log = ""},
    {"by a text without a number", named_cuda, "cuda", NULL, THREE_GPUS, .device = "CUDA(0)",
     .log = ""},
    {"by a text with a number that there is not", named_cuda_1, "cuda", NULL, NULL, .log = "",
     .error = "CUDA(1): there is 1 CUDA device, 0"},
    {"by a text that is none", named_cuda_x, "cuda", NULL, NULL, .log = "",
     .error = "a device must be BACKEND or BACKEND:INDEX with an index from 0, got \"CUDA:x\""},
    {"by a text with an unknown name", named_cudda, "cuda", NULL, NULL, .log = "",
     .error = "Unsupported backend: CUDDA."},
    {"by a text whose backend does not work", named_cuda, "cuda", NULL,
     "FAKE_CUDA_COUNT=0\nFAKE_CUDA_WHY=no driver", .log = "",
     .error = "Backend: CUDA is not functional: no driver. Functional backends are: CPU."},
    {"by no text", named_nothing, "", NULL, NULL, .log = "", .error = "the device's name is NULL"},
};

static const row *now;

static void set_environment(const char *text) {
    while (text && *text) {
        char line[256];
        const size_t length = strcspn(text, "\n");
        (void)snprintf(line, sizeof line, "%.*s", (int)length, text);
        char *value = strchr(line, '=');
        *value++ = 0;
        (void)setenv(line, value, 1);
        text += length + (text[length] == '\n');
    }
}

static void install(const char *plugins) {
    while (*plugins) {
        char name[32], file[64];
        const size_t length = strcspn(plugins, " ");
        (void)snprintf(name, sizeof name, "%.*s", (int)length, plugins);
        (void)snprintf(file, sizeof file, "plugins/libweber_%s.so", name);
        stage_install(name, file);
        plugins += length + (plugins[length] == ' ');
    }
}

static void prefer(const char *backend) {
    char text[128];
    (void)snprintf(text, sizeof text, "[Weber]\ngpu_backend = \"%s\"\n", backend);
    stage_write("preferences.toml", text);
}

/* The text with this scene's folder for FOLDER. */
static const char *with_folder(const char *text) {
    static char whole[4096];
    const char *at = strstr(text, "FOLDER");
    if (!at) return text;
    (void)snprintf(whole, sizeof whole, "%.*s%s%s", (int)(at - text), text, stage_folder(),
                   at + strlen("FOLDER"));
    return whole;
}

static void play_row(void) {
    install(now->plugins);
    if (now->preference) prefer(now->preference);
    set_environment(now->environment);
    for (int i = 0; i < (now->calls ? now->calls : 1); i++) {
        const wb_device *device = now->call();
        expect((device != NULL) == (now->device != NULL));
        if (device && now->device) expect_text(wb_device_name(device), now->device);
        if (now->error) expect_part(wb_error_message(), now->error);
        if (now->error) wb_clear_error();
        expect_log(with_folder(now->log));
    }
}

static void check_row(void **state) {
    now = *state;
    assert_int_equal(on_stage(play_row), 0);
}

/* ---- scenes: several calls ---- */

static void no_gpu_is_said_once(void) {
    expect(wb_gpu_device() == wb_cpu_device());
    expect_part(stage_log(), "No functional GPU backend found!");
    expect(wb_gpu_device() == wb_cpu_device());
    expect_log("");
    wb_reset_gpu_device();
    expect(wb_gpu_device() == wb_cpu_device());
    expect_part(stage_log(), "No functional GPU backend found!");
}

static void an_id_does_not_change_later_calls(void) {
    stage_install("cuda", "plugins/libweber_cuda.so");
    (void)setenv("FAKE_CUDA_COUNT", "3", 1);
    const wb_device *second = wb_gpu_device(.id = 2);
    expect_text(wb_device_name(second), "CUDA(1)");
    expect_text(wb_device_name(wb_gpu_device()), "CUDA(0)");
    expect_text(wb_device_name(wb_get_device()), "CUDA(0)");
    expect(wb_gpu_device(.id = 2) == second);
    expect(wb_get_device("CUDA", 1) == second);
}

static void what_comes_later_is_taken_after_wb_use(void) {
    expect(wb_get_device() == wb_cpu_device());
    stage_install("cuda", "plugins/libweber_cuda.so");
    expect(wb_get_device() == wb_cpu_device());
    expect(wb_use("CUDA") == WB_OK);
    expect_text(wb_device_name(wb_get_device()), "CUDA(0)");
    stage_install("amdgpu", "plugins/libweber_amdgpu.so");
    expect(!wb_loaded("AMDGPU"));
    wb_reset_gpu_device();
    expect(wb_loaded("AMDGPU"));
}

static void a_preference_is_tried_again_at_the_next_call(void) {
    prefer("CUDA");
    expect(wb_get_device() == wb_cpu_device());
    expect_part(stage_log(), "its plugin is not loaded");
    stage_install("cuda", "plugins/libweber_cuda.so");
    expect_text(wb_device_name(wb_get_device()), "CUDA(0)");
    expect_log("");
}

static void asking_again_takes_no_memory(void) {
    prefer("CUDA");
    (void)setenv("WEBER_LOG", "error", 1);
    for (int i = 0; i < 3; i++) expect(wb_get_device() == wb_cpu_device());
    const char *const *folders = wb_plugin_folders(), *const *skipped = wb_skipped_plugins();
    for (int i = 0; i < 100; i++) {
        expect(wb_get_device() == wb_cpu_device());
        wb_reset_gpu_device();
    }
    expect(wb_plugin_folders() == folders && wb_skipped_plugins() == skipped);
}

static void devices_are_counted_anew_after_a_reset(void) {
    stage_install("cuda", "plugins/libweber_cuda.so");
    (void)setenv("FAKE_CUDA_COUNT", "0", 1);
    expect(!wb_functional("CUDA"));
    (void)setenv("FAKE_CUDA_COUNT", "2", 1);
    expect(!wb_functional("CUDA"));
    wb_reset_gpu_device();
    expect(wb_device_count("CUDA") == 2);
    const wb_device *device = wb_get_device();
    wb_reset_gpu_device();
    expect(wb_get_device() == device);
}

static void a_preference_counts_at_once(void) {
    stage_install("cuda", "plugins/libweber_cuda.so");
    stage_install("amdgpu", "plugins/libweber_amdgpu.so");
    (void)setenv("WEBER_LOG", "info", 1);
    expect(wb_gpu_backend() == NULL);
    expect_text(wb_device_name(wb_get_device()), "CUDA(0)");

    expect(wb_gpu_backend_set("amdgpu") == WB_OK);
    expect_log("info: New GPU backend set: AMDGPU.\n");
    expect_text(wb_gpu_backend(), "AMDGPU");
    expect_text(wb_device_name(wb_get_device()), "AMDGPU(0)");
    expect(wb_gpu_backend_set("AMDGPU") == WB_OK);
    expect_log("info: GPU backend is already set to: AMDGPU. No need to do anything else.\n");

    expect(wb_gpu_backend_set("CUDA") ==
           WB_OK); /* back to what it was at the start: it is written */
    expect_text(stage_read("preferences.toml"), "[Weber]\ngpu_backend = \"CUDA\"\n");
    expect(wb_gpu_backend_set("CPU") == WB_OK);
    expect(wb_get_device() == wb_cpu_device());

    (void)stage_log();
    expect(wb_gpu_backend_reset() == WB_OK);
    expect_log("info: Deleted the preference for `gpu_backend`.\n");
    expect(wb_gpu_backend() == NULL);
    expect_text(wb_device_name(wb_get_device()), "CUDA(0)");
}

static void an_unknown_backend_is_not_written(void) {
    expect(wb_gpu_backend_set("CUDDA") == WB_ERROR_ARGUMENT);
    expect_error(WB_ERROR_ARGUMENT, "Unsupported backend: CUDDA. Supported backends are: " SUPPORTED
                                    ". Did you mean CUDA?");
    expect(wb_gpu_backend_set(NULL) == WB_ERROR_ARGUMENT);
    expect_error(WB_ERROR_ARGUMENT, "NULL");
    expect_text(stage_read("preferences.toml"), "(none)");
}

static void a_backend_that_is_not_there_can_be_preferred(void) {
    expect(wb_gpu_backend_set("CUDA") == WB_OK);
    expect_text(stage_read("preferences.toml"), "[Weber]\ngpu_backend = \"CUDA\"\n");
}

static void setting_under_weber_device_warns(void) {
    (void)setenv("WEBER_DEVICE", "CPU", 1);
    expect(wb_gpu_backend_set("CUDA") == WB_OK);
    expect_log("warning: New GPU backend set: CUDA. WEBER_DEVICE=CPU overrides it.\n");
    expect_text(wb_gpu_backend(), "CUDA");
    expect(wb_get_device() == wb_cpu_device());
}

static void a_reset_hides_what_other_tables_say(void) {
    stage_write("preferences.toml", "[Flux]\ngpu_backend = \"CUDA\"\n");
    expect_text(wb_gpu_backend(), "CUDA");
    expect(wb_gpu_backend_reset() == WB_OK);
    expect(wb_gpu_backend() == NULL);
    expect_text(stage_read("preferences.toml"), "[Flux]\ngpu_backend = \"CUDA\"\n\n[Weber]\n");
}

static void expect_choice(const char *device, const char *backend, bool is_automatic,
                          const char *why) {
    wb_choice choice;
    expect(wb_device_choice(&choice) == WB_OK);
    expect_text(choice.device, device);
    expect_text(choice.backend, backend);
    expect(choice.is_automatic == is_automatic);
    expect_text(choice.why, why);
    expect_log("");
}

static void the_choice_says_where_it_comes_from(void) {
    char why[512];
    stage_install("cuda", "plugins/libweber_cuda.so");
    (void)setenv("FAKE_CUDA_CLOSED", "0", 1); /* nothing is opened */
    expect_choice("CUDA(0)", "CUDA", true, "automatic: the first GPU");
    prefer("CPU");
    (void)snprintf(why, sizeof why, "the preference gpu_backend in %s/preferences.toml",
                   stage_folder());
    expect_choice("CPU", "CPU", false, why);
    prefer("AMDGPU");
    expect_choice("CUDA(0)", "CUDA", true, "automatic, since the preference AMDGPU is not loaded");
    prefer("XPU");
    expect_choice("CUDA(0)", "CUDA", true, "automatic, since the preference XPU is unknown");
    (void)setenv("WEBER_DEVICE", "CUDA", 1);
    expect_choice("CUDA(0)", "CUDA", false,
                  "WEBER_DEVICE=CUDA, which overrides the preference XPU");
    (void)setenv("WEBER_DEVICE", "CPU", 1);
    prefer("CPU");
    expect_choice("CPU", "CPU", false, "WEBER_DEVICE=CPU");
    (void)setenv("WEBER_DEVICE", "CUDA:7", 1);
    wb_choice choice;
    expect(wb_device_choice(&choice) == WB_ERROR_ARGUMENT);
    expect_error(WB_ERROR_ARGUMENT, "there is 1 CUDA device, 0");
}

static void an_automatic_choice_without_a_gpu(void) {
    expect_choice("CPU", "CPU", true, "automatic: there is no GPU");
}

static void an_older_error_stays(void) {
    stage_install("cuda", "plugins/libweber_cuda.so");
    (void)setenv("FAKE_CUDA_CLOSED", "0", 1);
    expect(wb_get_device("nothing", 0) == NULL);
    expect(wb_get_device() == wb_cpu_device());
    expect_error(WB_ERROR_ARGUMENT, "Unsupported backend: nothing");
}

int main(void) {
    enum { ROWS = sizeof rows / sizeof *rows };
    const struct CMUnitTest scenes[] = {
        SCENE(no_gpu_is_said_once),
        SCENE(an_id_does_not_change_later_calls),
        SCENE(what_comes_later_is_taken_after_wb_use),
        SCENE(a_preference_is_tried_again_at_the_next_call),
        SCENE(asking_again_takes_no_memory),
        SCENE(devices_are_counted_anew_after_a_reset),
        SCENE(a_preference_counts_at_once),
        SCENE(an_unknown_backend_is_not_written),
        SCENE(a_backend_that_is_not_there_can_be_preferred),
        SCENE(setting_under_weber_device_warns),
        SCENE(a_reset_hides_what_other_tables_say),
        SCENE(the_choice_says_where_it_comes_from),
        SCENE(an_automatic_choice_without_a_gpu),
        SCENE(an_older_error_stays),
    };
    enum { SCENES = sizeof scenes / sizeof *scenes };
    struct CMUnitTest tests[ROWS + SCENES];
    for (int i = 0; i < ROWS; i++)
        tests[i] =
            (struct CMUnitTest){rows[i].name, check_row, NULL, NULL, (void *)(uintptr_t)&rows[i]};
    memcpy(tests + ROWS, scenes, sizeof scenes);
    return cmocka_run_group_tests_name("device/test_select", tests, NULL, NULL);
}
