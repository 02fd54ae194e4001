// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policy/reader.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

/// The tables of tests/policies. A case begins with "--- NAME"; its text follows, or several files, each
/// after "+++ FILE".
/// "=== means" begins the lines in which the policies differ from the smallest one, "=== on machines" the
/// CPUs of `cpus` on recorded machines, any other "=== " the findings. ⟨0D 0A⟩ are bytes, ⟨4096*a⟩ repeats,
/// ⟨⟩ joins a line and the next.
namespace corpus {

namespace fs = std::filesystem;
using namespace affinityd::policy;

struct Sample {
    std::string name;                ///< "bind: cores"
    std::vector<Document> documents; ///< one text is called policy.yaml
    std::string findings, means, on_machines;
    bool is_in_full = false; ///< `means` has all lines, of the smallest policy
};

/// tests/policies of the source tree, told by the build.
inline fs::path folder() {
    const char* path = std::getenv("AFFINITYD_POLICY_CORPUS");
    return path == nullptr ? fs::path() : fs::path(path);
}

inline std::string slurp(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// `line` and its end, with what stands between ⟨ and ⟩ spelled out.
inline std::string spelled_out(std::string_view line) {
    static constexpr std::string_view open = "⟨", close = "⟩";
    std::string text;
    bool is_joined = false;
    for (std::size_t at = 0; at < line.size();) {
        const auto begin = std::min(line.find(open, at), line.size());
        text += line.substr(at, begin - at);
        if (begin == line.size()) break;
        const auto end = line.find(close, begin);
        const std::string inside(line.substr(begin + open.size(), end - begin - open.size()));
        const auto star = inside.find('*');
        if (star != std::string::npos)
            for (auto times = std::stoul(inside); times > 0; --times)
                text += inside.substr(star + 1);
        else
            for (std::size_t digit = 0; digit < inside.size(); digit += 3)
                text += static_cast<char>(std::stoul(inside.substr(digit, 2), nullptr, 16));
        at = end + close.size();
        is_joined = inside.empty() && at == line.size();
    }
    return is_joined ? text : text + "\n";
}

inline std::vector<Sample> read_table(const fs::path& path) {
    std::vector<Sample> cases;
    std::ifstream file(path);
    std::string* part = nullptr;
    for (std::string line; std::getline(file, line);) {
        const auto rest = line.substr(std::min<std::size_t>(4, line.size()));
        if (line.starts_with("--- ")) {
            if (part != nullptr) part->pop_back(); // the empty line between two cases
            cases.emplace_back().name = path.stem().string() + ": " + rest;
            part = nullptr;
        } else if (cases.empty()) {
            continue; // about the table
        } else if (line.starts_with("+++ ")) {
            part = &cases.back().documents.emplace_back(rest, "").text;
        } else if (line.starts_with("=== means")) {
            part = &cases.back().means;
            cases.back().is_in_full = line.ends_with(" in full");
        } else if (line == "=== on machines") {
            part = &cases.back().on_machines;
        } else if (line.starts_with("=== ")) {
            part = &cases.back().findings;
            *part = spelled_out(rest);
        } else {
            if (part == nullptr) part = &cases.back().documents.emplace_back("policy.yaml", "").text;
            *part += spelled_out(line);
        }
    }
    return cases;
}

/// The cases of all tables but that of machines.
inline const std::vector<Sample>& all_cases() {
    static const auto all = [] {
        std::vector<fs::path> paths;
        for (const auto& entry : fs::directory_iterator(folder()))
            if (entry.path().filename() != "machines.table") paths.push_back(entry.path());
        std::ranges::sort(paths);
        std::vector<Sample> cases;
        for (const auto& path : paths)
            std::ranges::move(read_table(path), std::back_inserter(cases));
        return cases;
    }();
    return all;
}

inline std::vector<Sample> cases_with(std::string Sample::*part) {
    std::vector<Sample> found;
    std::ranges::copy_if(all_cases(), std::back_inserter(found),
                         [&](const Sample& one) { return !(one.*part).empty(); });
    return found;
}

inline std::string said(const std::vector<Diagnostic>& diagnostics) {
    std::string text;
    for (const auto& d : diagnostics) {
        const auto line = to_string(d, true) + "\n";
        text += line.starts_with("policy.yaml:") ? line.substr(line.find(':') + 1) : line;
    }
    return text;
}

} // namespace corpus
