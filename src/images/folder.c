/* Folders with a folder of pictures for each class: their files in order, and the classes' names as
 * a vocabulary. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "array/array.h"
#include "array/use.h"
#include "base/memory.h"
#include "base/text.h"
#include "images/folder.h"
#include "images/prepare.h"

enum { MOST_DEPTH = 32 }; /* folders in folders: a link may lead to one around it */

typedef struct picture {
    char *path;
    size_t folder_bytes; /* of the path, up to the last slash */
    int32_t label;
} picture;

struct wb_image_files {
    int64_t refs; /* atomic */
    int channels;
    wb_image_prepare_desc prepare;
    picture *pictures;
    int64_t count, capacity;
    char **classes; /* by label */
    int64_t class_count, class_capacity;
    char *vocabulary;
};

void wb_image_files_unref(wb_image_files *files) {
    if (!files || __atomic_sub_fetch(&files->refs, 1, __ATOMIC_ACQ_REL) > 0) return;
    for (int64_t i = 0; i < files->count; i++) wb_release(files->pictures[i].path);
    for (int64_t i = 0; i < files->class_count; i++) wb_release(files->classes[i]);
    wb_release(files->pictures);
    wb_release(files->classes);
    wb_release(files->vocabulary);
    wb_release(files);
}

/* ---- names ---- */

static bool ends_with(const char *name, const char *const *endings) {
    const char *dot = strrchr(name, '.');
    for (; dot && *endings; endings++)
        if (strcasecmp(dot, *endings) == 0) return true;
    return false;
}

static bool is_picture(const char *name) {
    static const char *const endings[] = {".png", ".jpg", ".jpeg", NULL};
    return ends_with(name, endings);
}

/* What torchvision's ImageFolder takes besides, and .gif. */
static bool is_other_picture(const char *name) {
    static const char *const endings[] = {".bmp", ".gif",  ".ppm",  ".pgm",
                                          ".tif", ".tiff", ".webp", NULL};
    return ends_with(name, endings);
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* By label, by folder, by name. */
static int by_place(const void *a, const void *b) {
    const picture *p = a, *q = b;
    if (p->label != q->label) return p->label < q->label ? -1 : 1;
    const size_t shorter = p->folder_bytes < q->folder_bytes ? p->folder_bytes : q->folder_bytes;
    const int order = memcmp(p->path, q->path, shorter);
    if (order) return order;
    if (p->folder_bytes != q->folder_bytes) return p->folder_bytes < q->folder_bytes ? -1 : 1;
    return strcmp(p->path + shorter, q->path + shorter);
}

/* ---- folders ---- */

/* What the names of a folder are given to; false ends the walk, with the error recorded. */
typedef bool visit_fn(void *context, const char *folder, const char *name, bool is_folder);

static bool visit_name(const char *folder, const char *name, visit_fn *visit, void *context) {
    struct stat info;
    char *path = wb_path_in(folder, strlen(folder), name);
    if (!path) return false;
    const bool is_there = stat(path, &info) == 0; /* else a link to nothing */
    wb_release(path);
    return !is_there || visit(context, folder, name, S_ISDIR(info.st_mode));
}

static bool visit_folder(const char *folder, visit_fn *visit, void *context) {
    DIR *opened = opendir(folder);
    if (!opened) {
        (void)wb_fail(WB_ERROR_IO, "%s: %s", folder, strerror(errno));
        return false;
    }
    bool good = true;
    for (const struct dirent *e; good && (e = readdir(opened));)
        if (e->d_name[0] != '.') good = visit_name(folder, e->d_name, visit, context);
    (void)closedir(opened);
    return good;
}

static bool add_class(wb_image_files *files, const char *name) {
    if (strpbrk(name, "\r\n")) {
        (void)wb_fail(WB_ERROR_UNSUPPORTED, "the class \"%.40s\" has a line end in its name", name);
        return false;
    }
    if (!WB_GROW(files->classes, files->class_count, files->class_capacity)) return false;
    char *copy = wb_copy_text(name);
    if (copy) files->classes[files->class_count++] = copy;
    return copy != NULL;
}

static bool visit_class(void *context, const char *folder, const char *name, bool is_folder) {
    (void)folder;
    return !is_folder || add_class(context, name);
}

typedef struct class_walk {
    wb_image_files *files;
    int32_t label;
    int depth;
} class_walk;

static bool add_picture(const class_walk *walk, const char *folder, const char *name) {
    wb_image_files *files = walk->files;
    if (!WB_GROW(files->pictures, files->count, files->capacity)) return false;
    char *path = wb_path_in(folder, strlen(folder), name);
    if (!path) return false;
    files->pictures[files->count++] =
        (picture){path, (size_t)(strrchr(path, '/') - path), walk->label};
    return true;
}

static bool visit_picture(void *context, const char *folder, const char *name, bool is_folder) {
    class_walk inner = *(class_walk *)context;
    if (is_folder && ++inner.depth > MOST_DEPTH) {
        (void)wb_fail(
            WB_ERROR_UNSUPPORTED,
            "%s: folders lie within each other more than %d times: does a link lead back?", folder,
            MOST_DEPTH);
        return false;
    }
    if (is_folder) {
        char *path = wb_path_in(folder, strlen(folder), name);
        const bool good = path && visit_folder(path, visit_picture, &inner);
        wb_release(path);
        return good;
    }
    if (is_picture(name)) return add_picture(&inner, folder, name);
    if (!is_other_picture(name)) return true;
    (void)wb_fail(WB_ERROR_UNSUPPORTED,
                  "%s/%s: pictures of this kind are not read; convert it to PNG or JPEG", folder,
                  name);
    return false;
}

/* ---- classes ---- */

static int32_t label_of(const wb_image_files *files, const char *name) {
    for (int64_t i = 0; i < files->class_count; i++)
        if (strcmp(files->classes[i], name) == 0) return (int32_t)i;
    return -1;
}

/* Each line once; the last one may end, too. */
static bool add_lines(wb_image_files *files, const char *vocabulary) {
    char *lines = wb_copy_text(vocabulary);
    bool good = lines != NULL;
    for (char *at = lines, *end; good && at && (*at || at == lines); at = end) {
        if ((end = strchr(at, '\n'))) *end++ = 0;
        if (label_of(files, at) < 0)
            good = add_class(files, at);
        else
            good = wb_fail(WB_ERROR_ARGUMENT, "the vocabulary has the class \"%.80s\" twice", at) ==
                   WB_OK;
    }
    wb_release(lines);
    return good;
}

static bool list_class(wb_image_files *files, const char *root, const char *name) {
    class_walk walk = {files, label_of(files, name), 0};
    const int64_t before = files->count;
    if (walk.label < 0) {
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: the vocabulary lacks the class \"%s\"", root, name);
        return false;
    }
    char *path = wb_path_in(root, strlen(root), name);
    const bool good = path && visit_folder(path, visit_picture, &walk);
    if (good && files->count == before)
        (void)wb_fail(WB_ERROR_FORMAT, "%s: the class has no picture (.png, .jpg, .jpeg)", path);
    wb_release(path);
    return good && files->count > before;
}

