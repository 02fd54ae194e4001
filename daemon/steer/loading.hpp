// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/root.hpp"

#include <cerrno>
#include <cstdint>
#include <string>
#include <vector>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

namespace affinityd::steer {

/// To be called before a program for the kernel is loaded: libbpf prints no warnings of its own from then on.
/// An Error: here BPF would count, but by numbers of processes that mean nothing here (a PID namespace of its
/// own).
[[nodiscard]] Result<void> prepare_bpf(const host::Root& root);

/// Why a program was refused, for users; `code` is an errno value, `needs` what it asks of the kernel beyond
/// BTF: "the tracepoint tcp:tcp_rcv_space_adjust".
[[nodiscard]] Error refused_bpf(int code, const std::string& needs);

/// Calls use(key, value) for all entries of a table of the kernel (its descriptor); those that come meanwhile
/// may be left out. `take`: they are removed from it.
template <class Key, class Value, class Use>
Result<void> read_table(int map, const Use& use, bool take = false) {
    constexpr std::uint32_t at_once = 4096;
    std::vector<Key> keys(at_once);
    std::vector<Value> values(at_once);
    std::uint32_t place = 0;
    const auto read = take ? bpf_map_lookup_and_delete_batch : bpf_map_lookup_batch;
    for (bool is_first = true, has_more = true; has_more; is_first = false) {
        std::uint32_t count = at_once;
        const int failed =
            read(map, is_first ? nullptr : &place, &place, keys.data(), values.data(), &count, nullptr);
        if (failed != 0 && failed != -ENOENT) return fail("cannot read a BPF table", {}, -failed);
        has_more = failed == 0;
        for (std::uint32_t i = 0; i < count; ++i)
            use(keys[i], values[i]);
    }
    return {};
}

} // namespace affinityd::steer
