// SPDX-License-Identifier: Apache-2.0
// Where affinityctl is built without BPF.
#include "affinityctl/locality/event_reads.hpp"

namespace affinityctl {

namespace locality = affinityd::locality;

using affinityd::Result;

struct EventReads::Program {};

EventReads::EventReads(std::unique_ptr<Program> program) : program_(std::move(program)) {}
EventReads::EventReads(EventReads&&) noexcept = default;
EventReads& EventReads::operator=(EventReads&&) noexcept = default;
EventReads::~EventReads() = default;

Result<EventReads> EventReads::open(const affinityd::host::Root& /*root*/, const DeviceFilter& /*filter*/,
                                    bool /*with_others*/) {
    return affinityd::fail("this affinityctl is built without BPF");
}

bool EventReads::has_other_protocols() const { return program_ == nullptr; }

Result<std::map<int, std::string>> EventReads::readers() const { return std::map<int, std::string>(); }

Result<void> EventReads::take(locality::ReadCounts& seen) const {
    seen.lost = 0;
    return {};
}

} // namespace affinityctl
