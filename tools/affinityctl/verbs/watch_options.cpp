// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/verbs/watch_options.hpp"

#include "affinityctl/present/output.hpp"
#include "affinityctl/verbs/option_values.hpp"
#include "base/text.hpp"

#include <CLI/CLI.hpp>
#include <array>
#include <cstdint>

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace affinityctl {

using std::chrono::milliseconds;

namespace {
constexpr milliseconds shortest{100}, longest{std::chrono::hours(1)};
} // namespace

void add_watch_options(CLI::App& verb, WatchOptions& options, const std::string& picture) {
    verb.add_option("--for", options.time, "how long to watch")->type_name("TIME")->capture_default_str();
    verb.add_option("--svg", options.svg, "also draw " + picture + " into this file (- is standard output)")
        ->type_name("FILE")
        ->check(not_empty());
}

std::expected<milliseconds, CallError>
check_watch_options(const WatchOptions& options, const Globals& globals, const std::string& why_root) {
    const auto time = affinityd::parse_duration(options.time);
    if (!time || *time < shortest || *time > longest)
        return std::unexpected(CallError{exit_usage, "--for: expected a time from 100ms to 1h, as 10s"});
    if (const auto picture = check_picture(globals, options.svg); !picture)
        return std::unexpected(picture.error());
    if (::geteuid() != 0) return std::unexpected(CallError{exit_failure, why_root + ": run it as root"});
    return *time;
}

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
