// SPDX-License-Identifier: Apache-2.0
#include "locality/samples.hpp"

#include <utility>

namespace affinityd::locality {

void Samples::add(const Pair& pair, std::uint64_t samples) {
    pairs_[pair] += samples;
    count_ += samples;
}

void Samples::fade(std::uint64_t most) {
    while (count_ > most) {
        count_ = 0;
        for (auto& [pair, samples] : pairs_)
            count_ += samples /= 2;
        std::erase_if(pairs_, [](const auto& one) { return one.second == 0; });
    }
}

void Samples::forget(const std::function<bool(int)>& is_meant) {
    std::erase_if(pairs_, [&](const auto& one) {
        const bool meant = is_meant(one.first.pid);
        if (meant) count_ -= one.second;
        return meant;
    });
}

ReadCounts Samples::counts(std::map<int, std::string> names) const {
    ReadCounts found{.counts = {}, .names = std::move(names)};
    found.counts.reserve(pairs_.size());
    for (const auto& [pair, samples] : pairs_)
        found.counts.push_back({.pid = pair.pid,
                                .network_space = pair.network_space,
                                .napi = pair.napi,
                                .arrival = pair.arrival,
                                .reader = pair.reader,
                                .thread = pair.thread,
                                .reads = samples});
    return found;
}

} // namespace affinityd::locality
