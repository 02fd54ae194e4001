// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "state/mask_sources.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
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
};
[[nodiscard]] std::string to_line(const GivenMask& given);
/// No value: no such line.
[[nodiscard]] std::optional<GivenMask> parse_given(std::string_view line);

/// Which masks were given to whom, and when: a child that was left behind by a killed parent while no daemon
/// ran is recognized by that. At most `most`; the oldest make room.
class GivenMasks {
  public:
    static constexpr std::size_t most = 4096;

    /// False: it is known, from the same time or an earlier one.
    bool add(GivenMask given);
    /// The masks of a policy are to stay: they are no left-overs.
    void forget(const std::string& policy);
    void clear();

    /// True if a task that was born then may have the mask from us, compared on online CPUs.
    [[nodiscard]] bool contains(const CpuSet& mask, const CpuSet& online, std::uint64_t born) const;
    /// What explains the mask of a task of this descent, that was born then.
    [[nodiscard]] std::optional<MaskSource> find(const CpuSet& mask, const CpuSet& online, std::uint64_t born,
                                                 const Descent& descent) const;
    [[nodiscard]] std::size_t size() const { return given_.size(); }
    [[nodiscard]] const GivenMask& operator[](std::size_t i) const { return given_[i]; } ///< in no order

  private:
    void index();
    std::vector<GivenMask> given_;
    std::size_t next_ = 0; ///< who makes room next, once there are `most`
    std::unordered_map<std::uint64_t, std::size_t> places_;
};

} // namespace affinityd::state
