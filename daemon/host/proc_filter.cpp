// SPDX-License-Identifier: Apache-2.0
#include "host/proc_filter.hpp"

#include <cstddef>

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

/// For an event with a thread's and its process's number: two answers.
void add_split(std::vector<sock_filter>& program, std::uint32_t what, std::size_t pid_at, std::size_t tgid_at,
               bool process, bool thread) {
    program.push_back(unless_event(what, 6));
    program.push_back(load_word(event_data_at + static_cast<std::uint32_t>(pid_at)));
    program.push_back(BPF_STMT(BPF_MISC | BPF_TAX, 0));
    program.push_back(load_word(event_data_at + static_cast<std::uint32_t>(tgid_at)));
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_X, 0, 0, 1));
    program.push_back(answer(process));
    program.push_back(answer(thread));
}

} // namespace

std::vector<sock_filter> proc_event_filter(const ProcSource::Wanted& wanted) {
    std::vector<sock_filter> program;
    program.push_back(load_word(event_at + offsetof(proc_event, what)));
    program.push_back(unless_event(proc_event::PROC_EVENT_EXEC, 1));
    program.push_back(answer(wanted.execs));
    program.push_back(unless_event(proc_event::PROC_EVENT_COMM, 1));
    program.push_back(answer(wanted.renames));
    add_split(program, proc_event::PROC_EVENT_FORK, offsetof(Data::fork_proc_event, child_pid),
              offsetof(Data::fork_proc_event, child_tgid), wanted.process_forks, wanted.thread_forks);
    add_split(program, proc_event::PROC_EVENT_EXIT, offsetof(Data::exit_proc_event, process_pid),
              offsetof(Data::exit_proc_event, process_tgid), wanted.exits, wanted.thread_exits);
    program.push_back(answer(false));
    return program;
}

std::uint32_t proc_event_mask(const ProcSource::Wanted& wanted) {
    std::uint32_t mask = 0;
    if (wanted.execs) mask |= proc_event::PROC_EVENT_EXEC;
    if (wanted.renames) mask |= proc_event::PROC_EVENT_COMM;
    if (wanted.process_forks || wanted.thread_forks) mask |= proc_event::PROC_EVENT_FORK;
    if (wanted.exits || wanted.thread_exits) mask |= static_cast<std::uint32_t>(proc_event::PROC_EVENT_EXIT);
    return mask;
}

} // namespace affinityd::host
