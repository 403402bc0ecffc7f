/* A transport that carries nothing, compiled with one fault each. */
#include <weber/transport.h>

#ifndef FAKE_ABI
#define FAKE_ABI WB_TRANSPORT_ABI
#endif
#ifdef FAKE_DEVICES
#define TABLE    wb_device_transport
#define FUNCTION weber_device_transport
#else
#define TABLE    wb_transport
#define FUNCTION weber_transport
#endif
#ifndef FAKE_SIZE
#define FAKE_SIZE sizeof(TABLE)
#endif

static const TABLE table = {.abi = FAKE_ABI, .size_bytes = FAKE_SIZE, .name = "fake"};

__attribute__((visibility("default"))) const TABLE *FUNCTION(const wb_host *host);
const TABLE *FUNCTION(const wb_host *host) {
#ifdef FAKE_REFUSES
    (void)host, (void)table;
    return 0;
#else
    return host ? &table : 0;
#endif
}
