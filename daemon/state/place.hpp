// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "machine/subject.hpp"

#include <string>

namespace affinityd::state {

/// Where the kernel keeps what a subject is set to. It outlasts names that are part of the subject's
/// identity: a device's interrupt keeps its mask under its number when a driver requests it again under the
/// interface's new name, also when another device gets a handler there and the number is the identity from
/// then on; and an interface keeps its queues under its index, whatever name it has and how many interfaces
/// its device has. "" where the place is not known. A place may be given to another subject later, with a
/// setting of its own: so what is there is compared with the record before this is believed.
[[nodiscard]] std::string place_of(const machine::Subject& subject);

/// The same by the interface's folder in sysfs, which outlasts a change of its index, too: in another
/// namespace, that may be taken. "" where it is not known, or not needed.
[[nodiscard]] std::string folder_of(const machine::Subject& subject);

/// True if the subject's identity is a name that another one may have by now, and its place is known.
[[nodiscard]] bool has_only_name(const machine::Subject& subject);

} // namespace affinityd::state
