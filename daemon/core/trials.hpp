// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "load/load.hpp"
#include "planner/judgement.hpp"
#include "status/status.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::core {

/// A policy that is tried for a while, in turn with how it is without. Times are since the boot.
struct Trial {
    std::string policy, text;
    std::chrono::milliseconds began{}, ends{};
    std::string replaces{};     ///< the file that counts without it; "": none
    std::uint64_t own_text = 0; ///< hash of the file that `keep` writes, when the trial began; 0: none
    std::string file{};         ///< that it is kept in
    planner::Alternation turns{2, round_of(ends - began)};                ///< without it, with it
    [[nodiscard]] bool is_placed() const { return turns.present() == 1; } ///< it is to be in force now
    [[nodiscard]] planner::Judgement judgement() const {
        return planner::judge(turns.rounds(0), turns.rounds(1));
    }
    /// Seconds: as long as tasks need to show an effect, and some twelve blocks where that is possible.
    [[nodiscard]] static double round_of(std::chrono::milliseconds length);
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
    /// For Loading. Without it, the policy of its name counts, or its programs are only watched.
    [[nodiscard]] std::vector<Overlay> overlays() const;
    /// When the next one ends; `never`: there is none.
    [[nodiscard]] std::chrono::milliseconds due() const;
    [[nodiscard]] std::vector<status::TrialStatus> status(std::chrono::milliseconds now) const;

  private:
    std::string folder_;
    std::vector<Trial> trials_;
};

} // namespace affinityd::core
