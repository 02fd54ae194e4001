// SPDX-License-Identifier: Apache-2.0
#include "measure/output.hpp"

#include <array>
#include <cerrno>

#include <unistd.h>

namespace affinityd::measure {

bool Output::drain() {
    constexpr std::size_t most = 256U << 10, at_once = 64U << 10; // the second is a pipe's size
    std::array<char, 4096> chunk{};
    for (std::size_t taken = 0; taken < at_once;) {
        if (text_.size() >= most) return false;
        const auto got = ::read(source_.get(), chunk.data(), chunk.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return errno == EAGAIN;
        if (got == 0) return false;
        taken += static_cast<std::size_t>(got);
        text_.append(chunk.data(), static_cast<std::size_t>(got));
    }
    return true; // the caller has other work, and comes again
}

} // namespace affinityd::measure
