// SPDX-License-Identifier: Apache-2.0
#include "inventory/accept_round.hpp"

#include "host/patient_call.hpp"
#include "inventory/lookup.hpp"
#include "inventory/name_space.hpp"

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

namespace affinityd::inventory {

namespace {

constexpr int most_of_time = 5;          // as long as of CPU time
constexpr std::size_t most_spaces = 256; // network namespaces whose listeners are listed in one round

} // namespace

/// Each user's, no more than his share of what may be read.
AcceptRound::Users AcceptRound::choose(std::span<const TaskId> processes) {
    Users users;
    for (const auto& process : processes)
        users[persons_.person(read_real_user(root_, process.tid).value_or(~0U))].push_back(process);
    ++rounds_;
    is_partial_ = processes.size() > limits_.processes;
    if (!is_partial_) return users;
    std::vector<std::vector<TaskId>*> by_size;
    for (auto& [user, ids] : users)
        by_size.push_back(&ids);
    std::ranges::sort(by_size, {}, [](const auto* ids) { return ids->size(); });
    std::size_t left = limits_.processes, others = by_size.size();
    for (auto* ids : by_size) { // what those with few do not need is the others'
        const auto share = std::max<std::size_t>(1, left / others--);
        if (ids->size() > share) {
            const auto first = rounds_ * share % ids->size();
            std::ranges::rotate(*ids, ids->begin() + static_cast<std::ptrdiff_t>(first));
            ids->resize(share);
        }
        left -= std::min(left, ids->size());
    }
    return users;
}

/// Null: it is not known, or not asked.
const AcceptRound::Space* AcceptRound::around(int pid) {
    const auto space = name_space(root_, std::to_string(pid), "net");
    if (space == 0 || is_partial_) return nullptr;
    if (const auto known = spaces_.find(space); known != spaces_.end()) return &known->second;
    if (spaces_.size() >= most_spaces) return nullptr;
    const auto snmp = root_.proc().read(std::to_string(pid) + "/net/snmp", 65536).value_or(std::nullopt);
    const Space found{pid, std::make_shared<ListeningSockets>(ListeningSockets::read(root_, pid, persons_)),
                      parse_passive_opens(snmp.value_or(""))};
    return &spaces_.emplace(space, found).first->second;
}

void AcceptRound::read_user(uid_t user, const std::vector<TaskId>& processes, const std::stop_token& stop,
                            std::vector<AcceptSockets>& found) {
    const auto begun = host::thread_time_with_calls();
    std::size_t left = limits_.listeners_of_user;
    const auto end = std::chrono::steady_clock::now() + limits_.of_user * most_of_time;
    // What others hold up takes no CPU time.
    const auto goes_on = [&] {
        return !stop.stop_requested() && left > 0 &&
               host::thread_time_with_calls() - begun < limits_.of_user &&
               std::chrono::steady_clock::now() < end;
    };
    for (const auto& process : processes) {
        if (stop.stop_requested()) return;
        const auto* space = around(process.tid);
        AcceptAround where{user, space == nullptr ? nullptr : space->listening};
        if (goes_on()) {
            auto& one = found.emplace_back(reader_.read(process, std::move(where), goes_on));
            const auto kept = std::min(left, one.sockets.size());
            left -= kept;
            one.left_out += one.sockets.size() - kept;
            one.sockets.resize(kept);
            one.knows_all = one.knows_all && one.left_out == 0;
            if (space != nullptr) one.opened = space->opened;
            work_.note(one);
        } else {
            auto& one = found.emplace_back(AcceptSockets{process});
            one.user = user;
            one.around = std::move(where.listening);
            one.code = EDQUOT;
            one.knows_all = false;
        }
    }
}

/// One that was closed while others were read is no listener that nobody was found to have open.
void AcceptRound::forget_closed() {
    for (auto& [number, space] : spaces_)
        space.listening->keep_only(ListeningSockets::read(root_, space.pid, persons_));
}

std::vector<AcceptSockets> AcceptRound::read(std::span<const TaskId> processes, const std::stop_token& stop) {
    reader_.keep_only(processes);
    spaces_.clear();
    std::vector<AcceptSockets> found;
    for (const auto& [user, ids] : choose(processes))
        read_user(user, ids, stop, found);
    if (!stop.stop_requested()) forget_closed();
    work_.end_round();
    spaces_.clear();
    std::ranges::sort(found, {}, &AcceptSockets::process);
    return found;
}

} // namespace affinityd::inventory
