// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/root.hpp"
#include "inventory/listener_filter.hpp"
#include "inventory/listener_reading.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace affinityd::inventory {

struct ListenPorts {
    std::vector<std::uint16_t> ports; ///< ascending, each once
    bool are_all = true;              ///< false: there were too many sockets to know of all
    friend bool operator==(const ListenPorts&, const ListenPorts&) = default;
};

/// Which sockets of this network namespace listen on the ports that matter, TCP and UDP: listed by a thread
/// of its own, since everybody may have as many sockets as he likes, and all are walked past. Whoever asks
/// gets the last list without waiting. One list is read at a time; it is followed by a pause of nineteen
/// times the CPU time that it took, but of no more than four seconds. The thread is started by the first
/// ask().
class ListenerList {
  public:
    static constexpr std::size_t most_waiting = 4096; ///< processes

    /// `root` must outlive it.
    explicit ListenerList(const host::Root& root, const ListenerLimits& limits = {});
    ListenerList(const ListenerList&) = delete;
    ListenerList& operator=(const ListenerList&) = delete;
    /// Waits for the system call that the thread is in.
    ~ListenerList();

    /// The ports that matter from now on. If they are others than before, what is known counts no more.
    void want(PortRanges ports);
    /// Another list is to be read, as soon as the pause is over.
    void ask();
    /// The ports that matter among those on which these sockets listen, ascending, each once. `inodes` of
    /// `pid`'s sockets, ascending. No value: there is no list yet. The process is named by take_news() when a
    /// list that is begun after this differs.
    [[nodiscard]] std::optional<ListenPorts> find(int pid, const std::vector<std::uint64_t>& inodes);
    /// Waits for the first list, but for no longer than `patience`. False: there is none that could come.
    [[nodiscard]] bool is_awaited(std::chrono::microseconds patience);

    /// Readable when a list has come that differs from the one before; -1 if the kernel gave no descriptor.
    [[nodiscard]] int fd() const;
    struct News {
        bool has_new = false;       ///< somebody listens who did not
        std::vector<int> processes; ///< that got an answer of a list before: look at them again
    };
    [[nodiscard]] News take_news();

    /// What the last list lacks.
    struct Lack {
        std::vector<std::uint32_t> crowded;
        std::vector<Listeners::Unread> unread;
    };
    [[nodiscard]] Lack lack() const;
    [[nodiscard]] const ListenerLimits& limits() const;
    /// Why the last list could not be read; what was known before counts.
    [[nodiscard]] std::optional<Error> fault() const;

  private:
    struct State;
    void start();
    std::unique_ptr<State> state_;
};

} // namespace affinityd::inventory
