// SPDX-License-Identifier: Apache-2.0
#include "base/words.hpp"

namespace affinityd {

void Words::resize(std::size_t size) {
    if (size == size_) return;
    const std::uint64_t first = size_ == 0 ? 0 : (*this)[0];
    std::uint64_t* many = size > 1 ? new std::uint64_t[size]() : nullptr;
    if (many != nullptr) many[0] = first;
    if (size_ > 1) {
        if (many != nullptr) std::copy_n(at_.many, std::min<std::size_t>(size, size_), many);
        delete[] at_.many;
    }
    size_ = static_cast<std::uint32_t>(size);
    if (many != nullptr)
        at_.many = many;
    else
        at_.one = first;
}

void Words::assign(std::span<const std::uint64_t> from) {
    resize(from.size());
    if (size_ > 1)
        std::ranges::copy(from, at_.many);
    else if (size_ == 1)
        at_.one = from[0];
}

} // namespace affinityd
