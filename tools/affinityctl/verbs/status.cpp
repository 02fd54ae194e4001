// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/offline/subjects.hpp"
#include "affinityctl/verbs/ask.hpp"
#include "affinityctl/verbs/not_empty.hpp"
#include "affinityctl/verbs/pager.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "affinityctl/views/json_text.hpp"
#include "affinityctl/views/status/findings.hpp"
#include "affinityctl/views/status/screen.hpp"
#include "affinityctl/views/status/selection.hpp"
#include "host/root.hpp"
#include "policy/suggest.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include <fmt/format.h>

namespace affinityctl {

namespace {

using nlohmann::json;

struct StatusOptions {
    std::string subject;
    bool failed = false;
    bool quiet = false;
    bool no_pager = false;
};

/// The part of a status that the subject stands for.
std::expected<json, CallError> meant_by(const json& status, const std::string& subject) {
    if (subject.empty()) return status;
    if (auto found = selected(status, subject)) return std::move(*found);
    if (subject.find('.') != std::string::npos) {
        const auto root = affinityd::host::Root::open("/");
        if (!root) return std::unexpected(CallError{exit_failure, root.error().to_string()});
        const auto pids = processes_of_unit(*root, subject);
        if (!pids) return std::unexpected(CallError{exit_failure, pids.error().to_string()});
        if (auto found = selected(status, subject, *pids)) return std::move(*found);
    }
    const auto names = names_in(status);
    const std::vector<std::string_view> words(names.begin(), names.end());
    const auto hint = affinityd::policy::did_you_mean(subject, words);
    return std::unexpected(CallError{exit_failure, subject +
                                                       ": nothing under policy has this name or "
                                                       "number; `affinityctl explain` may know it" +
                                                       (hint.empty() ? "" : " (" + hint + ")")});
}

int show_status(const StatusOptions& options, const Globals& globals) {
    const auto status = ask_daemon_object(globals, "GetStatus");
    if (!status) return complain(status.error());
    const auto part = meant_by(*status, options.subject);
    if (!part) return complain(part.error());
    auto answer_of = judged(*part);
    if (!options.subject.empty()) {
        const auto all = judged(*status)["problems"].size();
        answer_of["problems_elsewhere"] = all - std::min(all, answer_of["problems"].size());
    }
    if (globals.json && !options.quiet) {
        fmt::print("{}\n", dump(answer_of));
    } else if (!options.quiet) {
        StatusView view{.details = !options.subject.empty(), .out_of_place = options.failed};
        view.page = Page::of_output(globals.color);
        show(status_text(answer_of, view), !options.no_pager);
    }
    return needs_attention(answer_of) ? exit_findings : exit_ok;
}

} // namespace

void add_status(CLI::App& app, Globals& globals, int& status) {
    auto* verb =
        app.add_subcommand("status", "whether all is as the policies want it, and if not, what to do");
    const auto options = std::make_shared<StatusOptions>();
    verb->add_option("SUBJECT", options->subject,
                     "a policy, unit, PID or interface: its threads and queues one by one")
        ->check(not_empty());
    verb->add_flag("--failed", options->failed, "only what is not as it should be");
    verb->add_flag("-q,--quiet", options->quiet, "print nothing: the exit status says it");
    verb->add_flag("--no-pager", options->no_pager, "print all at once, also on a terminal");
    verb->callback([&globals, &status, options] { status = show_status(*options, globals); });
}

} // namespace affinityctl
