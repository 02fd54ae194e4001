// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/testbed/napi_threads.hpp"

#include "base/text.hpp"
#include "netdev/napi.hpp"

#include <algorithm>
#include <cerrno>

namespace affinityd::ttcp {

namespace {

/// Kernel threads called "napi/NAME-ID".
std::vector<int> napi_threads(const host::Root& root, const std::string& nic) {
    std::vector<int> tids;
    for (const auto& entry : root.proc().list(".").value_or(std::vector<std::string>{})) {
        const auto tid = parse_number<int>(entry);
        if (!tid) continue;
        const auto name = netdev::parse_napi_thread(root.proc().text(entry + "/comm").value_or(""));
        if (name && name->interface == nic) tids.push_back(*tid);
    }
    return tids;
}

} // namespace

Result<std::vector<int>> start_napi_threads(const host::Root& root, const NetworkSpace& space,
                                            const std::string& name) {
    const auto before = napi_threads(root, name);
    if (const int code = space.sys().write("class/net/" + name + "/threaded", "1"); code != 0)
        return fail("no threaded NAPI (Linux 5.12 or later is needed)", name, code);
    std::vector<int> fresh;
    for (const int tid : napi_threads(root, name))
        if (std::ranges::find(before, tid) == before.end()) fresh.push_back(tid);
    if (fresh.empty())
        return fail("its NAPI thread cannot be seen from here: is this a container?", name, ESRCH);
    return fresh;
}

} // namespace affinityd::ttcp
