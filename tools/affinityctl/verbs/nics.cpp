// SPDX-License-Identifier: Apache-2.0
// affinityctl nics: the network interfaces, their queues and the interrupt of each.
#include "affinityctl/daemon/call.hpp"
#include "affinityctl/daemon/nic_status.hpp"
#include "affinityctl/offline/machine_irqs.hpp"
#include "affinityctl/verbs/ask.hpp"
#include "affinityctl/verbs/interval.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "affinityctl/views/json_text.hpp"
#include "affinityctl/views/nic_table.hpp"
#include "affinityctl/views/table.hpp"

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
    const bool live = globals.root == "/";
    const auto machine = read_machine_irqs(globals.root, interval_of(options.interval));
    if (!machine) return complain(machine.error());
    int status = exit_ok;
    auto list = json::array();
    for (const auto& nic : machine->nics)
        if (options.names.empty() || std::ranges::find(options.names, nic.name) != options.names.end())
            list.push_back(nic_json(nic, *machine, live));
    for (const auto& name : options.names)
        if (std::ranges::find(machine->nics, name, &Nic::name) == machine->nics.end())
            status = complain({exit_failure, "there is no interface " + printable(name)});
    if (live) // without a daemon the interfaces are shown all the same
        if (const auto answer = call_daemon(globals.runtime_dir, "GetStatus"))
            merge_status(list, json::parse(*answer, nullptr, false));
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
    verb->add_option("name", options->names, "only these interfaces");
    verb->add_option("--interval", options->interval, "seconds to watch, for rates")
        ->check(CLI::Range(0.05, 3600.0));
    verb->callback([&globals, &status, options] { status = nics(*options, globals); });
}

} // namespace affinityctl
