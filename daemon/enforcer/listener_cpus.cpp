// SPDX-License-Identifier: Apache-2.0
#include "enforcer/listener_cpus.hpp"

#include "base/text.hpp"
#include "host/foreign_socket.hpp"
#include "host/patient_call.hpp"
#include "host/root.hpp"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <expected>
#include <functional>
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

using Use = std::function<int(const host::ForeignSocket&)>; ///< an errno value, 0: it is done

/// What `use` says of the listener; ENOENT: nobody of these has it; EBUSY, EXDEV: nor can all be looked at.
int use_listener(const std::vector<int>& holders, const ListenerCpu& subject, const Use& use,
                 std::atomic<int>& pid) {
    int missing = ENOENT;
    for (const int holder : holders) {
        pid = 0;
        const auto files = host::ForeignFiles::open(holder);
        const int code = files ? 0 : files.error();
        if (code == EBUSY || code == EXDEV) missing = code;
        if (code == EBUSY || code == EXDEV || code == ESRCH) continue;
        if (code != 0) return code;
        pid = holder;
        const auto socket = files->socket(subject.number);
        if (socket && socket->cookie() == subject.cookie) return use(*socket);
        if (!socket && socket.error() != EBADF && socket.error() != ESRCH && socket.error() != ENOTSOCK)
            return socket.error();
    }
    return missing;
}

/// Its CPU after `to` was set, where that has a value; or why not, as above.
std::expected<int, int> ask(const host::Root& root, const ListenerCpu& subject, std::optional<int> to) {
    if (host::is_avoided(host::Avoid::cookie, subject.cookie)) return std::unexpected(EBUSY);
    const auto answer = host::patiently<std::expected<int, int>>(
        [holders = holders_of(root, subject), subject, to](std::atomic<int>& pid) -> std::expected<int, int> {
            std::optional<int> cpu;
            const int code = use_listener(
                holders, subject,
                [&](const host::ForeignSocket& socket) {
                    if (const int failed = to ? socket.set_incoming_cpu(*to) : 0; failed != 0) return failed;
                    cpu = socket.incoming_cpu();
                    return cpu ? 0 : ENOTSOCK;
                },
                pid);
            if (code != 0) return std::unexpected(code);
            return *cpu;
        });
    if (answer) return *answer;
    host::avoid(host::Avoid::cookie, subject.cookie); // whoever has it open
    return std::unexpected(EBUSY);
}

} // namespace

Applied ListenerCpus::write(const ListenerCpu& subject, const planner::Action& action) const {
    const auto cpu = ask(root_, subject, cpu_of(action.to));
    if (cpu) return {Outcome::done, setting_of(*cpu), 0};
    if (cpu.error() == ENOENT) return {Outcome::gone, {}, ESRCH};
    return {outcome_of(cpu.error()), {}, cpu.error()};
}

Result<std::optional<Setting>> ListenerCpus::read(const ListenerCpu& subject) const {
    const auto cpu = ask(root_, subject, std::nullopt);
    if (cpu) return setting_of(*cpu);
    if (cpu.error() == ENOENT) return std::nullopt;
    return fail("a listener cannot be read", machine::to_string(subject), cpu.error());
}

} // namespace affinityd::enforcer
