/* The ending of a plugin's file. CMake gives it to modules on macOS, too. */
#include "platform/library.h"

const char wb_platform_plugin_suffix[] = ".so";
