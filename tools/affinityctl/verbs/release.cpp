// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/verbs/ask.hpp"
#include "affinityctl/verbs/verb.hpp"

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

namespace affinityctl {

void add_release(CLI::App& app, Globals& globals, int& status) {
    auto* verb = app.add_subcommand(
        "release", "put back what a policy or a process was given, until the next apply or reload");
    auto what = std::make_shared<std::string>();
    verb->add_option("what", *what, "a policy's name or a PID; without: everything");
    auto no_block = std::make_shared<bool>(false);
    add_no_block(*verb, *no_block);
    verb->callback([&globals, &status, what, no_block] {
        status = tell(globals, {"Release", *what, "releasing", *no_block});
    });
}

} // namespace affinityctl
