/* The preference file, for those who choose a device. */
#ifndef WB_DEVICE_PREFERENCES_H
#define WB_DEVICE_PREFERENCES_H

#include <weber/device.h>

enum { WB_PREFERENCE_BYTES = 256 };

/* The preference gpu_backend as the file has it, and the file's path (4096 bytes), into text.
 * False: none. is_quiet: no warnings. */
bool wb_preference_backend(char value[WB_PREFERENCE_BYTES], char *path, bool is_quiet);

/* Removes it, so that none is found in other tables either. */
wb_status wb_preference_remove_backend(void);

#endif
