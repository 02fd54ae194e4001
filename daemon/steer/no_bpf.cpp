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
Opened Reads::take_events() { return {}; }
void Reads::follow(const std::set<int>& /*processes*/) const {}
int Reads::table(const std::string& /*name*/) const { return -1; }

Result<Lanes> Lanes::open(const host::Root&, int, std::uint64_t, const Reads&, Kept&) {
    return fail("this program is built without BPF");
}
std::size_t Lanes::mark(int /*process*/) { return 0; }
std::vector<Listener> Lanes::listeners(std::vector<int> /*processes*/) { return {}; }
std::map<std::uint64_t, int> Lanes::set(const std::vector<Service>& /*services*/) { return {}; }
bool Lanes::leave(const std::set<Address>& /*others*/, std::uint64_t /*listed*/) { return true; }
Handed Lanes::handed() const { return {}; }
void Lanes::end() {}

} // namespace affinityd::steer
