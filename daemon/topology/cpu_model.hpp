// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace affinityd::host {
class Root;
}

namespace affinityd::topology {

/// What the CPUs call themselves, by the first of them: "Intel(R) Xeon(R) Gold 6444Y"; of arm64, which has no
/// names, "arm implementer 0x41 part 0xd0c". "": the machine does not say. Source: /proc/cpuinfo,
/// arch/*/kernel/**/cpuinfo.c and proc.c.
[[nodiscard]] std::string read_cpu_model(const host::Root& root);

} // namespace affinityd::topology
