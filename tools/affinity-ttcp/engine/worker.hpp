// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinity-ttcp/engine/stream.hpp"
#include "base/cpu_set.hpp"
#include "base/error.hpp"
#include "host/fd.hpp"

#include <functional>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <sys/mman.h>
#include <sys/types.h>

namespace affinityd::ttcp {

/// A value in memory that this process shares with the children that it makes afterwards. The memory has no
/// name and ends with the last of them.
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

/// An end of a stream in a process of its own, as in the paper (one ttcp process per connection), so that the
/// kernel accounts for it separately. Killed with this object or with the process that made it. For
/// single-threaded programs.
class Worker {
  public:
    /// Forks; the child moves to `cpus` (empty: stays where it may run), runs `body` and exits.
    static Result<Worker> start(const CpuSet& cpus, const std::function<Result<StreamUse>(Meter&)>& body);
    Worker(Worker&& other) noexcept;
    Worker& operator=(Worker&& other) noexcept;
    ~Worker();

    /// Waits for the result until a CLOCK_MONOTONIC time (0: without limit), then kills. An Error's code is
    /// ETIMEDOUT for that, ECANCELED if another process killed it.
    [[nodiscard]] Result<StreamUse> collect(double until);
    [[nodiscard]] pid_t pid() const { return pid_; }
    /// Readable when the result has come or the process has ended; owned by this object.
    [[nodiscard]] int result_fd() const { return result_.get(); }

  private:
    Worker(pid_t pid, host::Fd result) : pid_(pid), result_(std::move(result)) {}
    void end();
    pid_t pid_ = 0;
    host::Fd result_;
};

/// Index of the first of these that becomes readable by then (0: without limit); no value if none does.
[[nodiscard]] std::optional<std::size_t> wait_for_any(const std::vector<int>& files, double until);

} // namespace affinityd::ttcp
