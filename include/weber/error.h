/* weber/error.h: errors: what went wrong, reported once, with names and numbers.
 *
 * Makers return the thing or NULL; doers return a wb_status. The first error of a thread stays
 * until it is taken; later ones do not replace it, so a chain of calls can be written without a
 * check after each:
 *
 *     wb_array *y = wb_add(wb_matmul(W, x), b);        // NULL in, NULL out
 *     // "predict: matmul: A is (2, 5), so B needs 5 elements, but is (4)"
 *     if (wb_failed()) return wb_report("predict");
 *
 * While an error is pending, functions that read or write files, train, evaluate or load data
 * (wb_save, wb_load, wb_train, wb_evaluate, wb_next, ...) do nothing and return its status, because
 * their arguments may be incomplete. All other functions run if their arguments are there. If you
 * expected an error, clear it: wb_try, wb_clear_error.
 *
 * The library never aborts, exits or prints by itself; messages for people go through the log hook.
 * If an error is still pending when its thread or the process ends, and its message was not read,
 * it is logged then. */
#ifndef WEBER_ERROR_H
#define WEBER_ERROR_H

#include "dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Lets the compiler check a printf format and its arguments. */
#if defined(__GNUC__)
#define WB_FORMAT_(text, first) __attribute__((__format__(__printf__, text, first)))
#else
#define WB_FORMAT_(text, first)
#endif

#define WB_STATUS_LIST(X)                                                                          \
    X(OK, "success")                                                                               \
    X(ERROR_ARGUMENT, "bad argument")                                                              \
    X(ERROR_SHAPE, "sizes do not fit")                                                             \
    X(ERROR_DTYPE, "element type not accepted")                                                    \
    X(ERROR_MEMORY, "out of memory")                                                               \
    X(ERROR_IO, "input or output failed")                                                          \
    X(ERROR_FORMAT, "file is damaged or of another format")                                        \
    X(ERROR_DEVICE, "device failed")                                                               \
    X(ERROR_UNSUPPORTED, "not supported")                                                          \
    X(ERROR_GRADIENT, "gradient wrong or not possible")                                            \
    X(ERROR_NUMBER, "not a finite number")                                                         \
    X(ERROR_LOST, "the values were lost in an earlier device error")                               \
    X(ERROR_INTERNAL, "a fault of the library: please report it")

typedef enum wb_status {
#define X(name, text) WB_##name,
    WB_STATUS_LIST(X)
#undef X
} wb_status;

/* The status's text in the list above. */
WB_API const char *wb_status_text(wb_status status);

/* True while an error of this thread is pending. */
WB_API bool wb_failed(void);

/* The pending error's status (WB_OK: none) and message ("": none); the text lives until the error
 * is taken. */
WB_API wb_status wb_error_status(void);
WB_API const char *wb_error_message(void);

/* Logs "what: message" as an error, clears it and returns 1; returns 0 if nothing is pending. */
WB_API int wb_report(const char *what);

/* Copies the pending message into text (size_bytes, always ended), clears it and returns its
 * status. */
WB_API wb_status wb_take_error(char *text, size_t size_bytes);

/* Records an error, for functions of your own that Weber calls: a loss, a layer's forward function,
 * a closure, a loader's map, which then return NULL, 0, false or the status. format is as for
 * printf; in a layer's forward function the message begins with the layer's place. Nothing is
 * recorded while an error is pending, or for WB_OK. Returns status.
 *
 *     if (wb_ndim(x) != 2) return wb_fail(WB_ERROR_SHAPE, "x must be a matrix"), NULL; */
WB_API wb_status wb_fail(wb_status status, const char *format, ...) WB_FORMAT_(2, 3);

/* Forgets the pending error. */
WB_API void wb_clear_error(void);

/* For a call that may fail without harm: true if the status is WB_OK; otherwise the error is logged
 * at the level "info" and forgotten.
 *
 *     if (!wb_try(wb_load("model.bson", model))) initialise(model);
 */
WB_API bool wb_try(wb_status status);

/* Levels of the log. WEBER_LOG=error|warn|info|debug chooses what is shown; the default is warn. */
typedef enum wb_log_level { WB_LOG_ERROR, WB_LOG_WARN, WB_LOG_INFO, WB_LOG_DEBUG } wb_log_level;

/* Receives each message of the library; line has no newline. May be called from any thread, in the
 * middle of any call, so it must not call the library. */
typedef void wb_log_fn(void *context, wb_log_level level, const char *line);

/* Replaces the hook of the process; NULL restores the default, which writes to stderr and escapes
 * control characters (\x1b), which names from a file may have; a hook gets the line unchanged. */
WB_API void wb_log_to(wb_log_fn *hook, void *context);

#ifdef __cplusplus
}
#endif
#endif
