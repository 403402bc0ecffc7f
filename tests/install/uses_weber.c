/* The least that shows that headers and library are found and belong together. */
#include <weber.h>

#include <stdio.h>
#include <string.h>

int main(void) {
    printf("%s has %zu bytes\n", wb_dtype_name(WB_F32), wb_dtype_size(WB_F32));
    return strcmp(wb_dtype_name(WB_F32), "f32") == 0 && wb_dtype_size(WB_F32) == 4 ? 0 : 1;
}