static bool make_vocabulary(wb_image_files *files) {
    wb_text text = {.data = NULL};
    for (int64_t i = 0; i < files->class_count; i++)
        wb_text_add(&text, "%s%s", i ? "\n" : "", files->classes[i]);
    files->vocabulary = wb_text_status(&text) == WB_OK ? wb_copy_text(text.data) : NULL;
    wb_text_release(&text);
    return files->vocabulary != NULL;
}

/* Finds the classes' folders, then the pictures in each. */
static bool list(wb_image_files *files, const char *root, const char *vocabulary) {
    wb_image_files found = {.count = 0};
    bool good = visit_folder(root, visit_class, &found);
    if (good && found.class_count == 0) {
        (void)wb_fail(WB_ERROR_FORMAT, "%s: it must have a folder for each class", root);
        good = false;
    }
    if (good) qsort(found.classes, (size_t)found.class_count, sizeof *found.classes, by_name);
    for (int64_t i = 0; good && !vocabulary && i < found.class_count; i++)
        good = add_class(files, found.classes[i]);
    if (good && vocabulary) good = add_lines(files, vocabulary);
    for (int64_t i = 0; good && i < found.class_count; i++)
        good = list_class(files, root, found.classes[i]);
    for (int64_t i = 0; i < found.class_count; i++) wb_release(found.classes[i]);
    wb_release(found.classes);
    if (good) qsort(files->pictures, (size_t)files->count, sizeof *files->pictures, by_place);
    return good && make_vocabulary(files);
}

/* ---- the object ---- */

struct wb_image_folder {
    wb_object object;
    wb_image_files *files;
};

static void folder_free(void *object) {
    wb_image_folder *folder = object;
    wb_image_files_unref(folder->files);
    wb_object_delete(folder, sizeof *folder, "folder of pictures");
}

