// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "machine/subject.hpp"

#include <optional>
#include <string>
#include <utility>

namespace affinityd::host {
class Dir;
class Root;
} // namespace affinityd::host

namespace affinityd::machine {

// Where the settings of interrupts and queues are read and written. An identity is looked up again each time,
// because numbers and names are reused: IRQ numbers after a driver reload, interface names after a rename.
// In all functions below an Error means that nothing is known: a folder or file is there and cannot be read.

/// The interrupt's number now: the line with this ordinal among those lines of the device whose handler has
/// the label. Where the device lists no vectors of its own (platform devices), all lines of the machine with
/// the label count as the device's. While nothing handles a line of the device, it is the one that had this
/// number: some drivers free their handlers when the link goes down; and so it is if the handler's label has
/// only got another name of the interface since then. No value: the device or the line is gone.
[[nodiscard]] Result<std::optional<unsigned>> find_irq(const host::Root& root, const IrqMask& subject);

/// True if what the subject belongs to is still there, and so may have it again: a driver that is bound anew,
/// an interface that comes back from another namespace or a guest.
[[nodiscard]] bool has_device(const host::Root& root, const Subject& subject);

/// Path below /sys of the queue's file. The interface is found by its device, and by its index if that has
/// several; or, if it is virtual, by its index alone, under whatever name it has now. No value: the device
/// has no interface any more, or several, none of which has the name; or a virtual one of this name has
/// another index.
[[nodiscard]] Result<std::optional<std::string>> queue_file(const host::Root& root,
                                                            const SteeringMask& subject);
/// The same for a queue's rps_flow_cnt. The machine's table is below /proc, at machine_flow_entries.
[[nodiscard]] Result<std::optional<std::string>> queue_file(const host::Root& root, const FlowTable& subject);

/// Path below /proc of the machine's flow table.
inline constexpr const char* machine_flow_entries = "sys/net/core/rps_sock_flow_entries";

/// The folder, and the path below it, of a mask of the kernel.
[[nodiscard]] std::pair<const host::Dir&, const char*> kernel_file(const host::Root& root,
                                                                   const KernelMask& subject);

/// The present setting of the subject. No value: it is gone.
[[nodiscard]] Result<std::optional<Setting>> read_setting(const host::Root& root, const IrqMask& subject);
[[nodiscard]] Result<std::optional<Setting>> read_setting(const host::Root& root,
                                                          const SteeringMask& subject);
[[nodiscard]] Result<std::optional<Setting>> read_setting(const host::Root& root, const FlowTable& subject);
[[nodiscard]] Result<std::optional<Setting>> read_setting(const host::Root& root, const KernelMask& subject);

} // namespace affinityd::machine
