// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policy/reader.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace corpus {

namespace fs = std::filesystem;
using namespace affinityd::policy;

/// tests/policies of the source tree, told by the build.
inline fs::path folder() {
    const char* path = std::getenv("AFFINITYD_POLICY_CORPUS");
    return path == nullptr ? fs::path() : fs::path(path);
}

inline std::string slurp(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

/// One case: NAME.yaml, or a folder NAME of several.
struct Case {
    std::string name;
    std::vector<Document>
        documents;     ///< with the file's name as path, so that messages are the same everywhere
    fs::path expected; ///< without ending
};

inline std::vector<Case> cases(const std::string& kind) {
    std::vector<Case> found;
    for (const auto& entry : fs::directory_iterator(folder() / kind)) {
        const auto& path = entry.path();
        Case one{path.stem().string(), {}, path.parent_path() / path.stem()};
        if (entry.is_directory()) {
            one.expected = path / "all";
            auto documents = read_folders({path.string()});
            for (auto& document : *documents)
                one.documents.push_back(
                    {fs::path(document.path).filename().string(), std::move(document.text)});
        } else if (path.extension() == ".yaml") {
            one.documents.push_back({path.filename().string(), slurp(path)});
        }
        if (!one.documents.empty()) found.push_back(std::move(one));
    }
    std::ranges::sort(found, {}, &Case::name);
    return found;
}

inline std::string said(const std::vector<Diagnostic>& diagnostics) {
    std::string text;
    for (const auto& d : diagnostics)
        text += to_string(d, true) + "\n";
    return text;
}

} // namespace corpus
