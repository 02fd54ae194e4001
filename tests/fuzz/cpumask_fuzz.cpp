// SPDX-License-Identifier: Apache-2.0
// Any bytes as a CPU mask: an accepted mask is the set that a second, plain parser reads, and printing and
// reading it again gives the same set.
#include "base/cpu_set.hpp"
#include "base/text.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using affinityd::CpuSet;

void require(bool promise) {
    if (!promise) std::abort();
}

void check_mask(std::string_view text) {
    const auto set = CpuSet::parse_mask(text);
    if (!set) return require(!set.error().to_string().empty());
    const auto again = CpuSet::parse_mask(set->to_mask());
    require(again && *again == *set);
    const auto list = CpuSet::parse_list(set->to_list());
    require(list && *list == *set);
    // The last word holds CPUs 0 to 31, the one before it 32 to 63, and so on.
    auto plain = affinityd::trim_text(text);
    if (plain.starts_with("0x")) plain.remove_prefix(2);
    const auto words = affinityd::split(plain, ',');
    std::size_t members = 0;
    for (std::size_t place = 0; place < words.size(); ++place) {
        const auto word = std::strtoull(std::string(words[words.size() - 1 - place]).c_str(), nullptr, 16);
        for (unsigned bit = 0; bit < 32; ++bit) {
            const bool is_in = (word >> bit & 1) != 0;
            require(set->contains(static_cast<unsigned>(place) * 32 + bit) == is_in);
            members += is_in;
        }
    }
    require(set->count() == members);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    check_mask({reinterpret_cast<const char*>(data), size});
    return 0;
}
