/* weber/device.h: where arrays live. */
#ifndef WEBER_DEVICE_H
#define WEBER_DEVICE_H

#include "array.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The CPU, which is always available. */
WB_API const wb_device *wb_cpu_device(void);

/* The default device of the process (a context may have its own, below): arrays from C memory are
 * put there, and so are arrays without inputs (wb_zeros, wb_uniform) when they are computed or
 * kept. It is the CPU until wb_set_default_device sets another one; NULL sets the CPU. Borrowed and
 * adopted memory stays on the host. */
WB_API const wb_device *wb_default_device(void);
WB_API void wb_set_default_device(const wb_device *device);

/* Sets a default device for the context that this thread uses, its own or one that it has entered
 * (weber/context.h), instead of the process's; NULL removes it. Returns the context's previous one,
 * for restoring it, or NULL if there was none. Threads of a loader have contexts of their own. */
WB_API const wb_device *wb_set_context_device(const wb_device *device);

/* Waits until everything queued on the device is done, and reports errors of the queued work.
 * Reading a value waits by itself. */
WB_API wb_status wb_device_sync(const wb_device *device);

/* ---- the same bits ----
 *
 * The same program gives the same bits again, on one machine with the same libraries: in each
 * process and for any number of threads. Sums are added up in a fixed order, and library algorithms
 * that add in a varying order are not used.
 *
 * On devices other than the CPU, the last bits of a result may depend on neighbouring operations. A
 * vendor's library chooses the algorithm of a product or convolution by sizes, types, the alignment
 * of its operands in memory (a slice may begin anywhere), and by what the same call computes next:
 * a bias, an activation. Compilers fuse a multiplication and an addition into one instruction. So
 * on these devices results may differ by a rounding for arrays that are computed again
 * (wb_recompute), for a loop instead of a scan, or for a plan without fusion (WEBER_FUSE=0,
 * WEBER_EAGER=1).
 *
 * On NVIDIA the ways to compute a convolution are timed once for each shape, and the choice is kept
 * on disk. Until all shapes of a program are there, another process may choose another way;
 * WEBER_TUNE=0 takes the library's first one, always. */

/* "CPU", "OpenCL(0)". */
WB_API const char *wb_device_name(const wb_device *device);

/* The number of threads that the CPU computes with: WEBER_NUM_THREADS, else the number of cores
 * that this process may use; results do not depend on it. wb_set_threads(0) restores the default;
 * an evaluation that is running on another thread is not affected. */
WB_API int wb_threads(void);
WB_API void wb_set_threads(int threads);

/* ---- movement ---- */

/* How floating types are converted by a move; integers and bool keep their type. */
typedef enum wb_eltype {
    /* f64 becomes f32 when it moves from the CPU to another device; other types are kept */
    WB_ELTYPE_DEFAULT,
    WB_ELTYPE_PRESERVE, /* keep the type */
    WB_ELTYPE_F32,      /* convert to this type, also arrays that are on the device already */
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
 * WB_ELTYPE_PRESERVE). The given x stays where it is. If x is on the device already, the result is
 * x (for a model or tree one more reference, to be freed like any other). Arrays belong to the
 * scope, and gradients flow back through the move to the input's device; models are new ones, whose
 * ties are kept. For an optimiser use wb_move. NULL on failure, NULL for NULL. */
#define wb_to(...) WB_MAKE(wb_to_make, to, __VA_ARGS__)
WB_API void *wb_to_make(wb_to_desc desc);

/* wb_gpu: wb_to(wb_gpu_device(), x) if there is a GPU, else as wb_cpu. wb_cpu:
 * wb_to(wb_cpu_device(), x). Julia's `m = gpu(m)` is wb_move(wb_gpu_device(), m): m = wb_gpu(m)
 * would lose the first model without freeing it. */
WB_API void *wb_gpu(void *x);
WB_API void *wb_cpu(void *x);

/* The same in place: replaces the arrays in a model, or an optimiser's states and the arrays in its
 * model, by arrays on the device; on failure none of them. */
#define wb_move(...) WB_MAKE(wb_move_make, to, __VA_ARGS__)
WB_API wb_status wb_move_make(wb_to_desc desc);

/* The device of an array, or of everything in a model, tree or optimiser. NULL for NULL and for an
 * object without arrays; NULL, with an error that names two of the devices, if the arrays are on
 * several. */
