// The same as uses_weber.c, in C++17.
#include <weber.h>

#include <iostream>
#include <string_view>

int main() {
    const std::string_view name = wb_dtype_name(WB_F32);
    std::cout << name << " has " << wb_dtype_size(WB_F32) << " bytes\n";
    return name == "f32" && wb_dtype_size(WB_F32) == 4 ? 0 : 1;
}
