#include "platform/library.h"

const char wb_platform_plugin_suffix[] = ".so";
