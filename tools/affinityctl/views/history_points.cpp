// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/history_points.hpp"

#include <algorithm>
#include <array>
#include <ctime>

namespace affinityctl {

using nlohmann::json;

double number_of(const json& record, const char* key) {
    const auto found = record.find(key);
    return found != record.end() && found->is_number() ? found->get<double>() : 0;
}

std::vector<HistoryPoint> points_of(const json& records, const std::string& path) {
    std::vector<HistoryPoint> points;
    for (const auto& record : records) {
        if (record.value("kind", "") != "ttcp") continue;
        const bool done = record.value("outcome", "") == "done";
        if (record.value("path", "") == path || (!done && record.value("path", "").empty()))
            points.push_back({static_cast<long long>(number_of(record, "time")), done,
                              number_of(record, "bits_per_second")});
    }
    return points;
}

RateRange rates_of(const std::vector<HistoryPoint>& points) {
    RateRange range;
    bool any = false;
    for (const auto& point : points) {
        if (!point.done) continue;
        range.low = any ? std::min(range.low, point.rate) : point.rate;
        range.high = std::max(range.high, point.rate);
        any = true;
    }
    return range;
}

std::string local_time(long long seconds) {
    const auto time = static_cast<std::time_t>(seconds);
    tm parts{};
    ::localtime_r(&time, &parts);
    std::array<char, 40> text{};
    return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts)};
}

} // namespace affinityctl
