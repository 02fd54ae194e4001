// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/verbs/ask.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "affinityctl/views/status_text.hpp"

#include <CLI/CLI.hpp>

#include <fmt/format.h>

namespace affinityctl {

void add_status(CLI::App& app, Globals& globals, int& status) {
    auto* verb = app.add_subcommand(
        "status", "what the daemon does now: policies, threads, queues, problems, the last measurement");
    verb->callback([&] {
        status = ask_and_show(globals, "GetStatus", {}, [&](const nlohmann::json& answer) {
            fmt::print("{}", status_text(answer, globals.color));
        });
    });
}

} // namespace affinityctl
