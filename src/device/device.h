/* Devices: a backend with memory. Private side of weber/device.h. */
#ifndef WB_DEVICE_DEVICE_H
#define WB_DEVICE_DEVICE_H

#include <weber/device.h>
#include <weber/plugin.h>

const wb_backend *wb_device_backend(const wb_device *device);

/* Memory outside arrays (a plan's workspace), counted with the device. NULL: out of memory. */
void *wb_device_alloc(const wb_device *device, size_t size_bytes);
void wb_device_free(const wb_device *device, void *handle, size_t size_bytes);

/* What built-in backends ask of the library. */
extern const wb_host wb_builtin_host;

/* The built-in CPU backend (backends/cpu). */
extern const wb_backend wb_cpu_backend;
int wb_cpu_threads(void);
void wb_cpu_set_threads(int threads);

#endif
