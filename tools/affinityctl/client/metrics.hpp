// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/present/document.hpp"
#include "affinityctl/present/globals.hpp"

#include <expected>
#include <nlohmann/json.hpp>
#include <string>

namespace affinityctl {

/// The daemon's GetStatus, awaited for as long as a scrape lasts at most.
[[nodiscard]] std::expected<nlohmann::json, CallError> status_for_metrics(const Globals& globals);

/// A list of metrics from the daemon's GetStatus: `metric_fields`. Null as `status`: no daemon answers, and
/// the only metric says so. Each policy and interface has less than 20 samples; 128 policies and 64
/// interfaces count at most, and names are cut after 64 bytes.
[[nodiscard]] nlohmann::json metrics_of(const nlohmann::json& status);
extern const Fields metric_fields;

/// OpenMetrics 1.0, or the text format of Prometheus 0.0.4, which the textfile collector of node_exporter
/// reads.
enum class MetricsFormat { open_metrics, prometheus };
[[nodiscard]] std::string metrics_text(const nlohmann::json& metrics, MetricsFormat format);

} // namespace affinityctl
