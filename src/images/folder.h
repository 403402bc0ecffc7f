/* The files of a folder of classes, for loaders. */
#ifndef WB_IMAGES_FOLDER_H
#define WB_IMAGES_FOLDER_H

#include "images/images.h"

/* Constant; shared by folders and loaders, on any thread. */
typedef struct wb_image_files wb_image_files;

/* The folder's files, with one more reference. False with the error recorded. */
bool wb_image_files_take(const char *function, const wb_image_folder *folder,
                         wb_image_files **files);
/* A folder over files that a loader has. */
wb_image_folder *wb_image_folder_over(wb_image_files *files);
void wb_image_files_unref(wb_image_files *files);

int64_t wb_image_files_count(const wb_image_files *files);
/* Width, height and channels of a prepared picture; false with the error recorded if they may
 * differ. */
bool wb_image_files_sizes(const wb_image_files *files, int64_t sizes[3]);
/* Reads and prepares picture i into x, of these sizes, and writes its label to y. */
wb_status wb_image_files_get(const wb_image_files *files, int64_t i, float *x, int32_t *y);

#endif
