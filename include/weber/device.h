/* weber/device.h: where arrays live. */
#ifndef WEBER_DEVICE_H
#define WEBER_DEVICE_H

#include "array.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The CPU, always there. */
WB_API const wb_device *wb_cpu_device(void);

/* The default device, one for the process and, where it has one, of a context: arrays from C memory
 * are put there, and recipes of numbers alone (wb_zeros, wb_uniform) when they are computed or
 * kept. It is the CPU, unless wb_set_default_device said otherwise; NULL goes back to the CPU.
 * Borrowed and adopted memory stays the host's. */
WB_API const wb_device *wb_default_device(void);
WB_API void wb_set_default_device(const wb_device *device);

/* The default device of the context that this thread uses, its own or one that it has entered
 * (weber/context.h), in place of the process's; NULL: the process's again. Returns the one before,
 * to be set again, NULL where there was none. Threads of a loader have contexts of their own. */
WB_API const wb_device *wb_set_context_device(const wb_device *device);

/* Waits until everything queued on the device is done, and gives the errors of the queued work.
 * Reading a value waits by itself. */
WB_API wb_status wb_device_sync(const wb_device *device);

/* ---- the same bits ----
 *
 * The same program gives the same bits again, on one machine with the same libraries: in each
 * process and for any number of threads; sums are added up in a fixed order, and algorithms of
 * libraries that do not keep to one are not used.
 *
 * On devices other than the CPU, the operations around an operation may change its last bits. A
 * vendor's library has an algorithm for the sizes and types of a product or convolution, for the
 * alignment of its operands in memory (a slice may begin anywhere), and for what it computes next
 * in the same call: a bias, an activation. Compilers make one instruction of a product followed by
 * a sum. So arrays that are computed again (wb_recompute), a loop in place of a scan, or a plan
 * that is not fused (WEBER_FUSE=0, WEBER_EAGER=1) may differ there by a rounding. */

/* "CPU", "OpenCL(0)". */
WB_API const char *wb_device_name(const wb_device *device);

/* Threads that the CPU computes with: WEBER_NUM_THREADS, else the cores this process may use;
 * results do not depend on it. wb_set_threads(0) returns to the default; an evaluation that is
 * under way on another thread keeps its number. */
WB_API int wb_threads(void);
WB_API void wb_set_threads(int threads);

/* ---- movement ---- */

/* How floating types are converted on the way; integers and bool keep theirs. */
typedef enum wb_eltype {
    /* f64 becomes f32 on the way from the CPU to another device, else preserved */
    WB_ELTYPE_DEFAULT,
    WB_ELTYPE_PRESERVE, /* as it is */
    WB_ELTYPE_F32,      /* to this type, also arrays that are there already */
    WB_ELTYPE_F64,
    WB_ELTYPE_F16,
    WB_ELTYPE_BF16
} wb_eltype;

typedef struct wb_to_desc {
    WB_START_MEMBER;
    const wb_device *device;
    void *x; /* an array, a model or struct of layers, a tree, an optimiser */
    wb_eltype eltype;
} wb_to_desc;

/* x on the device, as a new reference: wb_to(device, x), wb_to(device, x, .eltype =
 * WB_ELTYPE_PRESERVE). The given one stays where it is. If x is on the device already, the result
 * is x (of a model or tree one more reference, to be freed as any other). Arrays belong to the
 * scope, and gradients flow back through the move to the input's device; models are new ones, whose
 * ties are kept. For an optimiser use wb_move. NULL on failure, NULL for NULL. */
#define wb_to(...) WB_MAKE(wb_to_make, to, __VA_ARGS__)
WB_API void *wb_to_make(wb_to_desc desc);

/* wb_gpu: wb_to(wb_gpu_device(), x) if there is a GPU, else as wb_cpu. wb_cpu:
 * wb_to(wb_cpu_device(), x). Julia's `m = gpu(m)` is wb_move(wb_gpu_device(), m): m = wb_gpu(m)
 * would lose the first model without freeing it. */
