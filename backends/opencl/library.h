/* The OpenCL library, opened at run time, and the host. */
#ifndef WB_OPENCL_LIBRARY_H
#define WB_OPENCL_LIBRARY_H

#include <weber/plugin.h>

#include "cl.h"

/* Set once by weber_plugin, before anything else is called. */
extern const wb_host *wb_cl_host;

/* The library's functions: cl.Finish is clFinish. Set by wb_cl_load. */
typedef struct wb_cl_functions {
#define X(name, result, parameters) result(*name) parameters;
    CL_FUNCTION_LIST(X)
#undef X
} wb_cl_functions;
extern wb_cl_functions cl;

/* Opens the library that WEBER_OPENCL_LIBRARY names, or the system's loader; once, from any thread.
 * False with the reason. */
bool wb_cl_load(char *reason, size_t reason_bytes);

/* "CL_OUT_OF_RESOURCES"; "error -9999" for a code without a name. The text belongs to the thread's
 * next call. */
const char *wb_cl_error_name(cl_int code);

/* Records WB_ERROR_DEVICE "what: call: CL_OUT_OF_RESOURCES". */
wb_status wb_cl_fail(const char *what, const char *call, cl_int code);

#endif
