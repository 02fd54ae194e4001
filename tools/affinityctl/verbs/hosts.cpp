// SPDX-License-Identifier: Apache-2.0
// affinityctl -H HOST -H HOST status: several machines side by side.
#include "affinityctl/client/answers.hpp"
#include "affinityctl/verbs/verb.hpp"

#include <algorithm>
#include <cstdlib>
#include <future>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace affinityctl {

namespace {

using nlohmann::json;

constexpr std::chrono::seconds patience{15};
constexpr std::size_t most_problems = 8; // of a host

constexpr Field host_fields[] = {
    {"host", "HOST", "text", ""},          {"health", "HEALTH", "text", ""},
    {"version", "VERSION", "text", ""},    {"policies", "POLICIES", "count", ""},
    {"processes", "PROCS", "count", ""},   {"threads", "THREADS", "text", ""},
    {"queues", "QUEUES", "text", ""},      {"put_right", "PUT RIGHT", "count", ""},
    {"problems", "PROBLEMS", "count", ""},
};

json row_of(const std::string& host, const json& status) {
    std::uint64_t processes = 0, held = 0, wanted = 0, corrected = 0;
    for (const auto& policy : list(status, "policies")) {
        processes += count(policy, "processes");
        held += count(policy, "threads_in_place");
        wanted += count(policy, "threads_wanted");
        corrected += count(policy, "drift_put_right");
    }
    QueueCount queues;
    for (const auto& [policy, its] : queues_by(status, "policy"))
        queues = {queues.held + its.held, queues.wanted + its.wanted};
    return record(host_fields,
                  {host, text(status, "health"), text(status, "version"), list(status, "policies").size(),
                   processes, fmt::format("{}/{}", held, wanted),
                   fmt::format("{}/{}", queues.held, queues.wanted), corrected,
                   list(status, "problems").size()});
}

void add_problems(const std::string& host, const json& status, Document& into) {
    const auto& problems = list(status, "problems");
    for (std::size_t at = 0; at < std::min(problems.size(), most_problems); ++at)
        into.add(Document::Problem{host + ": " + sentence_of(problems[at]), text(problems[at], "hint")});
    if (problems.size() > most_problems)
        into.line(
            fmt::format("{}: {} more: affinityctl -H {} status", host, problems.size() - most_problems, host),
            "  * ");
}

/// Without "health": the reason why there is none.
json status_of(Globals globals, const std::string& host) {
    globals.host = host;
    const auto answer = call_daemon(globals, "GetStatus", {}, {.time = patience, .may_ask = false});
    if (!answer) return {{"ok", false}, {"message", answer.error().message}};
    try {
        auto status = json::parse(*answer);
        (void)status.at("health"), (void)row_of(host, status); // throw where a key is of another kind
        return status;
    } catch (const json::exception&) {
        return {{"ok", false}, {"message", host + ": the daemon's answer cannot be read"}};
    }
}

} // namespace

Document side_by_side(const Globals& globals) {
    // Nobody can say which of several hosts asks for a password: ssh asks this program instead.
    ::setenv("SSH_ASKPASS", "false", 1);
    ::setenv("SSH_ASKPASS_REQUIRE", "force", 1);
    std::vector<std::future<json>> asked;
    for (const auto& host : globals.hosts)
        asked.push_back(std::async(std::launch::async, status_of, globals, host));
    Document document, problems;
    Document::Table table{host_fields};
    for (std::size_t at = 0; at < asked.size(); ++at) {
        const auto& host = globals.hosts[at];
        auto status = asked[at].get();
        const bool is_answer = status.contains("health");
        table.rows.push_back(is_answer ? row_of(host, status) : json{{"host", host}});
        if (is_answer)
            add_problems(host, status, problems);
        else
            problems.add(Document::Problem{text(status, "message")});
        if (!is_answer)
            document.code = exit_failure;
        else if (needs_attention(status) && document.code == exit_ok)
            document.code = exit_findings;
        document.value[host] = std::move(status);
    }
    document.add(std::move(table));
    for (auto& block : problems.blocks)
        document.blocks.push_back(std::move(block));
    document.by_columns = true;
    return document;
}

} // namespace affinityctl
