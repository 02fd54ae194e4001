// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/sharers/percpu_distance.hpp"

#include <memory>
#include <optional>
#include <string_view>

#include <bpf/btf.h>

namespace affinityctl {

namespace {

struct BtfEnd {
    void operator()(btf* types) const { btf__free(types); }
};

} // namespace

std::int64_t distance_to_preempt_count() {
    const std::unique_ptr<btf, BtfEnd> types(btf__load_vmlinux_btf());
    if (types == nullptr) return 0;
    const int section = btf__find_by_name_kind(types.get(), ".data..percpu", BTF_KIND_DATASEC);
    if (section <= 0) return 0;
    const auto* list = btf__type_by_id(types.get(), static_cast<unsigned>(section));
    std::optional<std::int64_t> from, to;
    const auto* variable = btf_var_secinfos(list);
    for (unsigned i = 0; i < btf_vlen(list); ++i, ++variable) {
        const char* name =
            btf__name_by_offset(types.get(), btf__type_by_id(types.get(), variable->type)->name_off);
        const std::string_view word = name == nullptr ? "" : name;
        if (word == "runqueues") from = variable->offset;
        // At its end in Linux 6.2 to 6.14; wakes.bpf.c adds where in it.
        if (word == "__preempt_count" || word == "pcpu_hot") to = variable->offset;
    }
    return from && to ? *to - *from : 0;
}

} // namespace affinityctl
