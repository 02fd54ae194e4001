// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/present/page.hpp"
#include "affinityctl/views/experiments/measured_on.hpp"
#include "experiments/cache/reading.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace affinityctl {

/// All that `measure cache` shows. Refers to what its maker owns.
struct CacheView {
    const affinityd::experiments::CacheTimes& times;
    const affinityd::experiments::CacheReading& reading;
    const affinityd::experiments::CacheSeats& seats;
};

[[nodiscard]] std::string cache_title(const MeasuredOn& on);
[[nodiscard]] std::string cache_method(const CacheView& view, const MeasuredOn& on);
/// What was found, what could not be measured, and how it was measured.
[[nodiscard]] std::vector<std::string> cache_sentences(const CacheView& view, const MeasuredOn& on);

[[nodiscard]] std::string cache_text(const CacheView& view, const MeasuredOn& on, const Page& page);
/// The document of `measure cache --json`, in affinityctl-json(5), and what the history keeps.
[[nodiscard]] nlohmann::json cache_json(const CacheView& view, const MeasuredOn& on);

/// A curve for each place, one panel for each quantum, as an SVG document: how much longer a quantum takes,
/// by working set. Curves are told apart by marks and labels, not only by colour.
[[nodiscard]] std::string cache_svg(const CacheView& view, const MeasuredOn& on);

} // namespace affinityctl
