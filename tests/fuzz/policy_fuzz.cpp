// SPDX-License-Identifier: Apache-2.0
// Any bytes as a policy file: no crash, bounded work, every finding at a place in the file; an accepted
// policy is the same after printing and reading it.
#include "policy/reader.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

using namespace affinityd::policy;

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "%s\n", what);
    std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    const auto result = read_policies({{"fuzz.yaml", text}});
    const auto lines = static_cast<unsigned>(std::ranges::count(text, '\n')) + 1;
    for (const auto& finding : result.diagnostics) {
        require(!to_string(finding, true).empty(), "a finding without text");
        require(finding.at.line >= 1 && finding.at.line <= lines, "a finding at a line that is not there");
        require(finding.at.column >= 1, "a finding without a column");
    }
    require(result.set.policies.size() <= 1, "one file gave several policies");
    require(result.ok() || result.set.policies.empty(), "a policy in spite of an error");
    for (const auto& policy : result.set.policies) {
        const auto printed = to_yaml(policy);
        // A line may be longer in print than as written; the limit for files still holds.
        if (printed.size() > (std::size_t{256} << 10)) continue;
        const auto again = read_policies({{"fuzz.yaml", printed}});
        require(again.ok() && again.set.policies.size() == 1, "what was printed cannot be read");
        require(to_yaml(again.set.policies.front()) == printed, "what was printed reads as something else");
    }
    return 0;
}