WB_API void *wb_gpu(void *x);
WB_API void *wb_cpu(void *x);

/* The same in place: the arrays in a model's slots, or an optimiser's state and the slots of its
 * model, are replaced by arrays on the device; all of them, or on failure none. */
#define wb_move(...) WB_MAKE(wb_move_make, to, __VA_ARGS__)
WB_API wb_status wb_move_make(wb_to_desc desc);

/* Where an array, or everything in a model, tree or optimiser is. NULL for NULL and for an object
 * without arrays; NULL with an error that names both devices if it is on two. */
WB_API const wb_device *wb_device_of(const void *x);

/* Reading single elements of an array elsewhere (wb_at) waits for the device each time. The
 * thousandth warns; after wb_allow_scalar(false) it is an error. wb_item of a single number always
 * works. Per process. */
WB_API void wb_allow_scalar(bool allowed);

/* ---- which devices there are ----
 *
 * A backend is built in or a plugin: a file libweber_NAME.so (NAME in lower case) in a folder of
 * WEBER_PLUGIN_PATH (absolute paths, with colons between them), in the folder weber/ beside the
 * library, beside the library, or where Weber was installed. The file and its folder belong to root
 * or to the user of the process, and nobody else may write there. The first question below loads
 * all that are installed, or those that WEBER_BACKENDS=cpu,opencl names; a program that asks
 * nothing loads nothing. Plugins stay loaded.
 *
 * Names of backends are accepted in any case. An unknown one is an error that names the known ones
 * and the nearest spelling. Lists are valid for ever, and any thread may ask at any time.
 *
 *     for (const char *const *name = wb_supported_devices(); *name; name++)
 *         printf("%s: %s\n", *name, wb_functional(*name) ? "works" : wb_reason()); */

/* In order of preference, ended by NULL: "CUDA", "AMDGPU", "Metal", "OpenCL", other plugins that
 * are installed, "CPU". */
WB_API const char *const *wb_supported_devices(void);

/* The same without "CPU". */
WB_API const char *const *wb_supported_gpu_backends(void);

/* Loads one backend, unless it is loaded already; one that failed before is tried again. If it
 * cannot be loaded: WB_ERROR_DEVICE with what is missing and the Debian package that brings it. */
WB_API wb_status wb_use(const char *backend);

/* True if the backend is built in, or its plugin is installed, has this Weber's ABI and found the
 * vendor's libraries. */
WB_API bool wb_loaded(const char *backend);

/* True if it is loaded and has a device. */
WB_API bool wb_functional(const char *backend);

/* True if it is functional and has a working part of this name, such as "cuDNN" or "MIOpen". */
WB_API bool wb_functional_part(const char *backend, const char *part);

/* Why the last of these questions on this thread got the answer no; "" after a yes. Lives until the
 * thread asks again. */
WB_API const char *wb_reason(void);

/* Number of devices; 0 where the backend is not functional. */
WB_API int wb_device_count(const char *backend);

/* The backend's devices in the driver's order, ended by NULL; empty where it is not functional.
 * Opens all of them; NULL where one cannot be opened. */
WB_API const wb_device *const *wb_devices(const char *backend);

/* Prints one line for each device, without opening any: "CUDA(0): NVIDIA GeForce GTX 1650". */
WB_API void wb_show_devices(void);

/* The folders in which plugins were searched, and "PATH: reason" for each file and folder that was
 * skipped; ended by NULL. A plugin that only lacks its vendor's libraries is not skipped:
 * wb_reason() says what its backend lacks. */
WB_API const char *const *wb_plugin_folders(void);
WB_API const char *const *wb_skipped_plugins(void);

/* ---- one device ---- */

