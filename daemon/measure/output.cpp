// SPDX-License-Identifier: Apache-2.0
#include "measure/output.hpp"

#include <array>
#include <cerrno>

#include <unistd.h>

namespace affinityd::measure {

bool Output::drain() {
    constexpr std::size_t most = 256U << 10;
    std::array<char, 4096> chunk{};
    while (true) {
        const auto got = ::read(source_.get(), chunk.data(), chunk.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return errno == EAGAIN;
        if (got == 0) return false;
        if (text_.size() < most) text_.append(chunk.data(), static_cast<std::size_t>(got));
    }
}

} // namespace affinityd::measure
