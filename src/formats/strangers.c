/* Recognises files of other programs by their first bytes, zip files by the names in them. Each row
 * says what the file is and how to convert it to a format that Weber can read. */
#include "formats/strangers.h"

#include <string.h>
#include <strings.h>

#define SAVE_SAFETENSORS "in Python, save it with safetensors"
#define PICKLE           "a pickle of Python's; its arrays can be saved there with safetensors"
#define HDF5             "an HDF5 file; in Julia, save it with BSON.@save, in Python with NumPy"
#define HTML             "an HTML page, not a model; perhaps a download failed"
#define UNPACK           " first"

#define BYTES(text) text, sizeof text - 1

/* By the first bytes. */
static const struct {
    const char *bytes;
    size_t count;
    const char *what;
} beginnings[] = {
    {BYTES("version https://git-lfs"),
     "a pointer of git LFS instead of the file itself; `git lfs pull` gets the file"},
    {BYTES("7JL"), "a file of Julia's Serialization; in Julia, save it with BSON.@save"},
    {BYTES("MATLAB 7.3 MAT-file"), "a file of MATLAB 7.3, which is HDF5; in Python, read it with "
                                   "h5py and save it with NumPy"},
    {BYTES("MATLAB 5.0 MAT-file"), "a file of MATLAB; in Python, read it with scipy.io.loadmat and "
                                   "save it with NumPy"},
    {BYTES("\200\2"), PICKLE},
    {BYTES("\200\3"), PICKLE},
    {BYTES("\200\4"), PICKLE},
    {BYTES("\200\5"), PICKLE},
    {BYTES("\x1f\x8b"), "compressed by gzip; unpack it by gunzip" UNPACK},
    {BYTES("\x28\xb5\x2f\xfd"), "compressed by zstd; unpack it by unzstd" UNPACK},
    {BYTES("\xfd"
           "7zXZ"),
     "compressed by xz; unpack it by unxz" UNPACK},
    {BYTES("BZh"), "compressed by bzip2; unpack it by bunzip2" UNPACK},
};

static bool begins(const wb_mapping *map, size_t at, const char *bytes, size_t count) {
    const size_t size = (size_t)map->size_bytes;
    return size >= count && at <= size - count && memcmp(map->bytes + at, bytes, count) == 0;
}

static bool has(const unsigned char *bytes, size_t size, const char *text) {
    return memmem(bytes, size, text, strlen(text)) != NULL;
}

/* HDF5's header may come after a user's block of 512, 1024, 2048, ... bytes. */
static bool is_hdf5(const wb_mapping *map) {
    static const char header[] = "\211HDF\r\n\032\n";
    for (size_t at = 0; at < (size_t)map->size_bytes; at = at ? 2 * at : 512)
        if (begins(map, at, BYTES(header))) return true;
    return false;
}

/* Zip files are recognised by the names in them, which are before each entry and in the directory
 * at the end; NumPy's have names in .npy. */
static const char *zip_stranger(const wb_mapping *map) {
    enum { HEAD = 256, TAIL = 1 << 16 };
    static const struct {
        const char *name, *what;
    } rows[] = {
        {"/archive_format", "a program of torch.export; save the model's state_dict with "
                            "safetensors"},
        {"model.weights.h5", "a Keras file; in Python, save the model's weights with NumPy"},
    };
    const size_t size = (size_t)map->size_bytes, head = size < HEAD ? size : HEAD,
                 tail = size < TAIL ? size : TAIL;
    const unsigned char *end = map->bytes + size - tail;
    if (!begins(map, 0, BYTES("PK\3\4")) || has(end, tail, ".npy")) return NULL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (has(map->bytes, head, rows[i].name) || has(end, tail, rows[i].name))
            return rows[i].what;
    return NULL;
}

/* Protocols 0 and 1 of pickle have no header: a list, dictionary, tuple or object, and a full stop
 * at the end. */
static bool is_old_pickle(const wb_mapping *map) {
    return map->size_bytes > 2 && strchr("(}])c", map->bytes[0]) && map->bytes[0] &&
           map->bytes[map->size_bytes - 1] == '.';
}

/* A ModelProto of ONNX begins with its number of the format, then has its producer's or its own
 * name, or the graph. */
static bool is_onnx(const wb_mapping *map) {
    const unsigned char *b = map->bytes;
    return map->size_bytes > 8 && b[0] == 0x08 && b[1] >= 1 && b[1] <= 64 &&
           (b[2] == 0x12 || b[2] == 0x1a || b[2] == 0x22 || b[2] == 0x3a || b[2] == 0x42);
}

/* By the first word of a text. */
static const char *text_stranger(const wb_mapping *map) {
    enum { LOOKED_AT = 1 << 20 };
    const size_t size = (size_t)(map->size_bytes < LOOKED_AT ? map->size_bytes : LOOKED_AT);
    size_t at = begins(map, 0, BYTES("\xEF\xBB\xBF")) ? 3 : 0;
    while (at < size && strchr(" \t\r\n", map->bytes[at]) && map->bytes[at]) at++;
    const char *text = (const char *)map->bytes + at;
    const bool is_xml = size - at > 14 && strncasecmp(text, "<?xml", 5) == 0;
    if (size - at > 14 &&
        (strncasecmp(text, "<!doctype html", 14) == 0 || strncasecmp(text, "<html", 5) == 0))
        return HTML;
    if (is_xml) return has(map->bytes, size, "<html") ? HTML : "an XML file, which has no arrays";
    if (at == size || *text != '{') return NULL;
    if (has(map->bytes, size, "\"added_tokens\"") && has(map->bytes, size, "\"vocab\""))
        return "a tokenizer, which has no arrays; wb_tokenizer_load reads it";
    return wb_format_index.recognises(map) ? NULL : "a JSON file, which has no arrays";
}

const char *wb_stranger(const wb_mapping *map) {
    if (!map->bytes) return NULL;
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        if (begins(map, 0, beginnings[i].bytes, beginnings[i].count)) return beginnings[i].what;
    const char *what = zip_stranger(map);
    if (!what)
        what = is_hdf5(map)   ? HDF5
               : is_onnx(map) ? "an ONNX file; save the arrays of its "
                                "initialisers with NumPy"
                              : NULL;
    if (!what) what = text_stranger(map);
    return what ? what : is_old_pickle(map) ? PICKLE : NULL;
}
