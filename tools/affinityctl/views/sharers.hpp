// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/present/page.hpp"
#include "affinityctl/sharers/report.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace affinityctl {

/// A matrix of who wakes whom as an SVG document: rows wake columns, groups side by side, the darker the more
/// often on a logarithmic scale. Of many threads, those that share most.
[[nodiscard]] std::string sharers_svg(const SharersReport& report);

/// The document of `sharers --json`, documented in affinityctl-json(5).
[[nodiscard]] nlohmann::json sharers_json(const SharersReport& report);

/// "10.0 s of pairs (process 4711): 812,331 wake-ups among 9 threads"
[[nodiscard]] std::string headline_of(const SharersReport& report);
/// "io-1 (4712)", of one that has ended "io-1 (4712, ended)"; any bytes
[[nodiscard]] std::string label_of(const SharersReport& report, const Wakes::Thread& thread);
/// "12,345/s", below ten "2.5/s"
[[nodiscard]] std::string rate_text(double per_second);
/// What people should know: what was left out, what is not known, what a rule would do here.
[[nodiscard]] std::vector<std::string> remarks_of(const SharersReport& report);

/// All that `sharers` prints: the pairs, the groups, what people should know, and the policy that follows.
[[nodiscard]] std::string sharers_text(const SharersReport& report, const Page& page);

} // namespace affinityctl
