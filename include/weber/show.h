/* weber/show.h: output for people: arrays, models, progress, curves.
 *
 *     wb_show(W);                                  // 2×3 Array{f32} on CPU:
 *                                                  //   0.433884   0.229779  1.0
 *                                                  //  -0.459193  -1.95972   2.0
 *     wb_show(model);                              // the tree of layers, with counts
 *
 * Only functions of this header write to stdout or to the terminal. */
#ifndef WEBER_SHOW_H
#define WEBER_SHOW_H

#include <stdio.h>

#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- arrays and models ---- */

/* Prints an array, model, optimiser or tree to stdout. */
WB_API wb_status wb_show(void *object);

/* The same into text, always terminated; truncated if size_bytes is too small. */
WB_API wb_status wb_show_text(void *object, char *text, size_t size_bytes);

/* Prints a line for each layer, for an input of these sizes, without computing: path and settings,
 * the sizes of its results, its number of parameters, and of multiply-adds (in products,
 * convolutions and attention); then a line with the sums. For a container the layers in it are
 * printed instead. wb_show_sizes(stdout, model, {{28, 28, 1, 32}}) prints
 *
 *     layers.1  Conv((3, 3), 1 => 4, relu)  (26, 26, 4, 32)          40         778752
 *     layers.2  flatten                     (2704, 32)                0              0
 *     layers.3  Dense(2704 => 10)           (10, 32)              27050         865280
 *     total                                                       27090        1644032
 *
 * Fails as wb_outputsize does. */
#define wb_show_sizes(file, model, ...)                                                            \
    WB_QUIET_(wb_show_sizes_make(file, model, WB_GIVEN_(outputsize, .inputs = __VA_ARGS__)))
WB_API wb_status wb_show_sizes_make(FILE *file, wb_layer *model, wb_outputsize_desc desc);

/* Draws the model as it is applied to an input of these sizes: a box for each layer, with settings,
 * path and parameters, arrows with the sizes of the arrays between them, and frames around the
 * layers of a container; a container that computes something itself, such as the sum of a
 * SkipConnection, has a box, too. Nothing is computed. path ends in .svg, .png or .pdf, drawn by
 * the program dot, or in .dot, for the program's input.
 *
 *     wb_draw_model("net.svg", model, {{28, 28, 1, 32}});
 *
 * Fails as wb_outputsize does, and with WB_ERROR_UNSUPPORTED, with the name of the Debian package,
 * where dot is not installed. */
#define wb_draw_model(path, model, ...)                                                            \
    WB_QUIET_(wb_draw_model_make(path, model, WB_GIVEN_(outputsize, .inputs = __VA_ARGS__)))
WB_API wb_status wb_draw_model_make(const char *path, wb_layer *model, wb_outputsize_desc desc);

/* Prints a page, in Markdown, on all layers that files of models can have: their settings with
 * default and range, arrays, and fields of Flux's structs. */
WB_API wb_status wb_show_layers(void);

/* Prints an array as Julia would: sizes, type and device, then columns aligned at the decimal
 * point, with six digits, without the middle of large arrays; three and more dimensions as slices
 * [:, :, 1], numbered from 1 as in Julia. Computes the array if it is pending. Long lines are cut
 * at 80 columns, long columns at 20 rows. */
WB_API wb_status wb_show_array(FILE *file, wb_array *x);

/* ---- progress ---- */

/* A bar that shows how far a loop is; released by wb_progress_end. */
typedef struct wb_progress wb_progress;

/* Zero means default. */
typedef struct wb_progress_desc {
    WB_START_MEMBER;
    const char *what;        /* text before the bar: "epoch 1/5" */
    int64_t total;           /* number of steps; 0: unknown, no bar and no time left */
    int64_t done;            /* steps that were done before */
    int64_t items;           /* items per step for the rate, such as images of a batch; default 1 */
    const char *unit;        /* what the items are, "images"; default: no text */
    const wb_device *device; /* whose peak memory is shown; default: the CPU */
    FILE *file;              /* default: stderr */
    bool always;             /* show it even if file is not a terminal */
} wb_progress_desc;

/* A bar of one line: fraction done, rate, time left, loss, peak memory. Redrawn about ten times a
 * second; if its file is not a terminal, only one line at the end. End it with wb_progress_end.
 *
 *     wb_progress *bar = wb_progress_begin(.what = "epoch 1/5", .total = 938, .items = 64);
 *     while (wb_next(data, &batch)) { ...; wb_progress_step(bar, loss); }
 *     wb_progress_end(bar);
 *
 * All of these functions accept NULL. */
#define wb_progress_begin(...) WB_MAKE(wb_progress_make, progress, __VA_ARGS__)
WB_API wb_progress *wb_progress_make(wb_progress_desc desc);

/* One step is done. loss (one element, or NULL) is read only when the bar is redrawn. */
WB_API void wb_progress_step(wb_progress *progress, wb_array *loss);

/* A text to draw after the loss, such as "kl 0.0123", from the next drawing on; it is copied, at
 * most 127 bytes; NULL: none. */
WB_API void wb_progress_note(wb_progress *progress, const char *note);

/* Draws the last state, ends the line and releases progress. Returns the seconds since
 * wb_progress_begin. */
WB_API double wb_progress_end(wb_progress *progress);

/* ---- images ---- */

/* Writes x as a PNG of 8 bits: (W, H) and (W, H, 1) are grey, (W, H, 3) is RGB; row 0 is at the
 * top. u8 is 0 to 255, bool black and white, floating numbers are 0 to 1, numbers outside are
 * clamped. The path ends in .png or has no ending. The file is replaced as a whole or stays as it
 * was. Fails with WB_ERROR_ARGUMENT on another ending, with WB_ERROR_SHAPE on other sizes and on
 * images without pixels, with WB_ERROR_DTYPE on i32 and i64, with WB_ERROR_NUMBER on a NaN, with
 * WB_ERROR_IO where the file cannot be written. */
WB_API wb_status wb_image_write(const char *path, wb_array *x);

/* ---- curves ---- */

typedef struct wb_series {
    const char *name;
    const double *values; /* value i is drawn at x = i + 1 */
    int64_t count;
    bool right; /* uses the axis on the right */
} wb_series;

/* Draws curves into a picture, path.png or path.svg, through the program gnuplot.
 * WB_ERROR_UNSUPPORTED, with the name of the Debian package, where gnuplot is not installed.
 *
 *     wb_plot_curves("demo.png", {"loss", losses, 5, false},
 *                    {"test accuracy", accuracies, 5, true}); */
#define wb_plot_curves(path, ...)                                                                  \
    wb_plot_curves_make(path, (int)(sizeof((const wb_series[]){__VA_ARGS__}) / sizeof(wb_series)), \
                        (const wb_series[]){__VA_ARGS__})
WB_API wb_status wb_plot_curves_make(const char *path, int count, const wb_series *series);

#ifdef __cplusplus
}
#endif
#endif