static const wb_class folder_class = {
    .name = "folder of pictures", .maker = "wb_image_folder_open", .free = folder_free};

wb_image_folder *wb_image_folder_over(wb_image_files *files) {
    wb_image_folder *folder = wb_object_new(&folder_class, sizeof *folder);
    if (!folder) return NULL;
    (void)__atomic_add_fetch(&files->refs, 1, __ATOMIC_RELAXED);
    folder->files = files;
    return folder;
}

static const wb_image_files *files_of(const char *function, const wb_image_folder *folder) {
    return wb_may_use(function, folder, &folder_class, "the folder") ? folder->files : NULL;
}

bool wb_image_files_take(const char *function, const wb_image_folder *folder,
                         wb_image_files **files) {
    if (!files_of(function, folder)) return false;
    *files = folder->files;
    (void)__atomic_add_fetch(&folder->files->refs, 1, __ATOMIC_RELAXED);
    return true;
}

wb_image_folder *wb_image_folder_open_make(const char *path, wb_image_folder_desc desc) {
    static const char name[] = "image_folder_open";
    if (wb_failed()) return wb_not_run_null("wb_image_folder_open");
    if (!wb_check_start(name, desc.start_)) return NULL;
    if (!path) return wb_fail_argument_null(name, "the path");
    if (desc.prepare.start_ == WB_LEFT_OUT_) desc.prepare = WB_DESC(image_prepare, WB_NO_MORE);
    if (desc.channels != 1 && desc.channels != 3 && desc.channels != 4)
        return wb_fail_null(WB_ERROR_ARGUMENT, "%s: channels must be 1, 3 or 4, got %d", name,
                            desc.channels);
    if (!wb_check_prepare(name, &desc.prepare, desc.channels)) return NULL;
    wb_image_files *files = wb_alloc(sizeof *files);
    if (!files) return NULL;
    files->refs = 1, files->channels = desc.channels, files->prepare = desc.prepare;
    wb_image_folder *folder =
        list(files, path, desc.vocabulary) ? wb_image_folder_over(files) : NULL;
    wb_image_files_unref(files);
    return folder;
}

/* ---- questions ---- */

int64_t wb_image_folder_count(const wb_image_folder *folder) {
    const wb_image_files *files = files_of("image_folder_count", folder);
    return files ? files->count : 0;
}

const char *wb_image_folder_path(const wb_image_folder *folder, int64_t i) {
    const wb_image_files *files = files_of("image_folder_path", folder);
    return files && i >= 0 && i < files->count ? files->pictures[i].path : NULL;
}

const char *wb_image_folder_class(const wb_image_folder *folder, int64_t label) {
    const wb_image_files *files = files_of("image_folder_class", folder);
    return files && label >= 0 && label < files->class_count ? files->classes[label] : NULL;
}

wb_array *wb_image_folder_labels(const wb_image_folder *folder) {
    const wb_image_files *files = files_of("image_folder_labels", folder);
    int32_t *labels = files ? wb_alloc_list(files->count, sizeof *labels) : NULL;
    for (int64_t i = 0; labels && i < files->count; i++) labels[i] = files->pictures[i].label;
    wb_array *x = labels ? wb_from_make(WB_I32, labels, 1, &files->count) : NULL;
    wb_release(labels);
    return x;
}

wb_text_entry *wb_image_folder_vocabulary(const wb_image_folder *folder) {
    const wb_image_files *files = files_of("image_folder_vocabulary", folder);
    return files ? wb_text_make(files->vocabulary) : NULL;
}

/* ---- for loaders ---- */

int64_t wb_image_files_count(const wb_image_files *files) { return files->count; }

bool wb_image_files_sizes(const wb_image_files *files, int64_t sizes[3]) {
    sizes[0] = sizes[1] = files->prepare.crop, sizes[2] = files->channels;
    if (files->prepare.crop > 0) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT, "the pictures of a loader must have one size: set .crop");
    return false;
}

wb_status wb_image_files_get(const wb_image_files *files, int64_t i, float *x, int32_t *y) {
    const picture *p = &files->pictures[i];
    const uint64_t errors = wb_error_count();
    wb_pixels pixels;
    *y = p->label;
    if (!wb_pixels_read(p->path, files->channels, &pixels)) return wb_error_status();
    const bool good = wb_pixels_prepare(&pixels, &files->prepare, x);
    wb_release(pixels.bytes);
    return good ? WB_OK : wb_error_prefix(errors, "%s: ", p->path);
}
