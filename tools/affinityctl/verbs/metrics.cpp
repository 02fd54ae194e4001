// SPDX-License-Identifier: Apache-2.0
// affinityctl metrics: the figures of a status for monitoring.
#include "affinityctl/client/metrics.hpp"

#include "affinityctl/present/document.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "host/file.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>

namespace affinityctl {

namespace {

struct MetricsOptions {
    std::string textfile;
};

/// Writes the file also where no daemon answers it: the metrics say so.
Outcome run_metrics(const MetricsOptions& options, const Globals& globals) {
    const auto& file = options.textfile;
    need(check_is_live(globals));
    const auto status = status_for_metrics(globals);
    if (!status && file.empty()) return std::unexpected(status.error());
    Document document;
    document.value = metrics_of(status.value_or(nlohmann::json()));
    if (file.empty()) {
        auto text = metrics_text(document.value, MetricsFormat::open_metrics);
        document.add(Document::Verbatim{.text = std::move(text), .may_be_cut = true}); // on a terminal
        return document;
    }
    need(affinityd::host::check_replaceable(file));
    need(affinityd::host::replace_file(file, metrics_text(document.value, MetricsFormat::prometheus)));
    if (!status) return std::unexpected(status.error());
    document.is_silent = true;
    return document;
}

} // namespace

void add_metrics(CLI::App& app, Globals& globals, int& status) {
    const auto [verb, options] =
        add_verb(app,
                 {.name = "metrics",
                  .summary = "figures of policies and interfaces in OpenMetrics, for Prometheus",
                  .example = "affinityctl metrics --textfile affinityd.prom",
                  .answer = metric_fields,
                  .is_list = true,
                  .manual = "affinity-exporter(8)",
                  .asks_hosts = true},
                 globals, status, run_metrics);
    verb->add_option("--textfile", options->textfile,
                     "write this file for the textfile collector of node_exporter, and print nothing")
        ->type_name("FILE")
        ->check(not_empty());
}

} // namespace affinityctl
