// SPDX-License-Identifier: Apache-2.0
// affinityctl irqs: the interrupt table and what each line is for.
#include "affinityctl/offline/machine_irqs.hpp"
#include "affinityctl/verbs/ask.hpp"
#include "affinityctl/verbs/option_values.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "affinityctl/views/irq_counts.hpp"
#include "affinityctl/views/json_text.hpp"

#include <CLI/CLI.hpp>
#include <memory>

#include <fmt/format.h>

namespace affinityctl {

namespace {

struct IrqsOptions {
    bool nics = false;
    double interval = 0;
};

int irqs(const IrqsOptions& options, const Globals& globals) {
    const auto machine = read_machine_irqs(globals.root, interval_of(options.interval));
    if (!machine) return complain(machine.error());
    if (machine->table.irqs.empty() && machine->table.special.empty())
        return complain({exit_failure, globals.root + ": there is no interrupt table"});
    const auto list = irqs_json(*machine, options.nics);
    if (globals.json)
        fmt::print("{}\n", dump(list, 2));
    else
        fmt::print("{}", irq_table(list, globals.color));
    return exit_ok;
}

} // namespace

void add_irqs(CLI::App& app, Globals& globals, int& status) {
    auto* verb = app.add_subcommand(
        "irqs", "the interrupts: which are a NIC's, of which queue, where they go, how often");
    const auto options = std::make_shared<IrqsOptions>();
    verb->add_flag("--nics", options->nics, "only lines of network interfaces");
    verb->add_option("--interval", options->interval,
                     "seconds to watch, for rates instead of counts since boot")
        ->check(in_range(0.05, 3600.0));
    verb->callback([&globals, &status, options] { status = irqs(*options, globals); });
}

} // namespace affinityctl
