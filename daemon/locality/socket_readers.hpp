// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/root.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace affinityd::locality {

/// Which thread of a process reads which descriptor, as far as threads wait for them: in epoll_wait(2), or in
/// a read of that descriptor. What a thread waited for is remembered while it runs. The kernel stops a
/// process while it writes down what an epoll watches: of one that watches thousands, it is asked for seldom.
class SocketReaders {
  public:
    SocketReaders(const host::Root& root, int pid) : root_(&root), pid_(pid) {}
    using Clock = std::chrono::steady_clock;
    /// Asked again and again, with no socket in hand: it may pause.
    using GoesOn = std::function<bool()>;
    /// Looks at the first 512 threads, and into no second epoll once `goes_on` is false.
    void look(const GoesOn& goes_on);
    /// tid; no value: not known. The only thread of a process reads all.
    [[nodiscard]] std::optional<int> reader_of(int descriptor) const;

  private:
    [[nodiscard]] std::vector<int> threads() const;
    void note_targets(int epoll, int tid);
    const host::Root* root_;
    int pid_;
    bool is_single_ = true;
    Clock::time_point next_{};   ///< epolls are not asked before that
    std::map<int, int> readers_; ///< descriptor -> tid
};

} // namespace affinityd::locality
