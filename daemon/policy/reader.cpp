// SPDX-License-Identifier: Apache-2.0
#include "policy/reader.hpp"

#include "base/text.hpp"
#include "host/file.hpp"
#include "policy/diagnostic.hpp"
#include "policy/fields.hpp"
#include "policy/set_check.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <tuple>
#include <utility>

namespace affinityd::policy {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view ending = ".yaml";

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_name_byte(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.' || c == '@' || c == '+';
}

void about_file(const Document& document, Severity severity, std::string message, std::string hint,
                std::vector<Diagnostic>& out) {
    out.push_back(finding(severity, {document.path, 1, 1}, 1, std::move(message), std::move(hint)));
}

/// The policy's name; no value if the file's name gives none (reported).
std::optional<std::string> name_of(const Document& document, std::vector<Diagnostic>& out) {
    const auto file = file_name(document.path);
    const bool has_ending = file.ends_with(ending);
    if (!has_ending && document.path != "-")
        about_file(document, document.is_named ? Severity::note : Severity::warning,
                   "the daemon does not read this file: its name does not end in .yaml", "rename it", out);
    if (!has_ending && !document.is_named) return std::nullopt;
    const auto name = policy_name(file);
    if (!name.empty() && name.size() <= 200 && std::ranges::all_of(name, is_name_byte))
        return std::string(name);
    about_file(document, Severity::error,
               "the file's name gives no good name to a policy: " + in_quotes(name),
               "letters, digits and . _ - + @, at most 200", out);
    return std::nullopt;
}

/// True for only spaces, comments and document marks: such a file masks.
bool is_empty_text(std::string_view text) {
    while (!text.empty()) {
        auto line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        line = line.substr(0, line.find('#'));
        if (line.find_first_not_of(" \t\r") != std::string_view::npos && !line.starts_with("---"))
            return false;
    }
    return true;
}

std::optional<Policy> read_one(const Document& document, std::string_view name,
                               std::vector<Diagnostic>& out) {
    std::string_view text = document.text;
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3); // a byte order mark has no meaning in UTF-8
    Report report(document.path, text, out);
    const auto tree = report.read_root(false);
    if (!tree) return std::nullopt;
    auto policy = read_document(*tree, report);
    policy.name = std::string(name);
    policy.text_hash = fnv1a_64(document.text);
    if (report.errors() > 0) return std::nullopt;
    return policy;
}

/// The winners by name, with what they replace. The last of equal names is the one that holds.
std::map<std::string, const Document*> choose(const std::vector<Document>& documents, ReadResult& result) {
    std::map<std::string, const Document*> chosen;
    for (const auto& document : documents) {
        const auto name = name_of(document, result.diagnostics);
        if (!name) continue;
        const auto [at, fresh] = chosen.try_emplace(*name, &document);
        if (fresh) continue;
        result.set.overrides.push_back(
            {*name, at->second->path, document.path, document.fault.empty() && is_empty_text(document.text)});
        at->second = &document;
    }
    return chosen;
}

/// Reads one document into the result.
void read_into(std::string_view name, const Document& document, ReadResult& result) {
    if (!document.fault.empty()) {
        about_file(document, Severity::error, document.fault, {}, result.diagnostics);
        result.diagnostics.back().at = {document.path, 0, 0}; // no line of it is at fault
        return;
    }
    if (!is_empty_text(document.text)) {
        if (auto policy = read_one(document, name, result.diagnostics))
            result.set.policies.push_back(std::move(*policy));
        return;
    }
    const bool masks =
        std::ranges::any_of(result.set.overrides, [&](const Override& each) { return each.name == name; });
    if (!masks)
        about_file(document, Severity::note, "an empty file, and no other of its name that it could mask", {},
                   result.diagnostics);
}

/// ".yml" is let through so that the reader can refuse it: silence would look like success.
bool is_policy_name(std::string_view name) {
    return !name.starts_with('.') && !name.starts_with('#') &&
           (name.ends_with(".yaml") || name.ends_with(".yml"));
}

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

