// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace affinityd::measure {

/// What the hypervisor says it is ("KVMKVMKVM", "TCGTCGTCGTCG"): CPUID leaf 0x40000000. "" without one, or
/// where no instruction tells (other architectures than x86).
[[nodiscard]] std::string hypervisor();

/// A sentence for people where the CPU is not one but a program that translates its instructions (QEMU's
/// TCG); else "".
[[nodiscard]] std::string_view emulation_note(std::string_view hypervisor);

} // namespace affinityd::measure
