/* weber/images.h: pictures from files, prepared for models, and folders of them as data.
 *
 *     wb_array *x = wb_image_read("cat.jpg", .channels = 3);   // u8 (width, height, 3)
 *     wb_array *y = wb_apply(model, wb_unsqueeze(wb_image_prepare(x), -1));
 *
 * wb_image_prepare does what torchvision's models of ImageNet expect. A folder with a folder of
 * pictures for each class is read by a loader (weber/data.h), while the model computes:
 *
 *     wb_image_folder *pets = wb_image_folder_open("pets/train");
 *     wb_loader *data = wb_loader_new(.images = pets, .batchsize = 64, .shuffle = true,
 *                                     .threads = 4);
 *
 * Files are PNG or JPEG, whatever their names. libpng reads the first, TurboJPEG the second; each
 * is opened when a file needs it, and an error names the missing package. wb_image_write
 * (weber/show.h) writes PNG files. Errors: weber/error.h. */
#ifndef WEBER_IMAGES_H
#define WEBER_IMAGES_H

#include "array.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wb_image_read_desc {
    WB_START_MEMBER;
    /* 1: grey; 3: red, green, blue; 4: these and alpha; default: those that the file has, which may
     * also be 2, grey and alpha. Alpha that is not wanted is dropped, alpha that is missing is 255;
     * grey is (19595 R + 38470 G + 7471 B) / 65536, rounded */
    int channels;
} wb_image_read_desc;

/* The picture in a file: u8 (width, height, channels), from left to right and from top to bottom.
 *
 * PNG of every kind: palettes become colours, 16 bits become their high 8; gamma and colour
 * profiles are not applied, and of an animation the first picture is read. JPEG: baseline and
 * progressive, 8 bits, grey or colour; the orientation in Exif data is not applied. The bytes are
 * those of PIL's Image.open(path).convert("RGB"), which however cuts 16 bits of grey off at 255.
 *
 * Fails with WB_ERROR_FORMAT, naming the path, if the file is neither, is damaged or cut short, or
 * claims more pixels than its bytes can hold or than the limit of wb_read_idx (weber/data.h)
 * allows; with WB_ERROR_UNSUPPORTED for JPEG files in CMYK, and where a library is missing. */
#define wb_image_read(...)        WB_IMAGE_READ_(__VA_ARGS__, WB_NO_MORE)
#define WB_IMAGE_READ_(path, ...) WB_MAKE_OF(wb_image_read_make, path, image_read, __VA_ARGS__)
WB_API wb_array *wb_image_read_make(const char *path, wb_image_read_desc desc);

/* ---- for models ---- */

/* How a pixel of a resized picture depends on those around its place: on 2 in each direction,
 * weighted linearly, or on 4, by cubic polynomials (a = -0.5). Where a picture becomes smaller, on
 * as many more as it is smaller (antialias), as in PIL and in torchvision's Resize. */
typedef enum wb_image_filter { WB_IMAGE_BILINEAR, WB_IMAGE_BICUBIC } wb_image_filter;

typedef struct wb_image_resize_desc {
    WB_START_MEMBER;
    int64_t width, height; /* from 1 to 2^20 */
    int filter;            /* wb_image_filter; default bilinear */
} wb_image_resize_desc;

/* x (width, height, ...) to (.width, .height, ...): wb_image_resize(x, 224, 224). u8 is read at the
 * call, and gives PIL's bytes: widths first, rounded, then heights (Pillow 13 begins with the
 * heights of pictures that lose much more height than width); alpha is a channel like the others.
 * Floating types give those of torch's interpolate(antialias=True), with a gradient; they are
 * products with a matrix, so a NaN or an infinity spreads over its row and its column. */
#define wb_image_resize(x, ...) WB_MAKE_OF(wb_image_resize_make, x, image_resize, __VA_ARGS__)
WB_API wb_array *wb_image_resize_make(wb_array *x, wb_image_resize_desc desc);

/* The middle of x (width, height, ...), of the given size; where x is smaller, zeros stand around
 * it. Equals torchvision's CenterCrop. */
WB_API wb_array *wb_image_crop(wb_array *x, int64_t width, int64_t height);

