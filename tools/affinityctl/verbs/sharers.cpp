// SPDX-License-Identifier: Apache-2.0
// affinityctl sharers: which threads of a program wake each other.

#include "affinityctl/client/call.hpp"
#include "affinityctl/present/output.hpp"
#include "affinityctl/sharers/report.hpp"
#include "affinityctl/sharers/watch.hpp"
#include "affinityctl/verbs/ask.hpp"
#include "affinityctl/verbs/interruptible.hpp"
#include "affinityctl/verbs/option_values.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "affinityctl/verbs/watch_options.hpp"
#include "base/text.hpp"
#include "host/root.hpp"
#include "topology/reader.hpp"

#include <CLI/CLI.hpp>
#include <memory>
#include <utility>

#include <fmt/format.h>

namespace affinityctl {

namespace {

using affinityd::host::Root;
using std::chrono::milliseconds;

struct SharersOptions : WatchOptions {
    std::string pid;
};

/// The findings until then, if the user or the process ends it early.
affinityd::Result<Wakes> watch_wakes(WakeWatch& watch, milliseconds time) {
    const Interruptible signals;
    ProgressLine progress("watching");
    if (auto begun = watch.begin(); !begun) return std::unexpected(begun.error());
    keep_few_capabilities();
    const auto watched = watch.run(time, [&](milliseconds left) {
        progress.go_on();
        return signals.wait(left);
    });
    if (!watched) return std::unexpected(watched.error());
    return watch.take();
}

Outcome run_sharers(const SharersOptions& options, const Globals& globals) {
    if (const auto live = check_is_live(globals); !live) return std::unexpected(live.error());
    const auto pid = affinityd::parse_number<int>(options.pid);
    if (!pid || *pid < 1) return failed(exit_usage, options.pid + ": expected a process or thread id");
    const auto time = check_watch_options(options, globals, "sharers counts in the kernel");
    if (!time) return std::unexpected(time.error());
    const auto root = Root::open();
    if (!root) return failed(root.error());
    auto watch = WakeWatch::of(*root, *pid);
    if (!watch) return failed(watch.error());
    auto wakes = watch_wakes(*watch, *time);
    if (!wakes)
        return failed(
            affinityd::Error{"sharers cannot count: " + wakes.error().message, {}, wakes.error().code});
    const auto topology = affinityd::topology::read_topology(*root);
    if (!topology) return failed(topology.error());
    auto document = sharers_document(watch->process(), *wakes, watch->has_ended(), *topology);
    document.picture = options.svg;
    return document;
}

} // namespace

void add_sharers(CLI::App& app, Globals& globals, int& status) {
    const auto options = std::make_shared<SharersOptions>();
    auto* verb = add_verb(
        app,
        {.name = "sharers",
         .summary = "which threads of a program wake each other, and the rules that follow; needs root",
         .example = "affinityctl sharers $(pidof redis-server) --for 5s",
         .answer = sharers_answer},
        globals, status, [&globals, options] { return run_sharers(*options, globals); });
    verb->add_option("PID", options->pid, "the program, by a process or thread id")
        ->type_name("")
        ->required();
    add_watch_options(*verb, *options, "which thread wakes which");
}

} // namespace affinityctl
