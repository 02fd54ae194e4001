// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/verbs/ask.hpp"
#include "affinityctl/verbs/verb.hpp"

#include <CLI/CLI.hpp>

namespace affinityctl {

void add_apply(CLI::App& app, Globals& globals, int& status) {
    auto* verb = app.add_subcommand("apply", "look at everything again now, also at what was released");
    verb->callback([&] { status = tell(globals, "Apply", {}); });
}

} // namespace affinityctl
