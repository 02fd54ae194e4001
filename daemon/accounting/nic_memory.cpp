// SPDX-License-Identifier: Apache-2.0
#include "accounting/nic_memory.hpp"

#include <utility>

namespace affinityd::accounting {

void NicMemory::begin(std::chrono::seconds now) {
    now_ = now;
    noted_.merge(known_);
    known_ = std::exchange(noted_, {});
}

std::vector<std::string> NicMemory::note(const TaskId& process, const NicSockets& seen) {
    NicShares shares;
    if (auto node = known_.extract(process)) shares = std::move(node.mapped());
    shares.add(seen, now_);
    auto names = shares.names();
    if (!names.empty()) noted_.insert_or_assign(process, std::move(shares));
    return names;
}

void NicMemory::end() { known_ = std::exchange(noted_, {}); }

} // namespace affinityd::accounting
