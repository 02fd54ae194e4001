// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/age.hpp"

#include "affinityctl/values/counted.hpp"

#include <algorithm>
#include <ctime>

namespace affinityctl {

using std::chrono::system_clock;

std::optional<WallTime> time_in(const nlohmann::json& value) {
    if (value.is_number_unsigned()) return system_clock::from_time_t(value.get<std::time_t>());
    if (!value.is_string()) return std::nullopt;
    tm parts{};
    const auto* end = ::strptime(value.get_ref<const std::string&>().c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts);
    if (end == nullptr || *end != '\0') return std::nullopt;
    return system_clock::from_time_t(::timegm(&parts));
}

std::string age_of(WallTime then, WallTime now) {
    constexpr std::int64_t minute = 60, hour = 60 * minute, day = 24 * hour;
    const auto seconds =
        std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::seconds>(now - then).count());
    const auto whole = [&](std::int64_t unit) { return static_cast<std::uint64_t>(seconds / unit); };
    if (seconds < 2 * minute) return std::to_string(seconds) + " s";
    if (seconds < 2 * hour) return std::to_string(whole(minute)) + " min";
    if (seconds < 2 * day) return std::to_string(whole(hour)) + " h";
    return counted(whole(day), "day");
}

} // namespace affinityctl
