// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/offline/policy_documents.hpp"

#include "host/file.hpp"
#include "policy/folders.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <utility>

namespace affinityctl {

namespace policy = affinityd::policy;

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
        auto text = affinityd::host::read_file(path);
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
        documents.push_back({path, std::move(**text)});
    }
    return documents;
}

} // namespace affinityctl
