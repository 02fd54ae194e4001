// SPDX-License-Identifier: Apache-2.0
#include "locality/sampling.hpp"

#include "locality/pace.hpp"

#include <algorithm>

namespace affinityd::locality {

namespace {
constexpr std::chrono::seconds longest_look{1};  // of those waited for, and CPU time of the others
constexpr std::chrono::seconds longest_rest{20}; // nobody waits for what is sampled
} // namespace

Sampling::Sampling(const host::Root& root)
    : sampler_(root),
      thread_([this](const Asked& asked, const auto& stop) { return read(asked, stop); }, longest_rest) {}

void Sampling::look(const Groups& groups, std::size_t most, const Sampler::GoesOn& goes_on) {
    // Where there is too little time for all of them, others come first the next time.
    for (std::size_t i = 0; i < groups.size() && goes_on(); ++i)
        sampler_.look(groups[(round_ + i) % groups.size()], most, goes_on, round_ * most);
}

Sampling::Found Sampling::read(const Asked& asked, const std::stop_token& stop) {
    Found found{.counts = {}, .refused = 0, .number = asked.number};
    const auto end = Sampler::Clock::now() + longest_look;
    look(asked.awaited, asked.most, [&] { return Sampler::Clock::now() < end && !stop.stop_requested(); });
    Pace pace(stop, longest_look);
    look(asked.groups, asked.most, [&] { return pace.goes_on(); });
    if (stop.stop_requested()) return found;
    ++round_;
    std::vector<int> all;
    for (const auto* groups : {&asked.awaited, &asked.groups})
        for (const auto& group : *groups)
            all.insert(all.end(), group.begin(), group.end());
    std::ranges::sort(all);
    sampler_.keep_only(all);
    sampler_.take(found.counts);
    found.refused = sampler_.take_refused();
    return found;
}

} // namespace affinityd::locality
