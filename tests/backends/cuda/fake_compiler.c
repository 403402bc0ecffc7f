/* NVRTC and hipRTC: texts through g++. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_driver.h"
#include "support/cuda_cpp.h"
#include "support/host_cpp.h"

enum { LOG_BYTES = 1 << 14, PATH_BYTES = 4096 };

/* nvrtcResult and hiprtcResult. */
enum {
    RTC_SUCCESS = 0,
    RTC_OUT_OF_MEMORY = 1,
    RTC_INVALID_INPUT = 3,
    RTC_INVALID_PROGRAM = 4,
    RTC_INVALID_OPTION = 5,
    RTC_COMPILATION = 6
};

struct gpu_program_object {
    fake_object object;
    char *text;
    char architecture[FAKE_ARCHITECTURE_BYTES];
    bool is_portable;
    void *binary; /* fake_image and object */
    size_t binary_bytes;
    char log[LOG_BYTES];
};

/* ---- objects, kept on disk ---- */

uint64_t fake_hash(const void *bytes, size_t count) {
    uint64_t hash = 0xCBF29CE484222325u; /* FNV-1a */
    for (const unsigned char *at = bytes, *end = at + count; at < end; at++)
        hash = (hash ^ *at) * 0x100000001B3u;
    return hash;
}

static const char *options(void) {
    return fake_number("FAKE_CUDA_HAZARDS", 0) ? CUDA_CPP_HAZARD_OPTIONS : CUDA_CPP_OPTIONS;
}

/* 0: it cannot be read. */
static uint64_t hash_of_file(const char *path) {
    size_t bytes = 0;
    char *text = host_cpp_read(path, &bytes);
    const uint64_t hash = text ? fake_hash(text, bytes) : 0;
    free(text);
    return hash;
}

/* In a folder that all builds share: what a text becomes does not depend on how tests are built. */
static bool cache_path(const char *text, char path[PATH_BYTES]) {
    const uint64_t headers =
        hash_of_file(CUDA_CPP_HEADER) * 7 + hash_of_file(CUDA_CPP_HAZARDS_HEADER);
    const uint64_t hash = fake_hash(text, strlen(text)) * 31 + headers +
                          fake_hash(options(), strlen(options())) +
                          fake_hash(host_cpp_compiler(), strlen(host_cpp_compiler()));
    return snprintf(path, PATH_BYTES, FAKE_CACHE "/%016llx.so", (unsigned long long)hash) <
           PATH_BYTES;
}

static void keep(const char *path, const void *object, size_t bytes) {
    char temporary[PATH_BYTES + 16];
    (void)snprintf(temporary, sizeof temporary, "%s.%d", path, (int)getpid());
    FILE *file = fopen(temporary, "wbe");
    if (!file) return;
    const bool written = fwrite(object, 1, bytes, file) == bytes;
    if (fclose(file) != 0 || !written || rename(temporary, path) != 0) (void)unlink(temporary);
}

static const char *definitions(void) {
#ifdef FAKE_HIP
    return "#define __HIPCC_RTC__ 1\n#define __HIP_PLATFORM_AMD__ 1";
#else
    return "#define __CUDACC_RTC__ 1\n#define __CUDA_ARCH__ 900";
#endif
}

void *fake_compile(const char *text, size_t *bytes, char *log, size_t log_bytes) {
    char path[PATH_BYTES];
    char *cpp = cuda_cpp_text(text, definitions(), fake_warp());
    if (!cpp) return NULL;
    const bool is_kept = cache_path(cpp, path);
    void *object = is_kept ? host_cpp_read(path, bytes) : NULL;
    if (!object) {
        object = host_cpp_build(cpp, options(), bytes, log, log_bytes);
        if (object && is_kept) keep(path, object, *bytes);
    }
    free(cpp);
    return object;
}

/* ---- programs ---- */

