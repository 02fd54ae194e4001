// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/verbs/ask.hpp"
#include "affinityctl/verbs/verb.hpp"

#include <CLI/CLI.hpp>
#include <memory>

namespace affinityctl {

void add_reload(CLI::App& app, Globals& globals, int& status) {
    auto* verb = app.add_subcommand(
        "reload", "read policies and settings again; of a file with errors the last good version stays");
    auto no_block = std::make_shared<bool>(false);
    add_no_block(*verb, *no_block);
    verb->callback([&globals, &status, no_block] {
        status = tell(globals, {.method = "Reload", .doing = "reloading", .no_block = *no_block});
    });
}

} // namespace affinityctl
