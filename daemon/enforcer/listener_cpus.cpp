// SPDX-License-Identifier: Apache-2.0
#include "enforcer/listener_cpus.hpp"

#include "base/text.hpp"
#include "host/avoided.hpp"
#include "host/foreign_socket.hpp"
#include "host/patient_call.hpp"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
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
using inventory::ListenerHolders;

/// What `use` says of the listener, of which this process may have the descriptor; ENOENT: it does not.
int use_of(int process, int number, const ListenerCpu& subject, const Use& use, std::atomic<int>& pid) {
    pid = 0;
    const auto files = host::ForeignFiles::open(process);
    if (!files) return files.error() == ESRCH ? ENOENT : files.error();
    pid = process;
    const auto socket = files->socket(number);
    if (socket) return socket->cookie() == subject.cookie ? use(*socket) : ENOENT;
    const int code = socket.error();
    return code == EBADF || code == ESRCH || code == ENOTSOCK ? ENOENT : code;
}

/// ENOENT: nobody of these has it; EBUSY, EXDEV: nor can all be looked at.
int use_listener(const std::vector<int>& processes, const ListenerCpu& subject, const Use& use,
                 std::atomic<int>& pid) {
    int missing = ENOENT;
    for (const int process : processes) {
        const int code = use_of(process, subject.number, subject, use, pid);
        if (code == EBUSY || code == EXDEV) missing = code;
        if (code != EBUSY && code != EXDEV && code != ENOENT) return code;
    }
    return missing;
}

/// Under another descriptor, or in the hands of others. ENOENT: it is gone; EBUSY: not all of the family
/// could be looked at; EOWNERDEAD: it still listens, but nobody was found who has it open.
int use_elsewhere(ListenerHolders& holders, const std::vector<int>& processes, const ListenerCpu& subject,
                  const Use& use, std::atomic<int>& pid) {
    if (subject.inode == 0) return ENOENT;
    const auto use_if = [&](const std::optional<ListenerHolders::Holder>& holder) {
        return holder ? use_of(holder->pid, holder->number, subject, use, pid) : ENOENT;
    };
    bool is_whole = true;
    const int code = use_if(holders.among(processes, subject.inode, pid, is_whole));
    if (code != ENOENT) return code;
    pid = 0;
    const auto listed = holders.is_listed(subject.inode);
    if (listed == ListenerHolders::Listed::not_known) return EBUSY;
    if (listed == ListenerHolders::Listed::no)
        return is_whole || holders.are_here(processes) ? ENOENT : EBUSY;
    for (int i = 0; i < 2; ++i) { // the first may be of long ago
        const int its = use_if(holders.anywhere(subject.inode, pid));
        if (its != ENOENT) return its;
        holders.forget(subject.inode);
        pid = 0;
    }
    return EOWNERDEAD;
}

/// What a call has, which may outlive who asked.
struct Question {
    ListenerCpu subject;
    std::optional<int> to; ///< no value: it is only read
    std::vector<int> processes;
    std::shared_ptr<ListenerHolders> holders;
    std::atomic<bool> is_in_hand = false;  ///< else it is still looked for
    std::atomic<bool> is_given_up = false; ///< nobody waits for the answer: nothing is to be set any more
};

/// Its CPU after `to` was set, where that has a value; or why not, as above.
std::expected<int, int> answer_to(Question& question, std::atomic<int>& pid) {
    std::optional<int> cpu;
    const Use use = [&](const host::ForeignSocket& socket) {
        question.is_in_hand = true;
        if (question.is_given_up) return EBUSY;
        if (const int failed = question.to ? socket.set_incoming_cpu(*question.to) : 0; failed != 0)
            return failed;
        cpu = socket.incoming_cpu();
        return cpu ? 0 : ENOTSOCK;
    };
    int code = use_listener(question.processes, question.subject, use, pid);
    if (code == ENOENT)
        code = use_elsewhere(*question.holders, question.processes, question.subject, use, pid);
    if (code != 0) return std::unexpected(code);
    return *cpu;
}

std::expected<int, int> ask(const host::Root& root, const std::shared_ptr<ListenerHolders>& holders,
                            const ListenerCpu& subject, std::optional<int> to) {
    if (host::is_avoided(host::Avoid::cookie, subject.cookie)) return std::unexpected(EBUSY);
    const auto question = std::make_shared<Question>(subject, to, holders_of(root, subject), holders);
    const auto answer = host::patiently<std::expected<int, int>>(
        [question](std::atomic<int>& pid) { return answer_to(*question, pid); });
    if (answer) return *answer;
    question->is_given_up = true;
    if (answer.error() == host::Unanswered::stuck && question->is_in_hand) // whoever has it open
        host::avoid(host::Avoid::cookie, subject.cookie);
    return std::unexpected(host::to_errno(answer.error()));
}

} // namespace

Applied ListenerCpus::write(const ListenerCpu& subject, const planner::Action& action) const {
    const auto cpu = ask(root_, holders_, subject, cpu_of(action.to));
    if (cpu) return {Outcome::done, setting_of(*cpu), 0};
    if (cpu.error() == ENOENT) return {Outcome::gone, {}, ESRCH};
    return {outcome_of(cpu.error()), {}, cpu.error()};
}

Result<std::optional<Setting>> ListenerCpus::read(const ListenerCpu& subject) const {
    const auto cpu = ask(root_, holders_, subject, std::nullopt);
    if (cpu) return setting_of(*cpu);
    if (cpu.error() == ENOENT) return std::nullopt;
    return fail("a listener cannot be read", machine::to_string(subject), cpu.error());
}

} // namespace affinityd::enforcer
