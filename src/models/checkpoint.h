/* Folders of checkpoints: private side of weber/state.h. */
#ifndef WB_MODELS_CHECKPOINT_H
#define WB_MODELS_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

/* Writes the name (PATH_MAX bytes) of file `number` of the series at path. False with the error
 * recorded. */
bool wb_checkpoint_file(const char *path, int64_t number, char *name);

#endif
