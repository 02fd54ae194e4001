// SPDX-License-Identifier: Apache-2.0
// affinityctl -H HOST: verbs that read, on other machines by ssh(1), as systemctl has it. Each machine's own
// affinityctl does the work.
#include "affinityctl/client/answers.hpp"
#include "affinityctl/client/findings.hpp"
#include "affinityctl/verbs/verb.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace affinityctl {

namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 7> remote_verbs{"status", "plan",    "explain", "check",
                                                       "doctor", "metrics", "report"};
constexpr std::size_t most_output = 64U << 20; // bytes of a host's answer
constexpr std::size_t most_problems = 8;       // of a host

/// A command line without its -H HOST.
struct Call {
    std::vector<std::string> hosts, words;
    std::string verb;
    std::size_t file = 0; ///< place of the first word after the verb that is no option; 0: there is none
};

Call taken_apart(const std::vector<std::string>& words) {
    Call call;
    for (std::size_t at = 0; at < words.size(); ++at) {
        const auto& word = words[at];
        const bool has_more = at + 1 < words.size();
        if (call.verb == "measure") {
            call.words.push_back(word); // another program's options may follow
        } else if ((word == "-H" || word == "--host") && has_more) {
            call.hosts.push_back(words[++at]);
        } else if (word.starts_with("--host=") || (word.starts_with("-H") && word.size() > 2)) {
            call.hosts.push_back(word.substr(word.starts_with("-H") ? 2 : 7));
        } else if ((word == "--root" || word == "--runtime-dir" || word == "--policies" ||
                    word == "--latency") &&
                   has_more) {
            call.words.insert(call.words.end(), {word, words[++at]});
        } else {
            const bool is_option = word.size() > 1 && word.starts_with('-');
            if (!is_option && !call.verb.empty() && call.file == 0) call.file = call.words.size();
            if (!is_option && call.verb.empty()) call.verb = word;
            call.words.push_back(word);
        }
    }
    return call;
}

/// No option of ssh(1) and nothing that a shell, which ssh may start for a proxy, would act upon.
bool is_host(std::string_view host) {
    constexpr std::string_view fine =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@:%[]";
    const auto name = host.substr(host.rfind('@') + 1); // npos + 1 is 0
    return !name.empty() && !host.starts_with('-') && !name.starts_with('-') &&
           host.find_first_not_of(fine) == std::string_view::npos;
}

std::string shell_word(std::string_view word) {
    std::string text = "'";
    for (const char c : word)
        text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return text + "'";
}

/// For a shell here; `options` are ssh's. Lines there are as wide as the terminal here.
std::string command_for(const std::string& host, const std::vector<std::string>& words, const char* options) {
    winsize size{};
    std::string there = "affinityctl";
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        there = fmt::format("env COLUMNS={} affinityctl", size.ws_col);
    for (const auto& word : words)
        there += " " + shell_word(word);
    return fmt::format("exec ssh {} -- {} {}", options, shell_word(host), shell_word(there));
}

/// An exit code as this program has them; ssh's own failures have one that no verb has.
int exit_code(int status) {
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : exit_failure;
    return code <= exit_no_daemon ? code : exit_failure;
}

struct Close {
    void operator()(std::FILE* stream) const { ::pclose(stream); }
};
using Stream = std::unique_ptr<std::FILE, Close>;

Stream begin(const std::string& host, const std::vector<std::string>& words, const char* options) {
    return Stream(
        ::popen(command_for(host, words, options).c_str(), "re")); // NOLINT(cert-env33-c): all is quoted
}

struct HostAnswer {
    std::string text;
    int code = exit_failure;
};

HostAnswer end(Stream stream) {
    HostAnswer answer;
    if (stream == nullptr) return answer;
    std::array<char, 1U << 16> part{};
    for (std::size_t got = 1; got > 0 && answer.text.size() < most_output;) {
        got = std::fread(part.data(), 1, part.size(), stream.get());
        answer.text.append(part.data(), got);
    }
    answer.code = exit_code(::pclose(stream.release()));
    return answer;
}

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

/// The status of several hosts: a line for each, then their problems.
Document side_by_side(const Call& call) {
    auto words = call.words;
    if (std::ranges::find(words, "--json") == words.end()) words.emplace_back("--json");
    std::vector<Stream> streams;
    for (const auto& host : call.hosts)
        streams.push_back(begin(host, words, // all at once: none asks for a password, or holds up the others
                                "-nxT -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=5"));
    Document document, problems;
    Document::Table table{host_fields};
    for (std::size_t at = 0; at < call.hosts.size(); ++at) {
        const auto& host = call.hosts[at];
        const auto answer = end(std::move(streams[at]));
        auto status = json::parse(answer.text, nullptr, false);
        const bool is_answer = status.is_object() && status.contains("health");
        if (!is_answer) {
            auto why = text(status, "message");
            if (why.empty()) why = "no answer by ssh";
            problems.add(Document::Problem{host + ": " + why});
            status = {{"ok", false}, {"message", why}};
        }
        table.rows.push_back(is_answer ? row_of(host, status) : json{{"host", host}});
        add_problems(host, status, problems);
        if (!is_answer)
            document.code = exit_failure;
        else if (answer.code != exit_ok && document.code == exit_ok)
            document.code = static_cast<Exit>(answer.code);
        document.value[host] = std::move(status);
    }
    document.add(std::move(table));
    for (auto& block : problems.blocks)
        document.blocks.push_back(std::move(block));
    document.by_columns = true;
    return document;
}

/// The page is written here.
int report_from(const Globals& globals, Call call) {
    if (call.file == 0) return complain(globals, {exit_usage, "report: FILE is required"});
    const auto file = std::exchange(call.words[call.file], "-");
    if (const auto checked = check_picture(globals, file); !checked)
        return complain(globals, checked.error());
    const auto answer = end(begin(call.hosts[0], call.words, "-nxT"));
    if (answer.code != exit_ok && answer.code != exit_findings) return answer.code;
    const int written = write_picture(file, answer.text);
    return written != exit_ok ? written : answer.code;
}

} // namespace

std::optional<int> run_on_hosts(Globals globals, const std::vector<std::string>& words) {
    const auto call = taken_apart(words);
    if (call.hosts.empty()) return std::nullopt;
    globals.json = std::ranges::find(call.words, "--json") != call.words.end();
    for (const auto& host : call.hosts)
        if (!is_host(host)) return complain(globals, {exit_usage, "-H: this is no name of a host: " + host});
    if (std::ranges::find(remote_verbs, call.verb) == remote_verbs.end())
        return complain(globals,
                        {exit_usage,
                         "-H is for status, plan, explain, check, doctor, metrics and report; for other "
                         "verbs, run affinityctl there"});
    if (call.hosts.size() > 1 && call.verb != "status")
        return complain(globals, {exit_usage, "several hosts are for status only"});
    if (call.hosts.size() > 1) return show(globals, side_by_side(call));
    if (call.verb == "report") return report_from(globals, call);
    return exit_code(
        std::system(command_for(call.hosts[0], call.words, "-xT").c_str())); // NOLINT(cert-env33-c)
}

} // namespace affinityctl
