// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/offline/policy_documents.hpp"

#include "host/file.hpp"
#include "policy/reader.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace affinityctl {

namespace policy = affinityd::policy;

namespace {

affinityd::Result<std::optional<std::string>> standard_input() {
    constexpr std::size_t limit = 1U << 20; // as of files
    std::string text(limit + 1, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), stdin));
    if (std::ferror(stdin) != 0) return affinityd::fail("cannot read standard input", "-");
    if (text.size() > limit) return affinityd::fail("larger than 1 MiB", "-");
    return text;
}

} // namespace

affinityd::Result<std::vector<policy::Document>> policy_documents(const std::vector<std::string>& paths,
                                                                  std::vector<policy::Diagnostic>& findings) {
    std::vector<policy::Document> documents;
    std::map<std::string, std::string> files;
    for (const auto& path : paths) {
        std::error_code code;
        if (std::filesystem::is_directory(path, code)) {
            auto found = policy::read_folders({path});
            if (!found) return std::unexpected(found.error());
            std::ranges::move(*found, std::back_inserter(documents));
            continue;
        }
        auto text = path == "-" ? standard_input() : affinityd::host::read_file(path);
        if (!text) return std::unexpected(text.error());
        if (!*text) return affinityd::fail("there is no such file or folder", path);
        const auto [first, fresh] = files.try_emplace(std::filesystem::path(path).filename().string(), path);
        if (!fresh && first->second != path)
            findings.push_back({.severity = policy::Severity::error,
                                .at = {path, 1, 1},
                                .length = 1,
                                .message = "a policy of this name is in " + first->second + " too",
                                .hint = "the file's name names the policy; rename one",
                                .source_line = {}});
        documents.push_back({.path = path, .text = std::move(**text), .is_named = true});
    }
    return documents;
}

} // namespace affinityctl
