// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/load.hpp"
#include "base/error.hpp"
#include "planner/judgement.hpp"
#include "status/status.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::app {

/// A policy that is tried for a while. Times are since the boot.
struct Trial {
    std::string policy, text;
    std::chrono::milliseconds began{}, placed{}, ends{}; ///< before `placed` its programs are only watched
    std::string replaces{};                              ///< the file that counts without it; "": none
    std::uint64_t own_text = 0; ///< hash of the file that `keep` writes, when the trial began; 0: none
    bool is_placed = false;
    std::string file{};                             ///< that it is kept in
    std::vector<planner::Effect> before{}, after{}; ///< seconds of its programs; the last ten minutes
    planner::Judgement judgement{};
    [[nodiscard]] std::chrono::milliseconds next() const { return is_placed ? ends : std::min(placed, ends); }
    /// Takes in how it went since the last time.
    void note(const planner::Effect& effect);
    void judge();
    [[nodiscard]] status::TrialStatus status(std::chrono::milliseconds now) const;
};

/// The policies on trial, each in a file of the runtime directory: a daemon that is killed takes them up when
/// it is started again, and a boot ends them. The first line of a file has the times.
class Trials {
  public:
    static constexpr std::size_t most = 8, longest_text = 1U << 20;
    static constexpr std::chrono::seconds shortest{10}, longest{86400};
    static constexpr auto never = std::chrono::milliseconds::max();
    explicit Trials(std::string folder) : folder_(std::move(folder)) {}

    /// Reads what a daemon before has left. Returns the policies whose time is over, and that are removed. An
    /// Error: the folder is not root's alone; nothing of it counts.
    [[nodiscard]] Result<std::vector<std::string>> recover(std::chrono::milliseconds now);
    /// Why this one cannot begin; "": it can.
    [[nodiscard]] std::string refusal_of(const Trial& trial) const;
    /// Writes it down, and names its file. An Error: it is not on trial.
    [[nodiscard]] Result<void> add(Trial trial);
    void remove(const std::string& policy);
    void clear();

    [[nodiscard]] std::string file_of(const std::string& policy) const {
        return folder_ + "/" + policy + ".yaml";
    }
    [[nodiscard]] const Trial* find(std::string_view policy) const;
    [[nodiscard]] std::vector<Trial>& all() { return trials_; }
    [[nodiscard]] const std::vector<Trial>& all() const { return trials_; }
    /// For Loading. One that is watched and has a policy of its name is left to that.
    [[nodiscard]] std::vector<Overlay> overlays() const;
    /// When something is to be done; `never`: there is no trial.
    [[nodiscard]] std::chrono::milliseconds due() const;
    [[nodiscard]] std::vector<status::TrialStatus> status(std::chrono::milliseconds now) const;

  private:
    std::string folder_;
    std::vector<Trial> trials_;
};

} // namespace affinityd::app
