// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/kernel/few_capabilities.hpp"

#include <array>
#include <cstdint>

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace affinityctl {

void keep_few_capabilities() {
    constexpr unsigned kept[] = {CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, CAP_BPF};
    __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> present{};
    if (::syscall(SYS_capget, &header, present.data()) != 0) return;
    std::array<std::uint32_t, _LINUX_CAPABILITY_U32S_3> mask{};
    const auto keep = [&](unsigned capability) { mask[capability / 32] |= 1U << capability % 32; };
    for (const unsigned capability : kept)
        keep(capability);
    // Before Linux 5.8 that was needed for BPF.
    if ((present[CAP_BPF / 32].permitted & 1U << CAP_BPF % 32) == 0) keep(CAP_SYS_ADMIN);
    for (std::size_t word = 0; word < present.size(); ++word) {
        present[word].permitted &= mask[word];
        present[word].effective = present[word].permitted;
        present[word].inheritable = 0;
    }
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    ::syscall(SYS_capset, &header, present.data());
}

} // namespace affinityctl
