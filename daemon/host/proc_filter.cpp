// SPDX-License-Identifier: Apache-2.0
#include "host/proc_filter.hpp"

#include <algorithm>
#include <cstddef>
#include <span>

#include <arpa/inet.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>

namespace affinityd::host {

namespace {

constexpr std::uint32_t event_at = NLMSG_HDRLEN + sizeof(cn_msg);
constexpr std::uint32_t event_data_at = event_at + offsetof(proc_event, event_data);
using Data = decltype(proc_event::event_data);

sock_filter load_word(std::uint32_t at) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at); }
sock_filter answer(bool pass) { return BPF_STMT(BPF_RET | BPF_K, pass ? 0xffffffffU : 0U); }

/// Skips `count` instructions unless the event is this one. The filter loads in network order, the kernel
/// wrote in its own.
sock_filter unless_event(std::uint32_t what, std::uint8_t count) {
    return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(what), 0, count);
}

constexpr std::size_t most_muted = 16;

/// The answer to an event of a process that is not muted; its number is at `tgid_at`.
void add_unless_muted(std::vector<sock_filter>& program, std::size_t tgid_at, std::span<const int> muted,
                      bool pass) {
    if (muted.empty() || !pass) return program.push_back(answer(pass));
    program.push_back(load_word(event_data_at + static_cast<std::uint32_t>(tgid_at)));
    for (std::size_t i = 0; i < muted.size(); ++i)
        program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(static_cast<std::uint32_t>(muted[i])),
                                   static_cast<std::uint8_t>(muted.size() - i), 0));
    program.push_back(answer(true));
    program.push_back(answer(false));
}

/// For an event with a thread's and its process's number: two answers.
void add_split(std::vector<sock_filter>& program, std::uint32_t what, std::size_t pid_at, std::size_t tgid_at,
               bool process, bool thread, std::span<const int> muted) {
    std::vector<sock_filter> of_thread;
    add_unless_muted(of_thread, tgid_at, muted, thread);
    program.push_back(unless_event(what, static_cast<std::uint8_t>(5 + of_thread.size())));
    program.push_back(load_word(event_data_at + static_cast<std::uint32_t>(pid_at)));
    program.push_back(BPF_STMT(BPF_MISC | BPF_TAX, 0));
    program.push_back(load_word(event_data_at + static_cast<std::uint32_t>(tgid_at)));
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_X, 0, 0, 1));
    program.push_back(answer(process));
    program.insert(program.end(), of_thread.begin(), of_thread.end());
}

} // namespace

std::vector<sock_filter> proc_event_filter(const ProcSource::Wanted& wanted) {
    const auto muted = std::span(wanted.muted).first(std::min(wanted.muted.size(), most_muted));
    std::vector<sock_filter> program;
    program.push_back(load_word(event_at + offsetof(proc_event, what)));
    program.push_back(unless_event(proc_event::PROC_EVENT_EXEC, 1));
    program.push_back(answer(wanted.execs));
    const auto add_unsplit = [&](std::uint32_t what, std::size_t tgid_at, bool pass) {
        std::vector<sock_filter> of_event;
        add_unless_muted(of_event, tgid_at, muted, pass);
        program.push_back(unless_event(what, static_cast<std::uint8_t>(of_event.size())));
        program.insert(program.end(), of_event.begin(), of_event.end());
    };
    add_unsplit(proc_event::PROC_EVENT_COMM, offsetof(Data::comm_proc_event, process_tgid), wanted.renames);
    add_unsplit(proc_event::PROC_EVENT_UID, offsetof(Data::id_proc_event, process_tgid), wanted.ids);
    add_unsplit(proc_event::PROC_EVENT_GID, offsetof(Data::id_proc_event, process_tgid), wanted.ids);
    add_split(program, proc_event::PROC_EVENT_FORK, offsetof(Data::fork_proc_event, child_pid),
              offsetof(Data::fork_proc_event, child_tgid), wanted.process_forks, wanted.thread_forks, muted);
    add_split(program, proc_event::PROC_EVENT_EXIT, offsetof(Data::exit_proc_event, process_pid),
              offsetof(Data::exit_proc_event, process_tgid), wanted.exits, wanted.thread_exits, muted);
    program.push_back(answer(false));
    return program;
}

std::uint32_t proc_event_mask(const ProcSource::Wanted& wanted) {
    std::uint32_t mask = 0;
    if (wanted.execs) mask |= proc_event::PROC_EVENT_EXEC;
    if (wanted.renames) mask |= proc_event::PROC_EVENT_COMM;
    if (wanted.ids) mask |= proc_event::PROC_EVENT_UID | proc_event::PROC_EVENT_GID;
    if (wanted.process_forks || wanted.thread_forks) mask |= proc_event::PROC_EVENT_FORK;
    if (wanted.exits || wanted.thread_exits) mask |= static_cast<std::uint32_t>(proc_event::PROC_EVENT_EXIT);
    return mask;
}

} // namespace affinityd::host
