// SPDX-License-Identifier: Apache-2.0
#include "enforcer/listener_cpus.hpp"

#include "base/text.hpp"
#include "host/root.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace affinityd::enforcer {

namespace {

using machine::ListenerCpu;
using machine::Setting;

constexpr int none = -1;
constexpr std::size_t longest_text = 64U << 10; // some 8,000 children
constexpr std::size_t most_children = 256;      // a look at one takes some 10 us, and the event loop waits

Setting setting_of(int cpu) { return cpu < 0 ? CpuSet() : CpuSet{static_cast<unsigned>(cpu)}; }

int cpu_of(const Setting& setting) {
    return setting.cpus().empty() ? none : static_cast<int>(setting.cpus().first());
}

Outcome outcome_of(int code) {
    return code == EPERM || code == EACCES ? Outcome::not_permitted : Outcome::failed;
}

/// Who may have it open, the likeliest first. Of very many children, the newest: that is to whom servers hand
/// on what they have open.
std::vector<int> holders_of(const host::Root& root, const ListenerCpu& subject) {
    std::vector<int> holders{subject.process};
    if (subject.parent <= 1) return holders;
    holders.push_back(subject.parent);
    const auto children =
        root.proc().read(fmt::format("{0}/task/{0}/children", subject.parent), longest_text);
    if (!children || !*children) return holders;    // kernels without CONFIG_PROC_CHILDREN
    for (const auto word : split_words(**children)) // the kernel lists the eldest first
        if (const auto pid = parse_number<int>(word); pid && *pid != subject.process) holders.push_back(*pid);
    if (const auto kept = most_children + 2; holders.size() > kept)
        holders.erase(holders.begin() + 2, holders.end() - most_children);
    return holders;
}

} // namespace

ListenerCpus::Found ListenerCpus::find(const ListenerCpu& subject) const {
    for (const int holder : holders_of(root_, subject)) {
        const auto files = host::ForeignFiles::open(holder);
        if (!files && files.error() != ESRCH) return std::unexpected(files.error());
        if (!files) continue;
        auto socket = files->socket(subject.number);
        if (socket && socket->cookie() == subject.cookie) return std::move(*socket);
        if (!socket && socket.error() != EBADF && socket.error() != ESRCH && socket.error() != ENOTSOCK)
            return std::unexpected(socket.error());
    }
    return std::nullopt;
}

Applied ListenerCpus::write(const ListenerCpu& subject, const planner::Action& action) const {
    const auto found = find(subject);
    if (!found) return {outcome_of(found.error()), {}, found.error()};
    if (!*found) return {Outcome::gone, {}, ESRCH};
    const int code = (*found)->set_incoming_cpu(cpu_of(action.to));
    if (code != 0) return {outcome_of(code), {}, code};
    return {Outcome::done, setting_of((*found)->incoming_cpu().value_or(cpu_of(action.to))), 0};
}

Result<std::optional<Setting>> ListenerCpus::read(const ListenerCpu& subject) const {
    const auto found = find(subject);
    if (!found) return fail("a listener cannot be read", machine::to_string(subject), found.error());
    if (!*found) return std::nullopt;
    const auto cpu = (*found)->incoming_cpu();
    if (!cpu) return fail("a listener cannot be read", machine::to_string(subject), ENOTSOCK);
    return setting_of(*cpu);
}

} // namespace affinityd::enforcer
