// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/verbs/experiment_outcome.hpp"

#include "affinityctl/present/output.hpp"
#include "affinityctl/verbs/ask.hpp"
#include "affinityctl/views/json_text.hpp"
#include "topology/reader.hpp"

#include <fmt/format.h>

namespace affinityctl {

int finish_experiment(const Globals& globals, const ExperimentOptions& options, const MeasuredOn& on,
                      const ExperimentOutcome& outcome) {
    // First: who reads may go away in between.
    keep_result(options, {.kind = outcome.kind,
                          .summary = outcome.summary,
                          .subject = "CPUs " + on.cpus,
                          .seconds = on.seconds,
                          .detail = dump(outcome.document)});
    if (globals.json)
        fmt::print("{}\n", dump(outcome.document));
    else if (options.svg != "-")
        fmt::print("{}", outcome.text);
    return options.svg.empty() ? exit_ok : write_picture(options.svg, outcome.picture);
}

MeasuredOn measured_on(const Bench& bench, const affinityd::CpuSet& cpus, const ExperimentEnd& end) {
    return {.model = affinityd::topology::read_cpu_model(bench.root),
            .cpus = cpus.to_list(),
            .seconds = end.seconds,
            .remarks = end.remarks};
}

int check_experiment(const Globals& globals, const ExperimentOptions& options) {
    const auto picture = check_picture(globals, options.svg);
    if (!picture) return complain(picture.error());
    int status = exit_ok;
    return refuses_root(globals, status) ? status : exit_ok;
}

} // namespace affinityctl
