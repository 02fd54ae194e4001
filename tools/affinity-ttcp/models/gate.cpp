// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/models/gate.hpp"

#include <array>
#include <cerrno>

#include <fcntl.h>

namespace affinityd::ttcp {

Result<Gate> Gate::make() {
    std::array<int, 2> bell{}, barrier{};
    if (::pipe2(bell.data(), O_CLOEXEC | O_NONBLOCK) != 0) return fail("cannot make a pipe", {}, errno);
    host::Fd arrivals(bell[0]), ringer(bell[1]);
    if (::pipe2(barrier.data(), O_CLOEXEC) != 0) return fail("cannot make a pipe", {}, errno);
    return Gate(std::move(arrivals), std::move(ringer), host::Fd(barrier[0]), host::Fd(barrier[1]));
}

void Gate::arrive() {
    holder_.reset(); // which would hold the gate shut for the others
    const char byte = 0;
    while (::write(bell_.get(), &byte, 1) < 0 && errno == EINTR) {
    }
}

void Gate::wait() {
    arrive();
    char byte = 0;
    while (::read(barrier_.get(), &byte, 1) < 0 && errno == EINTR) {
    }
}

std::size_t Gate::count_arrivals() {
    std::array<char, 256> bytes{};
    const auto got = ::read(arrivals_.get(), bytes.data(), bytes.size());
    return got > 0 ? static_cast<std::size_t>(got) : 0;
}

} // namespace affinityd::ttcp
