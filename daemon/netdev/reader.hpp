// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "netdev/nic.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace affinityd::host {
class Dir;
class Root;
} // namespace affinityd::host

namespace affinityd::netdev {

/// Reads every interface below /sys/class/net with device, node, MSI list, queues and lower devices, in
/// parts. Works on recordings. On the live root, netlink adds addresses and channels, and NAPI and queue
/// links where the kernel has them.
class NicReader {
  public:
    /// `root` must outlive it.
    explicit NicReader(const host::Root& root) : root_(&root) {}

    /// Reads on; asks `out_of_time` after the files of an interface, after those of each queue, and after
    /// each question to the kernel. True: take() has all. An Error if any list cannot be read: no NIC looks
    /// absent, or without queues, for want of a file descriptor.
    [[nodiscard]] Result<bool> step(const std::function<bool()>& out_of_time);
    /// Ascending by ifindex.
    [[nodiscard]] std::vector<Nic> take() { return std::move(nics_); }

  private:
    enum class Stage : std::uint8_t {
        list,
        files,
        queues,
        names,
        addresses,
        each_address, ///< where the list changes all the time, interface by interface
        napi,
        channels,
        done
    };
    [[nodiscard]] Result<void> go_on();
    [[nodiscard]] Result<void> begin_nic();
    void read_queue();

    const host::Root* root_;
    Stage stage_ = Stage::list;
    std::vector<std::string> names_;  ///< of the interfaces
    std::size_t next_ = 0;            ///< of them
    std::vector<std::string> queues_; ///< names of the queues of the last one in nics_
    std::size_t next_queue_ = 0;
    std::vector<Nic> nics_;
};

/// All of it at once.
[[nodiscard]] Result<std::vector<Nic>> read_nics(const host::Root& root);

/// The same of one interface: its own files, and netlink asked for it alone. No value: no interface has the
/// name (any more).
[[nodiscard]] Result<std::optional<Nic>> read_nic(const host::Root& root, const std::string& name);

/// The interface of a device, by its folder in sysfs, if that was moved into another network namespace: its
/// place and its interrupts are the machine's. No value: the device has gone, or has none, or one here.
[[nodiscard]] Result<std::optional<Nic>> read_moved(const host::Root& root, const std::string& folder);

/// Names of interfaces with a default route, by the tables net/ in a process's folder, "PID/", or this one's,
/// "".
[[nodiscard]] std::set<std::string, std::less<>> default_routes(const host::Dir& proc,
                                                                const std::string& process);

} // namespace affinityd::netdev
