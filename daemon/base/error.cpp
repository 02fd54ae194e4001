// SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"

#include <system_error>

namespace affinityd {

std::string Error::to_string() const {
    std::string text;
    if (!subject.empty()) text = subject + ": ";
    text += message;
    if (code != 0) text += ": " + std::generic_category().message(code);
    return text;
}

} // namespace affinityd