/* What a driver says of a device. */
typedef struct wb_properties {
    char name[128];       /* "NVIDIA GeForce GTX 1650" */
    char driver[128];     /* driver or platform with its version; "" */
    char address[32];     /* of the device on its machine: "0000:3B:00.0"; "" where unknown */
    char uuid[40];        /* no other device anywhere has it; "" where unknown */
    int64_t memory_bytes; /* 0: unknown */
    int compute_units;    /* multiprocessors, cores */
    bool is_gpu;          /* an accelerator; the automatic choice takes only these */
    bool has_f64;
} wb_properties;

/* "CUDA"; "" for NULL. */
WB_API const char *wb_device_backend_name(const wb_device *device);

/* Its number among the backend's devices, from 0. The CPU has none: -1. */
WB_API int wb_device_id(const wb_device *device);

/* What the driver says of this device; texts are "" and numbers 0 for NULL. */
WB_API wb_properties wb_device_properties(const wb_device *device);

/* The same without opening the device. Fails as wb_get_device does. */
WB_API wb_status wb_device_properties_at(const char *backend, int index, wb_properties *properties);

/* ---- the choice of a device ----
 *
 * WEBER_DEVICE=backend[:index] comes first. An unknown backend there, one that does not work or an
 * index that is out of range is an error. Then comes the preference gpu_backend: one that is
 * unknown, not loaded or not functional is a warning at every call. Then the first backend of
 * wb_supported_gpu_backends() that has a GPU, then the CPU. A device that is not a GPU, such as a
 * processor under OpenCL, is taken only if its backend was named. Where no index was given, it is
 * the backend's first GPU, or its first device.
 *
 * Each call decides again, so a preference or a plugin that comes later counts at once; the number
 * of a backend's devices is asked again after wb_use and wb_reset_gpu_device. */

typedef struct wb_get_device_desc {
    WB_START_MEMBER;
    const char *backend; /* default: the device of choice */
    int index;           /* among the backend's devices, from 0 */
    bool verbose;        /* says what was chosen and why, whatever WEBER_LOG is */
} wb_get_device_desc;

/* The chosen device, which may be the CPU; NULL only if WEBER_DEVICE asks for one that cannot be
 * had.
 *
 *     const wb_device *device = wb_get_device(.verbose = true);
 *     // weber info: Using backend: CUDA.
 *
 * Or a device by name and number: wb_get_device("CUDA", 1). Fails if the backend is unknown, not
 * loaded or not functional or has no such device. The CPU has no numbers: an index other than 0 is
 * ignored with a warning. */
#define wb_get_device(...) WB_MAKE(wb_get_device_make, get_device, __VA_ARGS__)
WB_API const wb_device *wb_get_device_make(wb_get_device_desc desc);

/* The same by one text, as in WEBER_DEVICE: "OpenCL:1", or "OpenCL" for its first GPU, else its
 * first device. */
WB_API const wb_device *wb_get_device_named(const char *name);

typedef struct wb_gpu_device_desc {
    WB_START_MEMBER;
    int id;     /* its number in its backend, from 1, which goes before WEBER_DEVICE's; 0: choose */
    bool force; /* the CPU is an error: "No functional GPU device found!" */
} wb_gpu_device_desc;

/* The same choice for programs that expect a GPU: if there is none, a message says so once, with
 * the reasons, unless the preference or WEBER_DEVICE is "CPU". An id on the CPU is ignored with a
 * warning; one that is out of range is an error. Later calls without id do not depend on it. */
#define wb_gpu_device(...) WB_MAKE(wb_gpu_device_make, gpu_device, __VA_ARGS__)
WB_API const wb_device *wb_gpu_device_make(wb_gpu_device_desc desc);

/* Forgets what was found: plugins that failed are tried again, devices are counted again, and the
 * message that there is no GPU may come again. Devices that were handed out stay valid. */
WB_API void wb_reset_gpu_device(void);

/* What wb_get_device() would give, without opening it and without a line in the log. */
typedef struct wb_choice {
    char device[48];   /* "OpenCL(0)" */
    char backend[32];  /* "OpenCL" */
    bool is_automatic; /* neither WEBER_DEVICE nor a preference made it */
    char why[512];     /* "the preference gpu_backend in /home/ada/LocalPreferences.toml" */
} wb_choice;
WB_API wb_status wb_device_choice(wb_choice *choice);

