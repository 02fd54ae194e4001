// SPDX-License-Identifier: Apache-2.0
// affinityctl nics: the network interfaces, their queues and the interrupt of each.
#include "affinityctl/daemon/nic_status.hpp"
#include "affinityctl/offline/machine_irqs.hpp"
#include "affinityctl/verbs/ask.hpp"
#include "affinityctl/verbs/option_values.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "affinityctl/views/json_text.hpp"
#include "affinityctl/views/nic_table.hpp"
#include "affinityctl/views/table.hpp"
#include "base/glob.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include <fmt/format.h>

namespace affinityctl {

namespace {

using affinityd::netdev::Nic;
using nlohmann::json;

struct NicsOptions {
    std::vector<std::string> names;
    double interval = 0;
};

int nics(const NicsOptions& options, const Globals& globals) {
    const bool live = !globals.is_recorded();
    const auto machine = read_machine_irqs(globals.root, interval_of(options.interval));
    if (!machine) return complain(machine.error());
    int status = exit_ok;
    auto list = json::array();
    // A name may hold what has a meaning in patterns.
    const auto is_meant = [](const std::string& asked, const Nic& nic) {
        return nic.is_called(
            [&](std::string_view name) { return asked == name || affinityd::glob_match(asked, name); });
    };
    for (const auto& nic : machine->nics)
        if (options.names.empty() ||
            std::ranges::any_of(options.names, [&](const auto& asked) { return is_meant(asked, nic); }))
            list.push_back(nic_json(nic, *machine, live));
    for (const auto& asked : options.names)
        if (std::ranges::none_of(machine->nics, [&](const Nic& nic) { return is_meant(asked, nic); }))
            status = complain({exit_failure, "there is no interface " + printable(asked)});
    merge_status(list, status_if_any(globals)); // without a daemon they are shown all the same
    if (globals.json) {
        fmt::print("{}\n", dump(list, 2));
        return status;
    }
    for (std::size_t at = 0; at < list.size(); ++at)
        fmt::print("{}{}", at > 0 ? "\n" : "", nic_text(list[at], globals.color));
    return status;
}

} // namespace

void add_nics(CLI::App& app, Globals& globals, int& status) {
    auto* verb =
        app.add_subcommand("nics", "the network interfaces: queues, the interrupt of each, where it goes");
    const auto options = std::make_shared<NicsOptions>();
    verb->add_option("name", options->names, "only these interfaces; a glob (in quotes) stands for several");
    verb->add_option("--interval", options->interval, "seconds to watch, for rates")
        ->check(in_range(0.05, 3600.0));
    verb->callback([&globals, &status, options] { status = nics(*options, globals); });
}

} // namespace affinityctl
