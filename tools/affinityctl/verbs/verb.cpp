// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/verbs/verb.hpp"

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace affinityctl {

CLI::App* add_verb(CLI::App& app, const Verb& verb, Globals& globals, int& status,
                   std::function<Outcome()> run) {
    auto* added = app.add_subcommand(verb.name, verb.summary);
    added->footer(fmt::format("Example:  {}\nManual:   {}{}", verb.example, verb.manual,
                              verb.answer.empty() ? "" : "; keys of --json: affinityctl-json(5)"));
    // Before anything that the verb requires is missed.
    if (!verb.answer.empty())
        added
            ->add_flag_callback(
                "--json-schema",
                [answer = verb.answer, is_list = verb.is_list] {
                    fmt::print("{}\n", dump(schema_of(answer, is_list), 2));
                    throw CLI::Success();
                },
                "print the JSON Schema of --json")
            ->trigger_on_parse()
            ->group("");
    // The callback of a verb also runs for its subcommands.
    added->callback([&globals, &status, added, run = std::move(run)] {
        if (added->get_subcommands().empty()) status = show(globals, run());
    });
    return added;
}

} // namespace affinityctl
