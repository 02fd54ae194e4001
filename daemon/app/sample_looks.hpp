// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/log.hpp"
#include "app/task_table.hpp"
#include "app/world.hpp"
#include "locality/sampling.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

namespace affinityd::app {

/// Has connections of processes under policy sampled: some of each policy with passes, and those of new
/// processes soon after they were placed, where the policy moves tasks to their packets.
class SampleLooks {
  public:
    using Clock = std::chrono::steady_clock;
    static constexpr std::size_t most_processes = 256; ///< of a policy, in one look
    static constexpr std::size_t most_new = 1024;      ///< processes that are looked at soon
    static constexpr std::chrono::milliseconds between_looks{500};
    /// Passes may follow each other at once, and a program that starts beside a look waits for it.
    static constexpr std::chrono::seconds between_passes{2};
    static constexpr unsigned looks_of_new = 12; ///< however long they take on a busy machine

    /// References must outlive it. `found` is told what take() brings.
    struct Parts {
        const host::Root& root;
        const Current& current;
        const TaskTable& tasks;
        std::function<void(const locality::ReadCounts&)> found;
        Log& log;
    };
    explicit SampleLooks(Parts parts);

    /// With each pass: a look at `most` connections of each policy, every two seconds at most; 0: at none
    /// from now on.
    void ask(std::size_t most);
    /// A process under policy was placed.
    void observe(const KnownProcess& process);
    /// When look() is to be called; max(): never.
    [[nodiscard]] Clock::time_point next_look() const { return next_look_; }
    /// Asks for the connections of new processes.
    void look();
    /// Readable when samples have come; -1: they never do.
    [[nodiscard]] int fd() const { return sampling_ ? sampling_->fd() : -1; }
    /// They have come: hands them on.
    void take();

  private:
    using Groups = std::map<std::size_t, std::vector<int>>; ///< processes by policy
    void ask_for(Groups awaited, Groups groups);
    [[nodiscard]] bool pass_is_due() const { return is_pass_owed_ && Clock::now() >= next_of_pass_; }
    [[nodiscard]] Groups groups_of_pass();
    Parts parts_;
    std::unique_ptr<locality::Sampling> sampling_; ///< null: a recording
    std::size_t most_ = 0;
    std::size_t round_ = 0;
    std::uint64_t questions_ = 0;
    struct {
        Groups groups;
        std::uint64_t since = 0;                  ///< number of the question
    } of_pass_;                                   ///< what the pass has asked for, until it has come
    std::unordered_map<TaskId, unsigned> placed_; ///< processes whose policies move tasks: looks to come
    std::vector<TaskId> awaited_;                 ///< those of them that were asked for last
    Clock::time_point next_look_ = Clock::time_point::max();
    Clock::time_point next_of_pass_{}; ///< no look of a pass before
    bool is_pass_owed_ = false;        ///< a pass came before that
};

} // namespace affinityd::app
