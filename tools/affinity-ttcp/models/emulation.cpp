// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/models/emulation.hpp"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

namespace affinityd::ttcp {

std::string hypervisor() {
#if defined(__x86_64__) || defined(__i386__)
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & 1U << 31) == 0)
        return {}; // bit 31: a hypervisor is present
    __cpuid(0x40000000, a, b, c, d);
    std::string name;
    for (const unsigned part : {b, c, d})
        for (unsigned shift = 0; shift < 32; shift += 8)
            if (const char letter = static_cast<char>(part >> shift & 0xff); letter > ' ' && letter <= '~')
                name += letter;
    return name;
#else
    return {};
#endif
}

std::string_view emulation_note(std::string_view hypervisor) {
    if (!hypervisor.starts_with("TCG")) return {};
    return "This CPU is emulated (QEMU TCG): throughput and cost mean nothing here; where interrupts came "
           "and processes ran does.";
}

} // namespace affinityd::ttcp
