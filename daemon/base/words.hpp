// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace affinityd {

/// 64-bit words in 16 bytes, without memory of its own for a single one: a daemon keeps several CPU masks for
/// each of many thousand threads, and on most machines each fits one word. Where a vector would do as well,
/// use that.
class Words {
  public:
    Words() = default;
    Words(const Words& other) { assign(other); }
    Words(Words&& other) noexcept : size_(std::exchange(other.size_, 0)), at_(other.at_) {}
    Words& operator=(const Words& other) {
        if (this != &other) assign(other);
        return *this;
    }
    Words& operator=(Words&& other) noexcept {
        std::swap(size_, other.size_);
        std::swap(at_, other.at_);
        return *this;
    }
    ~Words() {
        if (size_ > 1) delete[] at_.many;
    }

    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] bool empty() const { return size_ == 0; }
    [[nodiscard]] std::uint64_t* data() { return size_ > 1 ? at_.many : &at_.one; }
    [[nodiscard]] const std::uint64_t* data() const { return size_ > 1 ? at_.many : &at_.one; }
    [[nodiscard]] std::uint64_t& operator[](std::size_t i) { return data()[i]; }
    [[nodiscard]] std::uint64_t operator[](std::size_t i) const { return data()[i]; }
    [[nodiscard]] std::uint64_t* begin() { return data(); }
    [[nodiscard]] std::uint64_t* end() { return data() + size_; }
    [[nodiscard]] const std::uint64_t* begin() const { return data(); }
    [[nodiscard]] const std::uint64_t* end() const { return data() + size_; }
    operator std::span<const std::uint64_t>() const { return {data(), size_}; } // NOLINT: it is one

    /// Words that are added are zero.
    void resize(std::size_t size);
    void assign(std::span<const std::uint64_t> from);

    friend bool operator==(const Words& a, const Words& b) { return std::ranges::equal(a, b); }
    friend auto operator<=>(const Words& a, const Words& b) {
        return std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end());
    }

  private:
    std::uint32_t size_ = 0;
    union {
        std::uint64_t one;
        std::uint64_t* many; ///< owned, size_ of them
    } at_{};
};

} // namespace affinityd
