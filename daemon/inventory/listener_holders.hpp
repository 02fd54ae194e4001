// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/patient_call.hpp"
#include "host/root.hpp"
#include "host/subordinate_ids.hpp"
#include "inventory/listening_sockets.hpp"
#include "inventory/search_credit.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace affinityd::inventory {

/// Finds who has a listener open, by its inode: servers hand listeners on to other processes, under other
/// descriptors. For several threads: each process can hold up for as long as it likes whoever lists its
/// descriptors, and a thread that is held up does not hold up others. `at`: who is being looked at, and
/// whether to go on, see host::patiently().
class ListenerHolders {
  public:
    using Clock = std::chrono::steady_clock;
    /// Links of /proc/PID/fd that are read, about a microsecond each, many times that where what they lead to
    /// lies deep: of one process, of a family, and in a walk through all processes. The next walk begins
    /// where one ended early.
    static constexpr std::size_t most_links = 8192, most_links_of_family = 32'768,
                                 most_links_anywhere = 262'144;
    /// CPU time of one search: the event loop waits meanwhile.
    static constexpr std::chrono::milliseconds longest_of_family{50}, longest_anywhere{100};
    static constexpr std::size_t most_children = 256; ///< a look at one takes some 10 us
    /// Between two walks, times as long as the last one took.
    static constexpr int rest_after_walk = 20;

    struct Holder {
        int pid = 0;
        int number = 0; ///< its descriptor
    };
    explicit ListenerHolders(const host::Root& root);

    /// Who may have what a process has open, the likeliest first: itself, its parent and that one's children.
    /// Of very many, the newest: that is to whom servers hand on what they have open; `is_whole` is false
    /// then, and where the kernel does not tell children.
    [[nodiscard]] std::vector<int> family_of(int process, int parent, bool& is_whole) const;
    /// Who pays for searches in the family, in CPU time: its user, of root's each family by itself. A number
    /// that has another parent by now is not believed.
    [[nodiscard]] std::uint64_t payer_of(int process, int parent);
    [[nodiscard]] bool can_pay(std::uint64_t payer);
    void charge(std::uint64_t payer, std::chrono::nanoseconds used);
    /// Which of these processes has it open; no value: none that was looked at. `is_whole`: all of them could
    /// be looked at.
    [[nodiscard]] std::optional<Holder> among(std::span<const int> pids, std::uint64_t inode, host::InUse& at,
                                              bool& is_whole);
    enum class Listed : std::uint8_t {
        yes,      ///< it listens in the network namespace of this process
        no,       ///< it does not; in another one it may
        not_known ///< not all could be listed, or not lately
    };
    /// As of 50 ms ago at most. Where the list is long, it is read for a twentieth of the time only.
    [[nodiscard]] Listed is_listed(std::uint64_t inode);
    /// There are such processes, and all of them are in the network namespace of this one.
    [[nodiscard]] bool are_here(std::span<const int> pids) const;
    /// What a search has found by the way; only of what is listed.
    [[nodiscard]] std::optional<Holder> known(std::uint64_t inode);
    /// Any process of the machine: of those that listen here, as of the last walk. Processes that are avoided
    /// are left out.
    [[nodiscard]] std::optional<Holder> anywhere(std::uint64_t inode, host::InUse& at);
    /// What is known of it holds no more.
    void forget(std::uint64_t inode);

  private:
    using Found = std::unordered_map<std::uint64_t, Holder>; ///< by inode
    void list();
    void learn(const Found& found);
    /// `from`: at first the highest process id to look at, then that of the next walk; newer ones come first.
    [[nodiscard]] Found walk(const ListeningSockets& listed, int& from, host::InUse& at) const;
    std::optional<host::Root> root_; ///< its own, so that it may outlive others
    std::mutex mutex_;
    host::SubordinateIds persons_;
    std::shared_ptr<const ListeningSockets> listed_ = std::make_shared<const ListeningSockets>();
    Clock::time_point listed_at_{}, next_walk_{};
    SearchCredit credit_;
    int next_pid_ = 0; ///< 0: the newest
    Found found_;
};

} // namespace affinityd::inventory
