// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"

#include <cerrno>
#include <cstdint>
#include <vector>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

namespace affinityctl {

/// Calls use(key, value) for all entries of a table of the kernel; those that come meanwhile may be left out.
template <class Key, class Value, class Use>
affinityd::Result<void> read_table(const bpf_map* map, const Use& use) {
    constexpr std::uint32_t at_once = 4096;
    std::vector<Key> keys(at_once);
    std::vector<Value> values(at_once);
    std::uint32_t place = 0;
    for (bool is_first = true, has_more = true; has_more; is_first = false) {
        std::uint32_t count = at_once;
        const int failed = bpf_map_lookup_batch(bpf_map__fd(map), is_first ? nullptr : &place, &place,
                                                keys.data(), values.data(), &count, nullptr);
        if (failed != 0 && failed != -ENOENT) return affinityd::fail("cannot read a BPF table", {}, -failed);
        has_more = failed == 0;
        for (std::uint32_t i = 0; i < count; ++i)
            use(keys[i], values[i]);
    }
    return {};
}

} // namespace affinityctl
