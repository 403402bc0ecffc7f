/* Which devices there are, whose turn it is in a thread, and what codes are called. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_driver.h"

/* ---- which there are ---- */

#ifdef FAKE_HIP
static const char hiding[] = "HIP_VISIBLE_DEVICES";
#else
static const char hiding[] = "CUDA_VISIBLE_DEVICES";
#endif

static bool is_initialised;
static int visible[FAKE_MOST_DEVICES], visible_count;
static fake_context contexts[FAKE_MOST_DEVICES];

/* The first number that is not a device hides itself and all numbers after it (CUDA C programming
 * guide, environment variables). */
static void find_visible(void) {
    const char *at = getenv(hiding);
    const long most = fake_number("FAKE_CUDA_DEVICES", 2);
    for (int i = 0; !at && i < most; i++) visible[visible_count++] = i;
    while (at && visible_count < FAKE_MOST_DEVICES) {
        char *end;
        const long index = strtol(at, &end, 10);
        if (end == at || index < 0 || index >= most) return;
        visible[visible_count++] = (int)index;
        if (*end != ',') return;
        at = end + 1;
    }
}

static gpu_code initialise(void) {
    if (!is_initialised) find_visible();
    is_initialised = true;
    for (int i = 0; i < visible_count; i++) contexts[i].ordinal = i;
    return visible_count > 0 ? GPU_SUCCESS : GPU_NO_DEVICE;
}

int fake_device_count(void) { return is_initialised ? visible_count : 0; }

fake_context *fake_context_of(int ordinal) {
    return ordinal >= 0 && ordinal < fake_device_count() ? &contexts[ordinal] : NULL;
}

/* Begins a function about the device `ordinal`. */
#define ENTER_DEVICE(function, ordinal)                                                            \
    FAKE_ENTER(function);                                                                          \
    if (!is_initialised) return FAKE_NOT_INITIALIZED;                                              \
    if (!fake_context_of(ordinal)) return GPU_INVALID_DEVICE

gpu_code fake_Init(unsigned flags) {
    FAKE_ENTER(FAKE_Init);
    if (flags != 0) return FAKE_INVALID_VALUE;
    return initialise();
}

gpu_code fake_DriverGetVersion(int *version) {
    FAKE_ENTER(FAKE_DriverGetVersion);
#ifdef FAKE_HIP
    *version = 60000000;
#else
    *version = 13000;
#endif
    return GPU_SUCCESS;
}

gpu_code fake_DeviceGetCount(int *count) {
    FAKE_ENTER(FAKE_DeviceGetCount);
#ifdef FAKE_HIP
    if (initialise() != GPU_SUCCESS) return GPU_NO_DEVICE;
#endif
    if (!is_initialised) return FAKE_NOT_INITIALIZED;
    *count = visible_count;
    return GPU_SUCCESS;
}

gpu_code fake_DeviceGet(int *device, int index) {
    ENTER_DEVICE(FAKE_DeviceGet, index);
    *device = index;
    return GPU_SUCCESS;
}

gpu_code fake_DeviceGetName(char *name, int bytes, int device) {
    ENTER_DEVICE(FAKE_DeviceGetName, device);
    (void)snprintf(name, (size_t)bytes, "Fake GPU %d", visible[device]);
    return GPU_SUCCESS;
}

gpu_code fake_DeviceGetAddress(char *address, int bytes, int device) {
    ENTER_DEVICE(FAKE_DeviceGetAddress, device);
    (void)snprintf(address, (size_t)bytes, "0000:%02X:00.0", visible[device] + 1);
    return GPU_SUCCESS;
}

gpu_code fake_DeviceTotalMem(size_t *bytes, int device) {
    ENTER_DEVICE(FAKE_DeviceTotalMem, device);
    *bytes = (size_t)fake_number("FAKE_CUDA_MEMORY", 1 << 30);
    return GPU_SUCCESS;
}

static bool can_reach(void) { return fake_number("FAKE_CUDA_PEERS", 1) != 0; }

gpu_code fake_DeviceCanAccessPeer(int *can, int device, int peer) {
    ENTER_DEVICE(FAKE_DeviceCanAccessPeer, device);
    if (!fake_context_of(peer)) return GPU_INVALID_DEVICE;
    *can = device != peer && can_reach();
    return GPU_SUCCESS;
}