gpu_code fake_COMPILER_Version(int *major, int *minor) {
    FAKE_ENTER(FAKE_COMPILER_Version);
    *major = 13, *minor = 0;
    return RTC_SUCCESS;
}

gpu_code fake_COMPILER_CreateProgram(gpu_program *result, const char *text, const char *name,
                                     int headers, const char *const *header_texts,
                                     const char *const *header_names) {
    FAKE_ENTER(FAKE_COMPILER_CreateProgram);
    (void)name, (void)header_texts, (void)header_names;
    if (!text || headers) return RTC_INVALID_INPUT;
    gpu_program program = fake_object_new(FAKE_PROGRAM, sizeof *program);
    if (program) program->text = strdup(text);
    if (!program || !program->text) return RTC_OUT_OF_MEMORY;
    fake_count.programs++;
    *result = program;
    return RTC_SUCCESS;
}

static bool take_option(gpu_program program, const char *option) {
    static const char *const known[] = {"--std=c++17", "--disable-warnings", "-w", "-fwrapv"};
    static const char *const architectures[] = {"--gpu-architecture=", "--offload-arch="};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(option, known[i]) == 0) return true;
    for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++) {
        const size_t length = strlen(architectures[i]);
        if (strncmp(option, architectures[i], length) != 0) continue;
        (void)snprintf(program->architecture, sizeof program->architecture, "%s", option + length);
        program->is_portable = strncmp(option + length, "compute_", 8) == 0;
        return true;
    }
    (void)snprintf(program->log, LOG_BYTES, "unknown option %s\n", option);
    return false;
}

static gpu_code make_binary(gpu_program program) {
    size_t bytes = 0;
    void *object = fake_compile(program->text, &bytes, program->log, LOG_BYTES);
    if (!object) return RTC_COMPILATION;
    fake_image image = {.magic = FAKE_MAGIC, .bytes = bytes, .hash = fake_hash(object, bytes)};
    memcpy(image.architecture, program->architecture, sizeof image.architecture);
    program->binary_bytes = sizeof image + bytes;
    program->binary = malloc(program->binary_bytes);
    if (program->binary) {
        memcpy(program->binary, &image, sizeof image);
        memcpy((char *)program->binary + sizeof image, object, bytes);
    }
    free(object);
    return program->binary ? RTC_SUCCESS : RTC_OUT_OF_MEMORY;
}

gpu_code fake_COMPILER_CompileProgram(gpu_program handle, int count, const char *const *options) {
    FAKE_ENTER(FAKE_COMPILER_CompileProgram);
    gpu_program program = fake_object_of(FAKE_PROGRAM, handle);
    if (!program) return RTC_INVALID_PROGRAM;
    for (int i = 0; i < count; i++)
        if (!take_option(program, options[i])) return RTC_INVALID_OPTION;
    fake_count.compilations++;
    return make_binary(program);
}

gpu_code fake_COMPILER_DestroyProgram(gpu_program *handle) {
    FAKE_LOCKED(FAKE_COMPILER_DestroyProgram);
    gpu_program program = fake_object_of(FAKE_PROGRAM, *handle);
    if (!program) return RTC_INVALID_PROGRAM;
    free(program->text);
    free(program->binary);
    program->text = NULL, program->binary = NULL;
    program->object.kind = FAKE_RELEASED;
    fake_count.programs--;
    *handle = NULL;
    return refused;
}

/* ---- what came of it ---- */

/* Begins a function of a program that takes a place for the answer. */
#define ENTER_PROGRAM(function, handle)                                                            \
    FAKE_ENTER(function);                                                                          \
    gpu_program program = fake_object_of(FAKE_PROGRAM, handle);                                    \
    if (!program) return RTC_INVALID_PROGRAM

gpu_code fake_COMPILER_GetLogSize(gpu_program handle, size_t *bytes) {
    ENTER_PROGRAM(FAKE_COMPILER_GetLogSize, handle);
    *bytes = strlen(program->log) + 1;
    return RTC_SUCCESS;
}

