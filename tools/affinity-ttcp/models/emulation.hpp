// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace affinityd::ttcp {

/// What the hypervisor says it is ("KVMKVMKVM", "TCGTCGTCGTCG"): CPUID leaf 0x40000000. "" without one, or
/// where no instruction reveals it (architectures other than x86).
[[nodiscard]] std::string hypervisor();

/// A warning for people where the CPU is emulated by translating its instructions (QEMU's TCG); else "".
[[nodiscard]] std::string_view emulation_note(std::string_view hypervisor);

} // namespace affinityd::ttcp
