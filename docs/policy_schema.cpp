// SPDX-License-Identifier: Apache-2.0
// Run by the build: writes the JSON Schema that is installed for editors.
#include "policy/print.hpp"

#include <iostream>

int main() {
    std::cout << affinityd::policy::json_schema();
    return std::cout.good() ? 0 : 1;
}
