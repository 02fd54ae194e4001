// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/root.hpp"

namespace affinityd::host {

/// True if this machine calls itself a container: process 1 has the variable `container`, as systemd's
/// container interface wants it (podman, LXC, systemd-nspawn), or something is mounted from docker's folder.
/// A container of another kind is taken for a machine.
[[nodiscard]] bool is_container(const Root& root);

} // namespace affinityd::host
