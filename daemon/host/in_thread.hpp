// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/scheduler.hpp"
#include "host/signals.hpp"

#include <chrono>
#include <future>
#include <optional>
#include <system_error>
#include <utility>

namespace affinityd::host {

/// Something that is read by a thread of its own, which gives way to others. The destructor waits for the
/// thread.
template <class T>
class InThread {
  public:
    template <class Read>
    explicit InThread(Read read) {
        const BlockedSignals blocked;
        try {
            result_ = std::async(std::launch::async, [read = std::move(read)] {
                give_way();
                return read();
            });
        } catch (const std::system_error& error) {
            std::promise<Result<T>> none;
            none.set_value(fail("no thread is to be had", {}, error.code().value()));
            result_ = none.get_future();
        }
    }
    /// Waits for the result, but for no longer than `patience`. No value: it is not there yet. Once.
    [[nodiscard]] std::optional<Result<T>> take(std::chrono::microseconds patience) {
        if (result_.wait_for(patience) != std::future_status::ready) return std::nullopt;
        return result_.get();
    }

  private:
    std::future<Result<T>> result_;
};

} // namespace affinityd::host
