/* A stand-in for a backend, used in a forked process for devices that its parent opened. */
#ifndef WB_DEVICE_GONE_H
#define WB_DEVICE_GONE_H

#include "device/device.h"

/* A table that calls nothing of the plugin, since a thread of the parent may have been inside it
 * during the fork. Functions that release do nothing, all others fail as wb_device_check does. Its
 * context is the device. */
const wb_backend *wb_gone_backend(wb_device *device);

#endif
