// SPDX-License-Identifier: Apache-2.0
#include "host/file.hpp"
#include "policy/reader.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

namespace affinityd::policy {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_files = 100'000;

/// ".yml" is let through so that the reader can refuse it: silence would look like
/// success.
bool is_policy_name(std::string_view name) {
    return !name.starts_with('.') && !name.starts_with('#') &&
           (name.ends_with(".yaml") || name.ends_with(".yml"));
}

Result<std::vector<std::string>> names_in(const std::string& folder) {
    std::vector<std::string> names;
    std::error_code code;
    fs::directory_iterator at(folder, code);
    if (code == std::errc::no_such_file_or_directory) return names;
    for (; !code && at != fs::directory_iterator(); at.increment(code)) {
        if (auto name = at->path().filename().string(); is_policy_name(name))
            names.push_back(std::move(name));
        if (names.size() > max_files) return fail("more than 100000 policy files", folder, E2BIG);
    }
    if (code) return fail("the policy folder cannot be read", folder, code.value());
    std::ranges::sort(names);
    return names;
}

/// A link to the null device masks, as with units.
bool is_masking_link(const std::string& path) {
    std::error_code code;
    return fs::is_symlink(fs::symlink_status(path, code)) && fs::canonical(path, code) == "/dev/null";
}

Result<Document> try_to_read(const std::string& path) {
    if (is_masking_link(path)) return Document{path, {}};
    auto text = host::read_file(path);
    if (!text) return std::unexpected(text.error());
    if (!*text) return fail("the policy file is a link that leads nowhere", path, ENOENT);
    return Document{path, std::move(**text)};
}

Document unreadable(const std::string& path, Error error) {
    if (error.subject == path) error.subject.clear(); // the finding says which file
    return {path, {}, error.to_string()};
}

} // namespace

std::vector<std::string> standard_folders() {
    return {"/usr/lib/affinityd/policies.d", "/run/affinityd/policies.d", "/etc/affinityd/policies.d"};
}

Result<std::vector<std::string>> list_folders(const std::vector<std::string>& folders) {
    std::vector<std::string> paths;
    for (const auto& folder : folders) {
        const auto names = names_in(folder);
        if (!names) return std::unexpected(names.error());
        for (const auto& name : *names)
            paths.push_back((fs::path(folder) / name).string());
    }
    return paths;
}

bool is_removed(const std::string& path) {
    std::error_code code;
    return fs::symlink_status(path, code).type() == fs::file_type::not_found;
}

std::optional<Document> read_document(const std::string& path) {
    auto document = try_to_read(path);
    if (document) return std::move(*document);
    if (document.error().code == ENOENT && is_removed(path)) return std::nullopt;
    return unreadable(path, document.error());
}

Result<std::vector<Document>> read_folders(const std::vector<std::string>& folders) {
    const auto paths = list_folders(folders);
    if (!paths) return std::unexpected(paths.error());
    std::vector<Document> documents;
    for (const auto& path : *paths)
        if (auto document = read_document(path)) documents.push_back(std::move(*document));
    return documents;
}

namespace {

void resolve_programs(Selector& selector) {
    for (auto& child : selector.children)
        resolve_programs(child);
    auto& patterns = selector.condition.patterns;
    if (selector.op != Selector::Op::test || selector.condition.field != Condition::Field::exe) return;
    for (std::size_t i = patterns.size(); i-- > 0;) {
        if (!patterns[i].is_literal()) continue;
        std::error_code code;
        const auto found = fs::canonical(patterns[i].text(), code).string();
        if (code || found == patterns[i].text() || found.find_first_of("*?[\\") != std::string::npos)
            continue;
        if (auto pattern = Pattern::parse(found)) patterns.push_back(std::move(*pattern));
    }
}

} // namespace

void resolve_programs(PolicySet& policies) {
    for (auto& policy : policies.policies)
        resolve_programs(policy.match);
}

} // namespace affinityd::policy
