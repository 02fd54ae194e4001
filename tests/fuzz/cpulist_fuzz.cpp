// SPDX-License-Identifier: Apache-2.0
// Any bytes as a CPU list: an accepted list is the set that a second, plain parser reads, and printing and
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

void check_list(std::string_view text) {
    const auto set = CpuSet::parse_list(text);
    if (!set) {
        require(!set.error().to_string().empty());
        return;
    }
    const auto again = CpuSet::parse_list(set->to_list());
    require(again && *again == *set);
    const auto mask = CpuSet::parse_mask(set->to_mask());
    require(mask && *mask == *set);
    require(set->empty() ||
            (set->contains(set->first()) && set->contains(set->last()) && set->last() <= CpuSet::max_cpu));
    CpuSet plain;
    if (affinityd::trim_text(text).empty()) return require(set->empty());
    for (const auto part : affinityd::split(affinityd::trim_text(text), ',')) {
        const std::string item(affinityd::trim_text(part));
        char* end = nullptr;
        const auto first = std::strtoull(item.c_str(), &end, 10);
        const auto last = *end == '-' ? std::strtoull(end + 1, nullptr, 10) : first;
        require(first <= last && last <= CpuSet::max_cpu);
        require(set->contains(static_cast<unsigned>(first)) && set->contains(static_cast<unsigned>(last)));
        plain |= CpuSet::range(static_cast<unsigned>(first), static_cast<unsigned>(last));
    }
    require(plain == *set);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    check_list({reinterpret_cast<const char*>(data), size});
    return 0;
}
