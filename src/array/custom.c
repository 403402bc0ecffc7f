#include "array/custom.h"

#include "base/memory.h"

wb_custom *wb_custom_ref(wb_custom *custom) {
    custom->refs++;
    return custom;
}

void wb_custom_unref(wb_custom *custom) {
    if (!custom || --custom->refs > 0) return;
    if (custom->release) custom->release(custom->context);
    wb_release(custom);
}
