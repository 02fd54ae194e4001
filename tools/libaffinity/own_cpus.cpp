// SPDX-License-Identifier: Apache-2.0
#include "libaffinity/own_cpus.hpp"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace libaffinity {

namespace {

constexpr unsigned bits = 8 * sizeof(unsigned long);
constexpr unsigned most_cpus = 8192; // of the kernels with most (NR_CPUS, arch/x86/Kconfig)

bool has(const unsigned long* mask, unsigned cpu) {
    return cpu < most_cpus && ((mask[cpu / bits] >> (cpu % bits)) & 1) != 0;
}

} // namespace

void list_own_cpus(char* into, size_t size) {
    unsigned long mask[most_cpus / bits] = {};
    size_t used = 0;
    into[0] = '\0';
    // The call itself, since that of libc wants to know beforehand how large the mask is.
    if (::syscall(SYS_sched_getaffinity, 0, sizeof mask, mask) < 0) return;
    for (unsigned cpu = 0; cpu < most_cpus; ++cpu) {
        if (!has(mask, cpu)) continue;
        const unsigned first = cpu;
        while (has(mask, cpu + 1))
            ++cpu;
        char part[32];
        const int length = first == cpu
                               ? ::snprintf(part, sizeof part, "%s%u", used > 0 ? "," : "", cpu)
                               : ::snprintf(part, sizeof part, "%s%u-%u", used > 0 ? "," : "", first, cpu);
        if (length < 0) return;
        const auto more = static_cast<size_t>(length);
        if (used + more + sizeof "..." > size) {
            ::memcpy(into + used, "...", sizeof "...");
            return;
        }
        ::memcpy(into + used, part, more + 1);
        used += more;
    }
}

} // namespace libaffinity
