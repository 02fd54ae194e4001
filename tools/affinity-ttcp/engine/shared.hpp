// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <new>
#include <type_traits>
#include <utility>

#include <sys/mman.h>

namespace affinityd::ttcp {

/// A value in memory that this process shares with the children that it makes afterwards. It has no name and
/// ends with the last of them.
template <class T>
class Shared {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

  public:
    Shared() {
        void* memory = ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        value_ = memory == MAP_FAILED ? nullptr : new (memory) T();
    }
    Shared(Shared&& other) noexcept : value_(std::exchange(other.value_, nullptr)) {}
    Shared& operator=(Shared&&) = delete;
    ~Shared() {
        if (value_ != nullptr) ::munmap(value_, sizeof(T));
    }
    [[nodiscard]] T* get() const { return value_; } ///< nullptr: no memory

  private:
    T* value_ = nullptr;
};

} // namespace affinityd::ttcp
