// SPDX-License-Identifier: Apache-2.0
#include "enforcer/listener_cpus.hpp"

#include "base/clock.hpp"
#include "host/avoided.hpp"
#include "host/foreign_socket.hpp"
#include "host/patient_call.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <span>

namespace affinityd::enforcer {

namespace {

using machine::ListenerCpu;
using machine::Setting;
using machine::setting_of;

constexpr int none = -1;

int cpu_of(const Setting& setting) {
    return setting.cpus().empty() ? none : static_cast<int>(setting.cpus().first());
}

Outcome outcome_of(int code) {
    if (code == EINPROGRESS) return Outcome::busy;
    return code == EPERM || code == EACCES ? Outcome::not_permitted : Outcome::failed;
}

using Use = std::function<int(const host::ForeignSocket&)>; ///< an errno value, 0: it is done
using inventory::ListenerHolders;

/// What `use` says of the listener, of which this process may have the descriptor; ENOENT: it does not.
int use_of(int process, int number, const ListenerCpu& subject, const Use& use, host::InUse& at) {
    at.pid = 0;
    const auto files = host::ForeignFiles::open(process);
    if (!files) return files.error() == ESRCH ? ENOENT : files.error();
    at.pid = process;
    if (at.is_given_up) return ECANCELED;
    const auto socket = files->socket(number);
    if (socket) return socket->cookie() == subject.cookie ? use(*socket) : ENOENT;
    const int code = socket.error();
    return code == EBADF || code == ESRCH || code == ENOTSOCK ? ENOENT : code;
}

/// It does not have it, or could not be looked at: others may have it.
bool is_missing(int code) { return code == ENOENT || code == EBUSY || code == EXDEV; }

/// Under the same number. ENOENT: nobody of these has it; EBUSY, EXDEV: nor can all be looked at.
int use_by_number(std::span<const int> processes, const ListenerCpu& subject, const Use& use,
                  host::InUse& at) {
    int missing = ENOENT;
    for (const int process : processes) {
        const int code = use_of(process, subject.number, subject, use, at);
        if (!is_missing(code)) return code;
        if (code != ENOENT) missing = code;
    }
    return missing;
}

int use_of(const std::optional<ListenerHolders::Holder>& holder, const ListenerCpu& subject, const Use& use,
           host::InUse& at) {
    return holder ? use_of(holder->pid, holder->number, subject, use, at) : ENOENT;
}

/// Under any number. As above; `is_whole`: all of the family was looked at.
int use_in_family(ListenerHolders& holders, std::span<const int> family, const ListenerCpu& subject,
                  const Use& use, host::InUse& at, bool& is_whole) {
    const int missing = use_by_number(family.subspan(1), subject, use, at);
    if (!is_missing(missing)) return missing;
    const int code = use_of(holders.among(family, subject.inode, at, is_whole), subject, use, at);
    return code == ENOENT ? missing : code;
}

int use_anywhere(ListenerHolders& holders, const ListenerCpu& subject, const Use& use, host::InUse& at) {
    for (int i = 0; i < 2; ++i) { // the first may be of long ago
        const int code = use_of(holders.anywhere(subject.inode, at), subject, use, at);
        if (code != ENOENT) return code;
        holders.forget(subject.inode);
        at.pid = 0;
    }
    return EOWNERDEAD;
}

/// Not by its process under its number. ENOENT: it is gone; EBUSY: not all of the family could be looked at;
/// EOWNERDEAD: it still listens, but nobody was found who has it open. One that is not listed may be open all
/// the same: HAProxy pauses its listeners by shutdown(2). So the family is searched first, unless it has made
/// that take too long lately.
int use_elsewhere(ListenerHolders& holders, const ListenerCpu& subject, const Use& use, host::InUse& at) {
    using Listed = ListenerHolders::Listed;
    bool are_all = true, is_whole = true;
    const auto family = holders.family_of(subject.process, subject.parent, are_all);
    if (subject.inode == 0) return use_by_number(std::span(family).subspan(1), subject, use, at);
    if (const int code = use_of(holders.known(subject.inode), subject, use, at); code != ENOENT) return code;
    holders.forget(subject.inode);
    const auto payer = holders.payer_of(subject.process, subject.parent);
    const bool can_pay = holders.can_pay(payer);
    int code = ENOENT;
    if (can_pay) {
        const auto before = thread_time();
        code = use_in_family(holders, family, subject, use, at, is_whole);
        at.pid = 0;
        holders.charge(payer, thread_time() - before);
        if (!is_missing(code)) return code;
    }
    const auto listed = holders.is_listed(subject.inode);
    if (listed == Listed::yes) {
        if (std::ranges::any_of(family, host::is_process_avoided)) return EBUSY; // one of them, most likely
        const int its = use_anywhere(holders, subject, use, at);
        return its == EOWNERDEAD && code != ENOENT ? code : its;
    }
    if (code == EBUSY || listed == Listed::not_known || !is_whole) return EBUSY;
    const bool is_searched = can_pay && are_all && code == ENOENT;
    return is_searched || holders.are_here(family) ? ENOENT : EBUSY;
}

/// What a call has, which may outlive who asked.
struct Question {
    ListenerCpu subject;
    std::optional<int> to; ///< no value: it is only read
    std::shared_ptr<ListenerHolders> holders;
};

/// Its CPU after `to` was set, where that has a value; or why not, as above.
std::expected<int, int> answer_to(Question& question, host::InUse& at) {
    std::optional<int> cpu;
    const Use use = [&](const host::ForeignSocket& socket) {
        at.cookie = question.subject.cookie;  // whoever has it open
        at.inode = question.subject.inode;    // by which who reads listeners knows it
        if (at.is_given_up) return ECANCELED; // nor is it looked for any more
        if (const int failed = question.to ? socket.set_incoming_cpu(*question.to) : 0; failed != 0)
            return failed;
        cpu = socket.incoming_cpu();
        return cpu ? 0 : ENOTSOCK;
    };
    const auto& subject = question.subject;
    int code = use_of(subject.process, subject.number, subject, use, at);
    if (is_missing(code)) code = use_elsewhere(*question.holders, subject, use, at);
    if (code != 0) return std::unexpected(code);
    return *cpu;
}

std::expected<int, int> ask(const std::shared_ptr<ListenerHolders>& holders, const ListenerCpu& subject,
                            std::optional<int> to) {
    if (host::is_avoided({host::Avoid::cookie, subject.cookie}) ||
        host::is_avoided({host::Avoid::inode, subject.inode}))
        return std::unexpected(EBUSY);
    const auto question = std::make_shared<Question>(subject, to, holders);
    const auto answer = host::patiently<std::expected<int, int>>(
        [question](host::InUse& at) { return answer_to(*question, at); });
    if (answer) return *answer;
    return std::unexpected(answer.error() == host::Unanswered::stuck ? EINPROGRESS
                                                                     : host::to_errno(answer.error()));
}

} // namespace

Applied ListenerCpus::write(const ListenerCpu& subject, const planner::Action& action) const {
    const auto cpu = ask(holders_, subject, cpu_of(action.to));
    if (cpu) return {Outcome::done, setting_of(*cpu), 0};
    if (cpu.error() == ENOENT) return {Outcome::gone, {}, ESRCH};
    return {outcome_of(cpu.error()), {}, cpu.error()};
}

Result<std::optional<Setting>> ListenerCpus::read(const ListenerCpu& subject) const {
    const auto cpu = ask(holders_, subject, std::nullopt);
    if (cpu) return setting_of(*cpu);
    if (cpu.error() == ENOENT) return std::nullopt;
    return fail("a listener cannot be read", machine::to_string(subject), cpu.error());
}

} // namespace affinityd::enforcer