std::string_view policy_name(std::string_view path) {
    const auto file = file_name(path);
    return file.ends_with(ending) ? file.substr(0, file.size() - ending.size()) : file;
}

bool ReadResult::ok() const {
    return std::ranges::none_of(diagnostics,
                                [](const Diagnostic& d) { return d.severity == Severity::error; });
}

ReadResult read_policies(const std::vector<Document>& documents) {
    ReadResult result;
    for (const auto& [name, document] : choose(documents, result))
        read_into(name, *document, result);
    std::ranges::sort(result.set.policies, comes_before);
    check_set(result.set, result.diagnostics);
    add_source_lines(result.diagnostics, documents);
    sort_by_place(result.diagnostics);
    return result;
}

void add_source_lines(std::vector<Diagnostic>& diagnostics, const std::vector<Document>& documents) {
    std::map<std::string_view, const Document*> by_path;
    for (const auto& document : documents)
        by_path.insert_or_assign(document.path, &document);
    std::map<const Document*, Source> sources;
    for (auto& diagnostic : diagnostics) {
        const auto document = by_path.find(diagnostic.at.file);
        if (document == by_path.end() || !diagnostic.source_line.empty()) continue;
        const auto source = sources.try_emplace(document->second, document->second->text).first;
        diagnostic.source_line = std::string(source->second.line(diagnostic.at.line));
    }
}

void sort_by_place(std::vector<Diagnostic>& diagnostics) {
    const auto place = [](const Diagnostic& d) { return std::tie(d.at.file, d.at.line, d.at.column); };
    std::ranges::stable_sort(diagnostics, [&](const auto& a, const auto& b) { return place(a) < place(b); });
}

std::vector<std::string> standard_folders() {
    return {"/usr/lib/affinityd/policies.d", "/run/affinityd/policies.d", "/etc/affinityd/policies.d"};
}

Result<std::vector<std::string>> list_folders(const std::vector<std::string>& folders) {
    constexpr std::size_t max_files = 100'000;
    std::vector<std::string> paths;
    for (const auto& folder : folders) {
        const auto before = paths.size();
        std::error_code code;
        fs::directory_iterator at(folder, code);
        if (code == std::errc::no_such_file_or_directory) continue;
        for (; !code && at != fs::directory_iterator(); at.increment(code)) {
            if (is_policy_name(at->path().filename().string())) paths.push_back(at->path().string());
            if (paths.size() - before > max_files)
                return fail("more than 100000 policy files", folder, E2BIG);
        }
        if (code) return fail("the policy folder cannot be read", folder, code.value());
        std::sort(paths.begin() + static_cast<std::ptrdiff_t>(before), paths.end());
    }
    return paths;
}

bool is_removed(const std::string& path) {
    std::error_code code;
    return fs::symlink_status(path, code).type() == fs::file_type::not_found;
}

std::optional<Document> read_document(const std::string& path) {
    std::error_code code;
    // A link to the null device masks, as with units.
    if (fs::is_symlink(fs::symlink_status(path, code)) && fs::canonical(path, code) == "/dev/null")
        return Document{path, {}};
    const auto text = host::read_file(path);
    if (text && *text) return Document{path, **text};
    if ((text || text.error().code == ENOENT) && is_removed(path)) return std::nullopt;
    if (text)
        return Document{
            path, {}, Error{"the policy file is a link that leads nowhere", {}, ENOENT}.to_string()};
    auto error = text.error();
    if (error.subject == path) error.subject.clear(); // the finding says which file
    return Document{path, {}, error.to_string()};
}

Result<std::vector<Document>> read_folders(const std::vector<std::string>& folders) {
    const auto paths = list_folders(folders);
    if (!paths) return std::unexpected(paths.error());
    std::vector<Document> documents;
    for (const auto& path : *paths)
        if (auto document = read_document(path)) documents.push_back(std::move(*document));
    return documents;
}

void resolve_programs(PolicySet& policies) {
    for (auto& policy : policies.policies)
        resolve_programs(policy.match);
}

} // namespace affinityd::policy
