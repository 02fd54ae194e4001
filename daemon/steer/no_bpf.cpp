// SPDX-License-Identifier: Apache-2.0
// Where this is built without BPF.
#include "steer/lanes.hpp"
#include "steer/reads.hpp"

namespace affinityd::steer {

Result<Reads> Reads::open(const host::Root& /*root*/, const Options& /*options*/) {
    return fail("this program is built without BPF");
}
bool Reads::has_other_protocols() const { return false; }
Result<std::map<int, std::string>> Reads::readers() const { return std::map<int, std::string>(); }
Result<void> Reads::take(locality::ReadCounts& /*seen*/) const { return {}; }
std::vector<Taker> Reads::takers() const { return {}; }
int Reads::event_fd() const { return -1; }
Reads::Opened Reads::take_events() { return {}; }
void Reads::mark_listeners_of(const std::set<int>& /*processes*/) const {}
void Reads::note_readers(bool /*wanted*/) {}
bpf_program* Reads::walk(bool /*marks_datagrams*/) const { return nullptr; }
int Reads::table(const std::string& /*name*/) const { return -1; }

Result<Lanes> Lanes::open(const host::Root&, int, std::uint64_t, const Reads&, Kept&) {
    return fail("this program is built without BPF");
}
bool Lanes::is_adopted() const { return false; }
bool Lanes::is_attached() const { return false; }
void Lanes::drop(std::uint64_t, const Reads&, Kept&) {}
Result<Listeners> Lanes::mark(const Reads&, int, std::uint64_t, bool) { return Listeners(); }
Result<Listeners> Lanes::put_listeners(const std::vector<int>&) { return Listeners(); }
Result<Listeners> Lanes::set(const std::vector<Service>& /*services*/,
                             const std::vector<int>& /*processes*/) {
    return Listeners{};
}
bool Lanes::leave(const std::set<Address>& /*others*/, std::uint64_t /*listed*/) { return true; }
Handed Lanes::handed(Protocol /*protocol*/) const { return {}; }
void Lanes::end() {}

} // namespace affinityd::steer
