// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/verbs/ask.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "affinityctl/views/explanation.hpp"

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include <fmt/format.h>

namespace affinityctl {

void add_explain(CLI::App& app, Globals& globals, int& status) {
    auto* verb = app.add_subcommand("explain", "why a process, an interface or an interrupt is where it is");
    auto subject = std::make_shared<std::string>();
    verb->add_option("subject", *subject, "PID, TID, interface name, irq:NUMBER or the label of an interrupt")
        ->required();
    verb->callback([&globals, &status, subject] {
        status = ask_and_show(globals, "Explain", {*subject}, [&](const nlohmann::json& answer) {
            fmt::print("{}", explanation_text(answer, globals.color));
        });
    });
}

} // namespace affinityctl
