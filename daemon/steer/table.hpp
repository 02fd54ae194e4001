// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"

#include <cerrno>
#include <cstdint>
#include <vector>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

namespace affinityd::steer {

/// Calls use(key, value) for all entries of a table of the kernel; those that come meanwhile may be left out.
/// `take`: they are removed from it.
template <class Key, class Value, class Use>
Result<void> read_table(const bpf_map* map, const Use& use, bool take = false) {
    constexpr std::uint32_t at_once = 4096;
    std::vector<Key> keys(at_once);
    std::vector<Value> values(at_once);
    std::uint32_t place = 0;
    const auto read = take ? bpf_map_lookup_and_delete_batch : bpf_map_lookup_batch;
    for (bool is_first = true, has_more = true; has_more; is_first = false) {
        std::uint32_t count = at_once;
        const int failed = read(bpf_map__fd(map), is_first ? nullptr : &place, &place, keys.data(),
                                values.data(), &count, nullptr);
        if (failed != 0 && failed != -ENOENT) return fail("cannot read a BPF table", {}, -failed);
        has_more = failed == 0;
        for (std::uint32_t i = 0; i < count; ++i)
            use(keys[i], values[i]);
    }
    return {};
}

/// Removes all entries.
template <class Key>
void clear_table(const bpf_map* map) {
    const int fd = bpf_map__fd(map);
    for (Key key{}; bpf_map_get_next_key(fd, nullptr, &key) == 0;)
        if (bpf_map_delete_elem(fd, &key) != 0) return;
}

} // namespace affinityd::steer
