// SPDX-License-Identifier: Apache-2.0
#include "host/self.hpp"

#include <array>

#include <unistd.h>

namespace affinityd::host {

std::string program_folder() {
    std::array<char, 4096> path{};
    const auto length = ::readlink("/proc/self/exe", path.data(), path.size());
    if (length <= 0) return {};
    const std::string text(path.data(), static_cast<std::size_t>(length));
    return text.substr(0, text.rfind('/') + 1);
}

} // namespace affinityd::host