WB_API const wb_device *wb_device_of(const void *x);

/* Reading a single element (wb_at) of an array on a device other than the CPU waits for the device.
 * The thousandth such read gives a warning; after wb_allow_scalar(false) each one is an error.
 * wb_item of a single number always works. The setting is for the whole process. */
WB_API void wb_allow_scalar(bool allowed);

/* ---- which devices there are ----
 *
 * A backend is built in or a plugin: a file libweber_NAME.so (NAME in lower case) in a folder of
 * WEBER_PLUGIN_PATH (absolute paths, with colons between them), in the folder weber/ beside the
 * library, beside the library, or where Weber was installed. The file and its folder belong to root
 * or to the user of the process, and nobody else may write there. The first call of a function
 * below loads all plugins that are installed, or those that WEBER_BACKENDS=cpu,opencl names; a
 * program that calls none loads none. Plugins stay loaded.
 *
 * Names of backends are accepted in any case. An unknown one is an error that names the known ones
 * and the nearest spelling. Lists are valid for ever, and any thread may call these functions at
 * any time.
 *
 *     for (const char *const *name = wb_supported_devices(); *name; name++)
 *         printf("%s: %s\n", *name, wb_functional(*name) ? "works" : wb_reason()); */

/* The names of backends in order of preference, ended by NULL: "CUDA", "AMDGPU", "Metal", "OpenCL",
 * other plugins that are installed, "CPU". */
WB_API const char *const *wb_supported_devices(void);

/* The same without "CPU". */
WB_API const char *const *wb_supported_gpu_backends(void);

/* Loads one backend, unless it is loaded already; a backend that failed before is tried again. If
 * it cannot be loaded: WB_ERROR_DEVICE, with what is missing and the Debian package that has it. */
WB_API wb_status wb_use(const char *backend);

/* True if the backend is built in, or its plugin is installed, has the ABI of this Weber and has
 * found the vendor's libraries. */
WB_API bool wb_loaded(const char *backend);

/* True if it is loaded and has a device. */
WB_API bool wb_functional(const char *backend);

/* True if it is functional and has a working part of this name, such as "cuDNN" or "MIOpen". */
WB_API bool wb_functional_part(const char *backend, const char *part);

/* Why the last of wb_loaded, wb_functional and wb_functional_part on this thread returned false; ""
 * if it returned true. Valid until the thread calls one of them again. */
WB_API const char *wb_reason(void);

/* Number of devices; 0 where the backend is not functional. */
WB_API int wb_device_count(const char *backend);

/* The backend's devices in the driver's order, ended by NULL; empty where it is not functional.
 * Opens all of them; NULL if one cannot be opened. */
WB_API const wb_device *const *wb_devices(const char *backend);

/* Prints one line for each device, without opening any: "CUDA(0): NVIDIA GeForce GTX 1650". */
WB_API void wb_show_devices(void);

/* wb_plugin_folders: the folders that were searched for plugins. wb_skipped_plugins: "PATH: reason"
 * for each file and folder that was skipped. Both are ended by NULL. A plugin that only lacks its
 * vendor's libraries is not skipped: wb_reason() says what its backend lacks. */
WB_API const char *const *wb_plugin_folders(void);
WB_API const char *const *wb_skipped_plugins(void);

/* ---- one device ---- */

/* What the driver reports about a device. */
typedef struct wb_properties {
    char name[128];       /* "NVIDIA GeForce GTX 1650" */
    char driver[128];     /* driver or platform with its version; "" */
    char address[32];     /* of the device on its machine: "0000:3B:00.0"; "" where unknown */
    char uuid[40];        /* unique among all devices anywhere; "" where unknown */
    int64_t memory_bytes; /* 0: unknown */
    int compute_units;    /* multiprocessors, cores */
    bool is_gpu;          /* an accelerator; the automatic choice takes only these */
    bool has_f64;
} wb_properties;

/* The name of the device's backend, "CUDA"; "" for NULL. */
WB_API const char *wb_device_backend_name(const wb_device *device);

/* Its number among the backend's devices, from 0. The CPU has none: -1. */
WB_API int wb_device_id(const wb_device *device);

/* What the driver reports about this device; texts are "" and numbers 0 for NULL. */
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
 * Each call decides again, so a preference or a plugin that is added later has an effect at once; a
 * backend's devices are counted again only after wb_use and wb_reset_gpu_device. */

