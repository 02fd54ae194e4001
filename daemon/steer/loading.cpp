// SPDX-License-Identifier: Apache-2.0
#include "steer/loading.hpp"

#include "inventory/process_files.hpp"

#include <cerrno>
#include <cstdarg>
#include <cstdint>

#include <bpf/libbpf.h>

namespace affinityd::steer {

namespace {

constexpr std::uint64_t initial_pid_space = 0xEFFFFFFC; // PROC_PID_INIT_INO, include/linux/proc_ns.h

/// libbpf explains a failure in warnings; nothing of them is for users.
int be_silent(libbpf_print_level /*level*/, const char* /*format*/, va_list /*arguments*/) { return 0; }

std::string why_refused(int code, const std::string& needs) {
    switch (code) {
    case EPERM:
    case EACCES:
        return "the kernel does not allow BPF here (it needs CAP_BPF and CAP_PERFMON, no lockdown, and "
               "in a container a seccomp filter that lets bpf(2) pass)";
    case ENOENT:
    case ESRCH:
        return "the kernel has no BTF, or not " + needs;
    case ENOSYS:
        return "the kernel is built without BPF";
    default:
        return "the kernel refuses the BPF program";
    }
}

} // namespace

Result<void> prepare_bpf(const host::Root& root) {
    if (const auto space = inventory::name_space(root, "self", "pid");
        space != 0 && space != initial_pid_space)
        return fail(
            "this is a PID namespace of its own (a container), and BPF tells the host's process numbers");
    libbpf_set_print(be_silent);
    return {};
}

Error refused_bpf(int code, const std::string& needs) { return Error{why_refused(code, needs), {}, code}; }

} // namespace affinityd::steer
