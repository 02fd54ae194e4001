// SPDX-License-Identifier: Apache-2.0
#include "host/task_handle.hpp"

#include <cerrno>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace affinityd::host {

TaskHandle TaskHandle::open(int tid) {
    constexpr unsigned of_thread = O_EXCL; // PIDFD_THREAD, which older headers lack
    auto fd = ::syscall(SYS_pidfd_open, tid, of_thread);
    if (fd < 0 && errno == EINVAL) fd = ::syscall(SYS_pidfd_open, tid, 0U); // as far as it is a main thread
    return TaskHandle(Fd(static_cast<int>(fd)));
}

TaskHandle::State TaskHandle::state() const {
    if (!fd_) return State::unknown;
    if (::syscall(SYS_pidfd_send_signal, fd_.get(), 0, nullptr, 0U) == 0 || errno == EPERM)
        return State::there;
    return errno == ESRCH ? State::gone : State::unknown;
}

} // namespace affinityd::host