gpu_code fake_COMPILER_GetLog(gpu_program handle, char *log) {
    ENTER_PROGRAM(FAKE_COMPILER_GetLog, handle);
    memcpy(log, program->log, strlen(program->log) + 1);
    return RTC_SUCCESS;
}

gpu_code fake_COMPILER_GetBinarySize(gpu_program handle, size_t *bytes) {
    ENTER_PROGRAM(FAKE_COMPILER_GetBinarySize, handle);
    *bytes = program->is_portable ? 0 : program->binary_bytes;
    return RTC_SUCCESS;
}

gpu_code fake_COMPILER_GetBinary(gpu_program handle, char *binary) {
    ENTER_PROGRAM(FAKE_COMPILER_GetBinary, handle);
    if (program->is_portable || !program->binary) return RTC_INVALID_PROGRAM;
    memcpy(binary, program->binary, program->binary_bytes);
    return RTC_SUCCESS;
}

#ifdef FAKE_HIP

/* hipDeviceProp_t begins with the name; gcnArchName comes much later, at another place in each
 * version. */
gpu_code fake_GetDeviceProperties(void *properties, int device) {
    FAKE_ENTER(FAKE_OWN_GetDeviceProperties);
    enum { ARCHITECTURE_AT = 640 };
    if (!fake_context_of(device)) return GPU_INVALID_DEVICE;
    (void)snprintf(properties, 256, "Fake GPU");
    (void)strcpy((char *)properties + ARCHITECTURE_AT, fake_architecture());
    return GPU_SUCCESS;
}

#else

static const int architectures[] = {75, 80, 86, 89, 90};
enum { ARCHITECTURES = sizeof architectures / sizeof *architectures };

gpu_code fake_GetNumSupportedArchs(int *count) {
    FAKE_ENTER(FAKE_OWN_GetNumSupportedArchs);
    *count = ARCHITECTURES;
    return RTC_SUCCESS;
}

gpu_code fake_GetSupportedArchs(int *list) {
    FAKE_ENTER(FAKE_OWN_GetSupportedArchs);
    memcpy(list, architectures, sizeof architectures);
    return RTC_SUCCESS;
}

gpu_code fake_GetPTXSize(gpu_program handle, size_t *bytes) {
    ENTER_PROGRAM(FAKE_OWN_GetPTXSize, handle);
    *bytes = strlen(FAKE_PORTABLE) + strlen(program->text) + 1;
    return RTC_SUCCESS;
}

gpu_code fake_GetPTX(gpu_program handle, char *text) {
    ENTER_PROGRAM(FAKE_OWN_GetPTX, handle);
    (void)sprintf(text, "%s%s", FAKE_PORTABLE, program->text);
    return RTC_SUCCESS;
}

#endif

#ifdef FAKE_HIP
#define RTC_NAME(name) "HIPRTC_" name
#else
#define RTC_NAME(name) "NVRTC_" name
#endif

const char *fake_COMPILER_GetErrorString(gpu_code code) {
    static const char *const texts[] = {[RTC_SUCCESS] = RTC_NAME("SUCCESS"),
                                        [RTC_OUT_OF_MEMORY] = RTC_NAME("ERROR_OUT_OF_MEMORY"),
                                        [RTC_INVALID_INPUT] = RTC_NAME("ERROR_INVALID_INPUT"),
                                        [RTC_INVALID_PROGRAM] = RTC_NAME("ERROR_INVALID_PROGRAM"),
                                        [RTC_INVALID_OPTION] = RTC_NAME("ERROR_INVALID_OPTION"),
                                        [RTC_COMPILATION] = RTC_NAME("ERROR_COMPILATION")};
    const bool is_known = code >= 0 && code < (int)(sizeof texts / sizeof *texts) && texts[code];
    return is_known ? texts[code] : RTC_NAME("ERROR_UNKNOWN");
}