/* The defaults are torchvision's for models of ImageNet. */
typedef struct wb_image_prepare_desc {
    WB_START_MEMBER;
    /* the shorter side becomes this, the longer one in proportion, rounded down; 0: both stay */
    int64_t resize WB_DEFAULT(256);
    int64_t crop WB_DEFAULT(224); /* then the square of this size in the middle; 0: all of it */
    int filter;                   /* wb_image_filter; default bilinear */
    /* for each channel, of numbers from 0 to 1; of a grey picture the first is used */
    double mean[4] WB_DEFAULT({0.485, 0.456, 0.406});
    double std[4] WB_DEFAULT({0.229, 0.224, 0.225}); /* above 0 */
    /* for training, in place of .resize and the middle: a part at a random place, of 8% to 100% of
     * the area and 3:4 to 4:3 wide, resized to the square. As torchvision's RandomResizedCrop */
    bool random_crop;
    double flip; /* probability that left and right are exchanged, after that */
} wb_image_prepare_desc;

/* A picture u8 (width, height, channels), as wb_image_read gives it, as input of a model: resized,
 * cropped, and (x / 255 - mean) / std of each channel, f32 (crop, crop, channels). Equals
 * torchvision's Compose of Resize, CenterCrop, ToTensor and Normalize on PIL's pictures. What is
 * random is drawn from the thread's random numbers (wb_seed). */
#define wb_image_prepare(...)     WB_IMAGE_PREPARE_(__VA_ARGS__, WB_NO_MORE)
#define WB_IMAGE_PREPARE_(x, ...) WB_MAKE_OF(wb_image_prepare_make, x, image_prepare, __VA_ARGS__)
WB_API wb_array *wb_image_prepare_make(wb_array *x, wb_image_prepare_desc desc);

/* ---- folders of classes ---- */

/* The names of the files of a folder that has a folder for each class. Constant, so any thread may
 * use it. Released by wb_free; loaders over it go on. */
typedef struct wb_image_folder wb_image_folder;

typedef struct wb_image_folder_desc {
    WB_START_MEMBER;
    int channels WB_DEFAULT(3); /* 1, 3 or 4: what all pictures become (wb_image_read) */
    /* names of classes, one in each line, whose places are the labels: those of the data that a
     * model was trained on. Default: the folders' names, in the order of their bytes */
    const char *vocabulary;
    /* WB_DESC(image_prepare, .resize = 64, .crop = 64); default: its defaults */
    wb_image_prepare_desc prepare WB_DEFAULT(WB_NOT_GIVEN_(wb_image_prepare_desc));
} wb_image_folder_desc;

/* Lists the pictures, files whose names end in .png, .jpg or .jpeg, upper case or not, also in
 * folders within a class's folder; links are followed. Their order is that of torchvision's
 * ImageFolder: by class, by folder, by name, each in the order of bytes. What begins with a dot is
 * passed over, also as a class, and so are files with other endings.
 *
 * Fails if the folder has no class, if a class has no picture or one of a kind that is not read
 * (.bmp, .gif, .ppm, .pgm, .tif, .tiff, .webp), or if a class is not in the vocabulary; a class of
 * the vocabulary may be absent. */
#define wb_image_folder_open(...) WB_IMAGE_FOLDER_(__VA_ARGS__, WB_NO_MORE)
#define WB_IMAGE_FOLDER_(path, ...)                                                                \
    WB_MAKE_OF(wb_image_folder_open_make, path, image_folder, __VA_ARGS__)
WB_API wb_image_folder *wb_image_folder_open_make(const char *path, wb_image_folder_desc desc);

/* The number of its pictures. */
WB_API int64_t wb_image_folder_count(const wb_image_folder *folder);
/* Where picture i is, from 0, valid as long as the folder; NULL: there is none. */
WB_API const char *wb_image_folder_path(const wb_image_folder *folder, int64_t i);
/* Its labels, i32 (count). */
WB_API wb_array *wb_image_folder_labels(const wb_image_folder *folder);
/* The name of a label, valid as long as the folder; NULL: there is none. */
WB_API const char *wb_image_folder_class(const wb_image_folder *folder, int64_t label);
/* The names of all labels, one in each line, for a file beside the model's parameters, where
 * wb_file_text and .vocabulary find them (weber/csv.h): wb_save_named("pets.npz", {"model", model},
 * {"classes", wb_image_folder_vocabulary(pets)}). */
WB_API wb_text_entry *wb_image_folder_vocabulary(const wb_image_folder *folder);

#ifdef __cplusplus
}
#endif
#endif
