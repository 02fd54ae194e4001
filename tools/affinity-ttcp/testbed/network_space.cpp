// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/testbed/network_space.hpp"

#include <cerrno>
#include <cstdlib>

#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <sys/syscall.h>

namespace affinityd::ttcp {

namespace {

Result<host::Fd> open_own(const host::Root& root) {
    return root.proc().open_file("thread-self/ns/net", O_RDONLY | O_CLOEXEC);
}

/// By fsopen(2) and fsmount(2): a mount that no tree shows.
Result<host::Dir> mount_sysfs() {
    const host::Fd context(static_cast<int>(::syscall(SYS_fsopen, "sysfs", FSOPEN_CLOEXEC)));
    if (!context) return fail("cannot open the namespace's sysfs", {}, errno);
    if (::syscall(SYS_fsconfig, context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0)
        return fail("cannot set up the namespace's sysfs", {}, errno);
    const host::Fd mount(
        static_cast<int>(::syscall(SYS_fsmount, context.get(), FSMOUNT_CLOEXEC,
                                   MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)));
    if (!mount) return fail("cannot mount the namespace's sysfs", {}, errno);
    return host::Dir::open(mount.get(), ".", false);
}

} // namespace

Result<NetworkSpace> NetworkSpace::make(const host::Root& root) {
    auto outside = open_own(root);
    if (!outside) return std::unexpected(outside.error());
    if (::unshare(CLONE_NEWNET) != 0)
        return fail("cannot make a network namespace (root is needed)", {}, errno);
    auto inside = open_own(root);
    auto sys = mount_sysfs();
    if (::setns(outside->get(), CLONE_NEWNET) != 0)
        ::abort(); // going on in the wrong network could change foreign interfaces
    if (!inside) return std::unexpected(inside.error());
    if (!sys) return std::unexpected(sys.error());
    return NetworkSpace(std::move(*inside), std::move(*outside), std::move(*sys));
}

Result<NetworkSpace> NetworkSpace::present(const host::Root& root) {
    auto here = open_own(root);
    auto outside = open_own(root);
    auto sys = root.sys().dir(".");
    if (!here) return std::unexpected(here.error());
    if (!outside) return std::unexpected(outside.error());
    if (!sys) return std::unexpected(sys.error());
    return NetworkSpace(std::move(*here), std::move(*outside), std::move(*sys));
}

Result<void> NetworkSpace::within(const std::function<Result<void>()>& work) const {
    if (::setns(space_.get(), CLONE_NEWNET) != 0)
        return fail("cannot enter the network namespace", {}, errno);
    auto done = work();
    if (::setns(outside_.get(), CLONE_NEWNET) != 0) ::abort();
    return done;
}

} // namespace affinityd::ttcp
