// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "state/mask_sources.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace affinityd::state {

/// Where a process comes from: what it shares with its children also when it has ended.
struct Descent {
    std::string group; ///< its control group; "": not known
    int session = 0;   ///< getsid(2); 0: not known
    /// The group and the session of all who have none of their own, "/" and that of init, say nothing.
    [[nodiscard]] bool may_be_of(const Descent& other) const {
        return (group.size() > 1 && group == other.group) || (session > 1 && session == other.session);
    }
    friend bool operator==(const Descent&, const Descent&) = default;
};

/// One mask that was given to tasks of one descent.
struct GivenMask {
    CpuSet mask;
    CpuSet original;
    std::string policy;
    Descent descent;
    std::uint64_t since = 0; ///< when it was first given, in clock ticks since boot; 0: not known
    std::uint64_t until = 0; ///< when no task of the policy had a mask from us any more; 0: some may have
};
[[nodiscard]] std::string to_line(const GivenMask& given);
/// No value: no such line.
[[nodiscard]] std::optional<GivenMask> parse_given(std::string_view line);

/// A policy's given masks are over.
struct EndOfGiven {
    std::string policy;
    std::uint64_t until = 0; ///< clock ticks since boot
};
[[nodiscard]] std::string to_line(const EndOfGiven& end);
[[nodiscard]] std::optional<EndOfGiven> parse_end_of_given(std::string_view line);

/// Which masks were given to whom, and when: a child that was left behind by a killed parent while no daemon
/// ran is recognized by that. At most `most`. What is over makes room first, then the oldest of the control
/// group that has most in force: nobody who begins many sessions has others forgotten. Of what was given to
/// the same descent again and again, the last `most_lives` times are known.
class GivenMasks {
  public:
    static constexpr std::size_t most = 4096;
    static constexpr std::size_t most_lives = 5;

    /// False: it is known, from the same time or an earlier one, and not over; or it is over, and known.
    bool add(GivenMask given);
    /// Those of policies that have no task any more are over: a task born later has the mask from somebody
    /// else. Returns the policies concerned, each once.
    std::vector<std::string> end(const std::function<bool(const std::string& policy)>& has_tasks,
                                 std::uint64_t now);
    /// The same for one policy.
    void end(std::string_view policy, std::uint64_t until);
    /// The masks of a policy are to stay: they are no left-overs.
    void forget(const std::string& policy);
    void clear();

    /// True if a task that was born then may have the mask from us, compared on online CPUs.
    [[nodiscard]] bool contains(const CpuSet& mask, const CpuSet& online, std::uint64_t born) const;
    /// What explains the mask of a task of this descent, that was born then.
    [[nodiscard]] std::optional<MaskSource> find(const CpuSet& mask, const CpuSet& online, std::uint64_t born,
                                                 const Descent& descent) const;
    [[nodiscard]] std::size_t size() const { return given_.size(); }
    [[nodiscard]] const GivenMask& operator[](std::size_t i) const { return given_[i].mask; } ///< in no order
    /// How often some were forgotten, so that others have another index since.
    [[nodiscard]] std::size_t shifts() const { return shifts_; }

  private:
    struct Group {
        std::size_t in_force = 0, over = 0;
    };
    void count_in(std::size_t place);
    void count_out(std::size_t place);
    void end(std::size_t place, std::uint64_t until);
    [[nodiscard]] bool is_known(std::uint64_t key, std::uint64_t until) const;
    [[nodiscard]] std::size_t place_for(std::uint64_t key) const;
    [[nodiscard]] std::size_t who_makes_room() const;
    struct Given {
        GivenMask mask;
        std::uint64_t number = 0; ///< of two in force, the older one has the lower
        /// The oldest is over for longest. A file that was written anew has them in another order.
        [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> age() const { return {mask.until - 1, number}; }
    };
    std::vector<Given> given_;
    std::uint64_t added_ = 0;
    std::size_t shifts_ = 0;
    std::size_t over_ = 0;                                       ///< how many are
    std::unordered_multimap<std::uint64_t, std::size_t> places_; ///< by all but the times
    std::unordered_map<std::string, Group> groups_;
};

} // namespace affinityd::state
