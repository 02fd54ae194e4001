// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/present/page.hpp"
#include "affinityctl/views/experiments/measured_on.hpp"
#include "experiments/sharing/reading.hpp"

#include <nlohmann/json.hpp>
#include <string>

namespace affinityctl {

// `measure sharing` for people, for programs and as a picture.
[[nodiscard]] std::string sharing_text(const affinityd::experiments::SharingTimes& times,
                                       const affinityd::experiments::SharingReading& reading,
                                       const MeasuredOn& on, const Page& page);
/// The document of `measure sharing --json`, in affinityctl-json(5), and what the history keeps.
[[nodiscard]] nlohmann::json sharing_json(const affinityd::experiments::SharingTimes& times,
                                          const affinityd::experiments::SharingReading& reading,
                                          const MeasuredOn& on);
[[nodiscard]] std::string sharing_svg(const affinityd::experiments::SharingTimes& times,
                                      const affinityd::experiments::SharingReading& reading,
                                      const MeasuredOn& on);

} // namespace affinityctl
