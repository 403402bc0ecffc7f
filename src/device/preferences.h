/* The preference file, as the choice of a device uses it. */
#ifndef WB_DEVICE_PREFERENCES_H
#define WB_DEVICE_PREFERENCES_H

#include <weber/device.h>

enum { WB_PREFERENCE_BYTES = 256 };

/* Writes the preference gpu_backend, as it is in the file, to value and the file's path to path
 * (4096 bytes). False: there is none. is_quiet: no warnings. */
bool wb_preference_backend(char value[WB_PREFERENCE_BYTES], char *path, bool is_quiet);

/* Removes the preference, so that it is not found in other tables of the file either. */
wb_status wb_preference_remove_backend(void);

#endif
