// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/verbs/ask.hpp"
#include "affinityctl/verbs/verb.hpp"

#include <CLI/CLI.hpp>

namespace affinityctl {

void add_reload(CLI::App& app, Globals& globals, int& status) {
    auto* verb =
        app.add_subcommand("reload", "read the policies again; with a fault in them the running ones stay");
    verb->callback([&] { status = tell(globals, "Reload", {}); });
}

} // namespace affinityctl
