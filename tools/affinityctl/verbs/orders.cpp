// SPDX-License-Identifier: Apache-2.0
// affinityctl reload, apply, release: orders to the daemon.
#include "affinityctl/verbs/ask.hpp"
#include "affinityctl/verbs/verb.hpp"

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>

namespace affinityctl {

namespace {

CLI::App* add_order(CLI::App& app, Verb verb, Order order, Globals& globals, int& status) {
    verb.answer = order_answer;
    const auto kept = std::make_shared<Order>(std::move(order));
    auto* added = add_verb(app, verb, globals, status, [kept, &globals] { return tell(globals, *kept); });
    add_no_block(*added, kept->no_block);
    if (std::string_view(verb.name) == "release")
        added->add_option("what", kept->argument, "a policy's name or a PID; without: everything");
    return added;
}

} // namespace

void add_orders(CLI::App& app, Globals& globals, int& status) {
    add_order(
        app,
        {.name = "reload", .summary = "read policies and settings again", .example = "affinityctl reload"},
        {.method = "Reload", .doing = "reloading"}, globals, status);
    add_order(app,
              {.name = "apply",
               .summary = "look at everything again now, also at what was released",
               .example = "affinityctl apply"},
              {.method = "Apply", .doing = "applying"}, globals, status);
    add_order(app,
              {.name = "release",
               .summary = "put back what was changed, until the next apply or reload",
               .example = "affinityctl release nginx"},
              {.method = "Release", .doing = "releasing"}, globals, status);
}

} // namespace affinityctl
