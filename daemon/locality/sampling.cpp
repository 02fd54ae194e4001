// SPDX-License-Identifier: Apache-2.0
#include "locality/sampling.hpp"

#include "locality/pace.hpp"

#include <algorithm>

namespace affinityd::locality {

namespace {
constexpr std::chrono::seconds longest_look{1};  // CPU time, of all groups
constexpr std::chrono::seconds longest_rest{20}; // nobody waits for what is sampled
} // namespace

Sampling::Sampling(const host::Root& root)
    : sampler_(root),
      thread_([this](const Asked& asked, const auto& stop) { return read(asked, stop); }, longest_rest) {}

Sampling::Found Sampling::read(const Asked& asked, const std::stop_token& stop) {
    Found found{.counts = {}, .refused = 0, .number = asked.number};
    Pace pace(stop, longest_look);
    const auto goes_on = [&] { return pace.goes_on(); };
    const std::size_t groups = asked.groups.size();
    std::vector<int> all;
    for (std::size_t i = 0; i < groups && !stop.stop_requested(); ++i) {
        // Where there is too little time for all of them, others come first the next time.
        const auto& group = asked.groups[(round_ + i) % groups];
        sampler_.look(group, asked.most, goes_on, round_ * asked.most);
        all.insert(all.end(), group.begin(), group.end());
    }
    if (stop.stop_requested()) return found;
    ++round_;
    std::ranges::sort(all);
    sampler_.keep_only(all);
    sampler_.take(found.counts);
    found.refused = sampler_.take_refused();
    return found;
}

} // namespace affinityd::locality
