/* The type ImageFolder: the pictures of a folder of classes, for DataLoader. */
#include "binding.h"

PyTypeObject *ImageFolder_type;

static const char *const filter_names[] = {"bilinear", "bicubic", NULL};

#define OF_PREPARE(kind, most, member, choices)                                                    \
    { PY_##kind, most, offsetof(wb_image_folder_desc, prepare.member), #member, choices }

static const py_member members[] = {
    {PY_INT, 0, offsetof(wb_image_folder_desc, channels), "channels", NULL},
    OF_PREPARE(INT64, 0, resize, NULL),
    OF_PREPARE(INT64, 0, crop, NULL),
    OF_PREPARE(CHOICE, 0, filter, filter_names),
    OF_PREPARE(REALS, 4, mean, NULL),
    OF_PREPARE(REALS, 4, std, NULL),
    OF_PREPARE(BOOL, 0, random_crop, NULL),
    OF_PREPARE(REAL, 0, flip, NULL),
};
enum { MEMBERS = (int)(sizeof members / sizeof *members) };

/* The names, one in each line: a new reference, or NULL, with an exception or without names. */
static PyObject *vocabulary_of(PyObject *classes) {
    if (py_is_none(classes)) return NULL;
    PyObject *end = PyUnicode_FromString("\n");
    PyObject *text = end ? PyUnicode_Join(end, classes) : NULL;
    Py_XDECREF(end);
    return text;
}

/* ImageFolder(path, channels, ..., flip, classes) */
static PyObject *new_folder(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                            PyObject *kwnames) {
    enum { PATH, FIRST, CLASSES = FIRST + MEMBERS, COUNT };
    const char *names[COUNT] = {"path"};
    (void)module;
    for (int i = 0; i < MEMBERS; i++) names[FIRST + i] = members[i].name;
    names[CLASSES] = "classes";
    const py_signature signature = {"ImageFolder", names, COUNT, 1, 2};
    PyObject *a[COUNT], *path = NULL;
    if (!py_bind(&signature, args, nargs, kwnames, a)) return NULL;
    if (!PyUnicode_FSConverter(a[PATH], &path)) return NULL;
    PyObject *vocabulary = vocabulary_of(a[CLASSES]);
    if (PyErr_Occurred() || !py_open()) {
        Py_DECREF(path), Py_XDECREF(vocabulary);
        return NULL;
    }
    wb_image_folder_desc desc =
        WB_DESC(image_folder, .prepare = WB_DESC(image_prepare, WB_NO_MORE));
    if (vocabulary) desc.vocabulary = PyUnicode_AsUTF8AndSize(vocabulary, NULL);
    py_fill(&desc, members, MEMBERS, a + FIRST);
    wb_image_folder *folder =
        PyErr_Occurred() ? NULL : wb_image_folder_open_make(PyBytes_AsString(path), desc);
    Py_DECREF(path), Py_XDECREF(vocabulary);
    return PyErr_Occurred() ? py_fail() : py_give(ImageFolder_type, folder);
}

static wb_image_folder *folder_of(PyObject *self) { return ((Handle *)self)->object; }

static Py_ssize_t length(PyObject *self) {
    return (Py_ssize_t)wb_image_folder_count(folder_of(self));
}

/* A list of texts, as file names are. */
static PyObject *list_of(PyObject *self, int64_t count,
                         const char *(*text_at)(const wb_image_folder *, int64_t)) {
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (int64_t i = 0; list && i < count; i++) {
        PyObject *text = PyUnicode_DecodeFSDefault(text_at(folder_of(self), i));
        if (!text || PyList_SetItem(list, (Py_ssize_t)i, text) < 0) Py_CLEAR(list);
    }
    return list;
}

static PyObject *get_paths(PyObject *self, void *unused) {
    (void)unused;
    return list_of(self, wb_image_folder_count(folder_of(self)), wb_image_folder_path);
}

static PyObject *get_classes(PyObject *self, void *unused) {
    int64_t count = 0;
    (void)unused;
    while (wb_image_folder_class(folder_of(self), count)) count++;
    return list_of(self, count, wb_image_folder_class);
}

static PyObject *get_labels(PyObject *self, void *unused) {
    (void)unused;
    if (!py_open()) return NULL;
    return py_give_array(wb_image_folder_labels(folder_of(self)));
}

static PyMethodDef functions[] = {
    {"ImageFolder", (PyCFunction)(void *)new_folder, METH_FASTCALL | METH_KEYWORDS,
     "ImageFolder($module, path, channels=3, *, resize=256, crop=224, filter='bilinear', "
     "mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225), random_crop=False, flip=0, "
     "classes=None)\n--\n\nThe pictures (PNG, JPEG) of a folder that has a folder for each class, "
     "listed as torchvision's ImageFolder does: DataLoader(ImageFolder('train'), batchsize=64) has "
     "batches of pictures and labels. They are read and prepared as image_prepare does, on the "
     "loader's threads; random_crop and flip are for training. classes: the names that a model "
     "was trained on, whose places are the labels."},
    {NULL, NULL, 0, NULL}};

bool py_add_images(PyObject *module) {
    static PyMemberDef weak[] = {PY_WEAK_AT(Handle), {NULL, 0, 0, 0, NULL}};
    static PyGetSetDef properties[] = {
        {"paths", get_paths, NULL, "Where each picture is.", NULL},
        {"labels", get_labels, NULL, "The label of each picture.", NULL},
        {"classes", get_classes, NULL, "The names of the labels.", NULL},
        {NULL, NULL, NULL, NULL, NULL}};
    PyType_Slot slots[] = {{Py_tp_dealloc, py_handle_dealloc},
                           {Py_tp_members, weak},
                           {Py_tp_getset, properties},
                           {Py_sq_length, length},
                           {Py_tp_doc, "The pictures of a folder of classes, by ImageFolder()."},
                           {0, NULL}};
    const unsigned flags = Py_TPFLAGS_DISALLOW_INSTANTIATION;
    ImageFolder_type = py_new_type(module, "weber.Pictures", sizeof(Handle), flags, slots);
    return ImageFolder_type && py_add_functions(module, functions);
}
