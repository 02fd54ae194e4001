// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/present/document.hpp"

#include <nlohmann/json.hpp>
#include <string>

namespace affinityctl {

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