typedef struct wb_get_device_desc {
    WB_START_MEMBER;
    const char *backend; /* default: the device of choice */
    int index;           /* among the backend's devices, from 0 */
    bool verbose;        /* log what was chosen and why, whatever WEBER_LOG is */
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
    int id;     /* number in its backend, from 1; default: WEBER_DEVICE's, else the first GPU */
    bool force; /* fail if there is no GPU: "No functional GPU device found!" */
} wb_gpu_device_desc;

/* The same choice for programs that expect a GPU: if there is none, one message says so, with the
 * reasons, unless the preference or WEBER_DEVICE is "CPU". If the choice is the CPU, id is ignored
 * with a warning; an id out of range is an error. An id has no effect on later calls. */
#define wb_gpu_device(...) WB_MAKE(wb_gpu_device_make, gpu_device, __VA_ARGS__)
WB_API const wb_device *wb_gpu_device_make(wb_gpu_device_desc desc);

/* Resets the search for devices: plugins that failed are tried again, devices are counted again,
 * and the message that there is no GPU may appear again. Devices that were returned earlier stay
 * valid. */
WB_API void wb_reset_gpu_device(void);

/* What wb_get_device() would return, without opening the device and without a line in the log. */
typedef struct wb_choice {
    char device[48];   /* "OpenCL(0)" */
    char backend[32];  /* "OpenCL" */
    bool is_automatic; /* neither WEBER_DEVICE nor a preference decided */
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
 * is read, but never written. The file is read at each call and written as a whole; everything else
 * in it is preserved. A file that cannot be read, has errors or cannot be written gives a warning,
 * and the program continues as if there were no preference. */

/* The path of the preference file, or the path where it would be made if there is none yet; "" if
 * there is no place for one. Valid until the thread calls this again. */
WB_API const char *wb_preference_file(void);

/* The text of a preference ("true" or "false" if it is a bool); NULL if it is not set. Valid until
 * the thread calls this again. Names consist of letters, digits, _ and -. wb_preference_get_bool
 * returns otherwise if it is not set. */
WB_API const char *wb_preference_get(const char *name);
WB_API bool wb_preference_get_bool(const char *name, bool otherwise);

/* Writes a preference; NULL removes it. If the file cannot be written, there is a warning, and
 * WB_ERROR_IO or WB_ERROR_FORMAT is returned, but no error is pending. */
WB_API wb_status wb_preference_set(const char *name, const char *value);
WB_API wb_status wb_preference_set_bool(const char *name, bool value);

/* The preference gpu_backend; NULL if it is not set, and the choice is automatic. Valid until the
 * thread calls this again. */
WB_API const char *wb_gpu_backend(void);

/* Writes the preference gpu_backend, for later calls. "CPU" is valid. Warns if WEBER_DEVICE
 * overrides it. */
WB_API wb_status wb_gpu_backend_set(const char *backend);

/* Removes the preference gpu_backend; afterwards wb_gpu_backend() is NULL. */
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
 * C memory or files. Fills at most capacity entries and returns how many origins there are. */
typedef struct wb_memory_holder {
    const char *tag;
    int64_t arrays, bytes;
} wb_memory_holder;
WB_API int wb_memory_holders(const wb_device *device, int capacity, wb_memory_holder *holders);

/* Limits live, cached and workspace memory together to so many bytes, from now on. If an allocation
 * does not fit, the cache is released; if it still does not fit, it fails with WB_ERROR_MEMORY. 0:
 * no limit except the device's own. */
WB_API wb_status wb_memory_limit(const wb_device *device, int64_t bytes);

/* Gives cached memory back to the system. */
WB_API void wb_memory_reclaim(const wb_device *device);

/* Counts of this thread's evaluations so far; benchmarks and tests compare them before and after a
 * step. */
typedef struct wb_plan_counts {
    int64_t evaluations;      /* plans run */
    int64_t misses;           /* plans made because none was in the cache */
    int64_t kernels;          /* commands run */
    int64_t missed_donations; /* updates that were not in place */
    int64_t allocations;      /* allocations from the system, by all threads */
    /* size of the plan cache, 64 MiB at most; kernels' memory in a backend is not counted */
    int64_t cache_bytes;
} wb_plan_counts;
WB_API wb_plan_counts wb_plan_status(void);

#ifdef __cplusplus
}
#endif
#endif