/* ---- preferences ----
 *
 * The table [Weber] of one file: WEBER_PREFERENCES, else LocalPreferences.toml in the current
 * directory or the nearest one above that has it, else weber/preferences.toml in the user's folder
 * for settings (XDG_CONFIG_HOME, ~/.config).
 *
 *     [Weber]
 *     gpu_backend = "CUDA"
 *
 * Where the file has no table [Weber], gpu_backend of [Flux], [MLDataDevices] or [LuxDeviceUtils]
 * is read, and never written. The file is read at each question and written as a whole, with
 * everything else in it as it was. A file that cannot be read, has faults or cannot be written is a
 * warning, and the program goes on as if there were no preference. */

/* The path of the preference file, or the path where it would be made if there is none yet. "" if
 * there is no place for one. The text lives until the thread asks again. */
WB_API const char *wb_preference_file(void);

/* A preference's text, "true" or "false"; NULL where it is not set. Lives until the thread asks
 * again. Names consist of letters, digits, _ and -. */
WB_API const char *wb_preference_get(const char *name);
WB_API bool wb_preference_get_bool(const char *name, bool otherwise);

/* Writes a preference; NULL removes it. Where the file cannot be written: a warning, and
 * WB_ERROR_IO or WB_ERROR_FORMAT is returned without an error that stays pending. */
WB_API wb_status wb_preference_set(const char *name, const char *value);
WB_API wb_status wb_preference_set_bool(const char *name, bool value);

/* The preference gpu_backend; NULL: none, the choice is automatic. Lives until the thread asks
 * again. */
WB_API const char *wb_gpu_backend(void);

/* Writes it; it counts from the next call on. "CPU" is valid. Says so with a warning if
 * WEBER_DEVICE goes before it. */
WB_API wb_status wb_gpu_backend_set(const char *backend);

/* Removes it; afterwards wb_gpu_backend() is NULL. */
WB_API wb_status wb_gpu_backend_reset(void);

/* ---- memory ---- */

/* Memory of a device, in bytes. */
typedef struct wb_memory_info {
    int64_t live;   /* in arrays */
    int64_t cached; /* free, kept for the next array */
    int64_t peak;   /* largest live + workspace so far */
    int64_t workspace;
    int64_t limit; /* 0: none */
} wb_memory_info;
WB_API wb_memory_info wb_memory_status(const wb_device *device);

/* Live memory by origin, largest first: an operation ("matmul", "adam"), or "data" for arrays from
 * C memory or files. Fills at most capacity entries and returns how many kinds there are. */
typedef struct wb_memory_holder {
    const char *tag;
    int64_t arrays, bytes;
} wb_memory_holder;
WB_API int wb_memory_holders(const wb_device *device, int capacity, wb_memory_holder *holders);

/* From now on live, cached and workspace memory together stay within so many bytes. If an
 * allocation does not fit, the cache is given back; if it still does not fit, it fails as out of
 * memory. 0: no limit but the device's own. */
WB_API wb_status wb_memory_limit(const wb_device *device, int64_t bytes);

/* Gives cached memory back to the system. */
WB_API void wb_memory_reclaim(const wb_device *device);

/* Counts of evaluation so far on this thread; benchmarks and tests look at their differences over a
 * step. */
typedef struct wb_plan_counts {
    int64_t evaluations;      /* plans run */
    int64_t misses;           /* plans made because none was in the cache */
    int64_t kernels;          /* commands run */
    int64_t missed_donations; /* updates that could not work in place */
    int64_t allocations;      /* pieces of memory asked of the system, on all threads */
    /* size of the plan cache, 64 MiB at most; kernels' memory in a backend is not counted */
    int64_t cache_bytes;
} wb_plan_counts;
WB_API wb_plan_counts wb_plan_status(void);

#ifdef __cplusplus
}
#endif
#endif