static gpu_code enable_peer(fake_context *context, const fake_context *peer) {
    if (!peer || peer == context || !can_reach()) return GPU_INVALID_DEVICE;
    if (context->reaches[peer->ordinal]) return GPU_PEER_ACCESS_ALREADY_ENABLED;
    context->reaches[peer->ordinal] = true;
    return GPU_SUCCESS;
}

/* ---- attributes ---- */

typedef struct attribute {
    int number, value;
} attribute;

#ifdef FAKE_HIP
static const char architecture[] = "gfx90a:sramecc+:xnack-";
enum { WARP = 64 };
#else
static const char architecture[] = "sm_90";
enum { WARP = 32 };
#endif

const char *fake_architecture(void) {
    const char *chosen = getenv("FAKE_CUDA_ARCHITECTURE");
    return chosen ? chosen : architecture;
}
int fake_warp(void) { return WARP; }

gpu_code fake_DeviceGetAttribute(int *value, int number, int device) {
    ENTER_DEVICE(FAKE_DeviceGetAttribute, device);
#ifdef FAKE_HIP
    *value = 2;
    (void)number;
#else
    const int capability = atoi(fake_architecture() + strlen("sm_"));
    const attribute attributes[] = {
        {75, capability / 10}, /* _COMPUTE_CAPABILITY_MAJOR */
        {76, capability % 10}, /* _COMPUTE_CAPABILITY_MINOR */
        {1, 1024},             /* CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK */
        {8, 48 << 10},         /* _MAX_SHARED_MEMORY_PER_BLOCK */
        {10, WARP},            /* _WARP_SIZE */
        {16, 2},               /* _MULTIPROCESSOR_COUNT */
        {41, 1},               /* _UNIFIED_ADDRESSING */
        {97, 227 << 10},       /* _MAX_SHARED_MEMORY_PER_BLOCK_OPTIN */
        {115, 0},              /* _MEMORY_POOLS_SUPPORTED */
    };
    const attribute *a = attributes, *const end = a + sizeof attributes / sizeof *attributes;
    while (a < end && a->number != number) a++;
    if (a == end) return FAKE_INVALID_VALUE;
    *value = a->value;
#endif
    return GPU_SUCCESS;
}

/* ---- whose turn it is ---- */

static _Thread_local fake_context *current;

fake_context *fake_current(gpu_code *code) {
#ifdef FAKE_HIP
    if (!current && initialise() == GPU_SUCCESS) current = &contexts[0];
#endif
    *code = !is_initialised ? FAKE_NOT_INITIALIZED
            : !current      ? FAKE_INVALID_CONTEXT
                            : current->fault;
    return *code == GPU_SUCCESS ? current : NULL;
}

#ifdef FAKE_HIP

gpu_code fake_SetDevice(int device) {
    FAKE_ENTER(FAKE_OWN_SetDevice);
    (void)initialise();
    if (!fake_context_of(device)) return GPU_INVALID_DEVICE;
    current = fake_context_of(device);
    return GPU_SUCCESS;
}

gpu_code fake_DeviceEnablePeerAccess(int peer, unsigned flags) {
    FAKE_ENTER_CONTEXT(FAKE_OWN_DeviceEnablePeerAccess);
    return flags ? FAKE_INVALID_VALUE : enable_peer(context, fake_context_of(peer));
}

#else

/* FAKE_CUDA_PART: what is seen of each GPU is that part of it (MIG). */
gpu_code fake_DeviceGetUuid_v2(gpu_uuid *uuid, int device) {
    ENTER_DEVICE(FAKE_OWN_DeviceGetUuid_v2, device);
    for (unsigned char i = 0; i < 16; i++) uuid->bytes[i] = (char)(17 * i);
    uuid->bytes[14] = (char)fake_number("FAKE_CUDA_PART", 0);
    uuid->bytes[15] = (char)visible[device];
    return GPU_SUCCESS;
}

/* What is in it stays: who gives back a context with something in it has forgotten that. */
gpu_code fake_DevicePrimaryCtxRetain(gpu_context *handle, int device) {
    ENTER_DEVICE(FAKE_OWN_DevicePrimaryCtxRetain, device);
    fake_context *context = fake_context_of(device);
    fake_count.contexts += context->references++ == 0;
    *handle = (gpu_context)(void *)context;
    return GPU_SUCCESS;
}

