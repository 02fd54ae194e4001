// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/verbs/policy_set.hpp"

#include "affinityctl/offline/policy_documents.hpp"
#include "affinityctl/verbs/ask.hpp"
#include "base/escape.hpp"
#include "policy/reader.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace affinityctl {

namespace {

namespace policy = affinityd::policy;

void print(const std::vector<policy::Diagnostic>& findings) {
    for (const auto& finding : findings)
        fmt::print(stderr, "{}\n", policy::to_string(finding, true));
}

} // namespace

std::vector<std::string> daemon_folders(const Globals& globals) {
    std::vector<std::string> folders;
    const auto status = status_if_any(globals);
    if (status.is_object())
        for (const auto& folder : status.value("policy_folders", nlohmann::json::array()))
            if (folder.is_string()) folders.push_back(folder.get<std::string>());
    return folders.empty() ? policy::standard_folders() : folders;
}

void warn_of_missing(const std::vector<std::string>& folders) {
    for (const auto& folder : folders) {
        std::error_code code;
        if (!std::filesystem::exists(folder, code))
            fmt::print(stderr, "affinityctl: warning: there is no folder {}\n", affinityd::escaped(folder));
    }
}

std::expected<policy::PolicySet, CallError> read_policy_set(const std::vector<std::string>& paths,
                                                            const Globals& globals) {
    std::vector<policy::Diagnostic> findings;
    const auto documents =
        paths.empty() ? policy::read_folders(daemon_folders(globals)) : policy_documents(paths, findings);
    if (!documents) return failed(documents.error());
    auto read = policy::read_policies(*documents);
    print(findings);
    print(read.diagnostics);
    if (!findings.empty() || !read.ok()) return failed(exit_findings, "the policies have errors");
    return std::move(read.set);
}

std::expected<Preview, CallError> preview_policy_set(const std::vector<std::string>& paths,
                                                     const Globals& globals) {
    std::vector<policy::Diagnostic> findings;
    auto documents = policy::read_folders(daemon_folders(globals));
    if (!documents) return failed(documents.error());
    auto named = policy_documents(paths, findings);
    if (!named) return failed(named.error());
    const auto is_named = [&](const std::string& path) {
        return std::ranges::find(*named, path, &policy::Document::path) != named->end();
    };
    std::erase_if(*documents, [&](const auto& document) { return is_named(document.path); });
    std::ranges::copy(*named, std::back_inserter(*documents));
    auto read = policy::read_policies(*documents);
    print(findings);
    print(read.diagnostics);
    const bool is_faulty = std::ranges::any_of(read.diagnostics, [&](const auto& finding) {
        return finding.severity == policy::Severity::error && is_named(finding.at.file);
    });
    if (is_faulty || !findings.empty()) return failed(exit_findings, "the policies have errors");
    Preview preview{std::move(read.set), {}};
    for (const auto& policy : preview.set.policies)
        if (is_named(policy.at.file)) preview.names.push_back(policy.name);
    return preview;
}

} // namespace affinityctl
