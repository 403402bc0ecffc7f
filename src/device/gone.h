/* In the place of a backend whose device belongs to the parent of a forked process. */
#ifndef WB_DEVICE_GONE_H
#define WB_DEVICE_GONE_H

#include "device/device.h"

/* A table that calls nothing of the plugin, where another thread of the parent may have been: what
 * releases does nothing, all else fails as wb_device_check does. The device is its context. */
const wb_backend *wb_gone_backend(wb_device *device);

#endif