gpu_code fake_DevicePrimaryCtxRelease_v2(int device) {
    FAKE_LOCKED(FAKE_OWN_DevicePrimaryCtxRelease_v2);
    fake_context *context = fake_context_of(device);
    if (!context) return GPU_INVALID_DEVICE;
    if (context->references == 0) return FAKE_INVALID_CONTEXT;
    if (--context->references > 0) return refused;
    fake_drain_context(context);
    fake_count.contexts--;
    context->fault = GPU_SUCCESS;
    memset(context->reaches, 0, sizeof context->reaches);
    return refused;
}

static fake_context *of_handle(gpu_context handle) {
    for (int i = 0; i < visible_count; i++)
        if ((void *)&contexts[i] == (void *)handle) return &contexts[i];
    return NULL;
}

gpu_code fake_CtxSetCurrent(gpu_context handle) {
    FAKE_ENTER(FAKE_OWN_CtxSetCurrent);
    fake_context *context = of_handle(handle);
    if (handle && (!context || context->references == 0)) return FAKE_INVALID_CONTEXT;
    current = context;
    return GPU_SUCCESS;
}

gpu_code fake_CtxEnablePeerAccess(gpu_context peer, unsigned flags) {
    FAKE_ENTER_CONTEXT(FAKE_OWN_CtxEnablePeerAccess);
    return flags ? FAKE_INVALID_VALUE : enable_peer(context, of_handle(peer));
}

#endif

/* ---- what codes are called ---- */

static const struct {
    gpu_code code;
    const char *cuda, *hip;
} code_names[] = {
    {GPU_SUCCESS, "CUDA_SUCCESS", "hipSuccess"},
    {FAKE_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "hipErrorInvalidValue"},
    {GPU_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "hipErrorOutOfMemory"},
    {FAKE_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "hipErrorNotInitialized"},
    {GPU_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "hipErrorNoDevice"},
    {GPU_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "hipErrorInvalidDevice"},
    {FAKE_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "hipErrorInvalidImage"},
    {FAKE_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "hipErrorInvalidContext"},
    {FAKE_NO_BINARY, "CUDA_ERROR_NO_BINARY_FOR_GPU", "hipErrorNoBinaryForGpu"},
    {FAKE_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "hipErrorInvalidHandle"},
    {FAKE_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "hipErrorNotFound"},
    {GPU_NOT_READY, "CUDA_ERROR_NOT_READY", "hipErrorNotReady"},
    {FAKE_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "hipErrorIllegalAddress"},
    {GPU_PEER_ACCESS_ALREADY_ENABLED, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",
     "hipErrorPeerAccessAlreadyEnabled"},
    {FAKE_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "hipErrorLaunchFailure"},
    {FAKE_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "hipErrorStreamCaptureUnsupported"},
    {FAKE_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "hipErrorStreamCaptureInvalidated"},
    {FAKE_CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
     "hipErrorStreamCaptureUnmatched"},
    {FAKE_CAPTURE_UNJOINED, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "hipErrorStreamCaptureUnjoined"},
    {FAKE_CAPTURE_ISOLATION, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
     "hipErrorStreamCaptureIsolation"},
    {FAKE_CAPTURED_EVENT, "CUDA_ERROR_CAPTURED_EVENT", "hipErrorCapturedEvent"},
};

static const char *name_of(gpu_code code) {
    for (size_t i = 0; i < sizeof code_names / sizeof *code_names; i++)
#ifdef FAKE_HIP
        if (code_names[i].code == code) return code_names[i].hip;
#else
        if (code_names[i].code == code) return code_names[i].cuda;
#endif
    return NULL;
}

#ifdef FAKE_HIP
const char *fake_GetErrorName(gpu_code code) {
    const char *name = name_of(code);
    return name ? name : "hipErrorUnknown";
}
#else
gpu_code fake_GetErrorName(gpu_code code, const char **name) {
    FAKE_ENTER(FAKE_OWN_GetErrorName);
    *name = name_of(code);
    return *name ? GPU_SUCCESS : FAKE_INVALID_VALUE;
}
#endif
