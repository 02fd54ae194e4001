// SPDX-License-Identifier: Apache-2.0
// Where this is built without BPF.
#include "steer/lanes.hpp"
#include "steer/reads.hpp"

namespace affinityd::steer {

struct Reads::Program {};
struct Lanes::Program {};

Reads::Reads(std::unique_ptr<Program> program) : program_(std::move(program)) {}
Reads::Reads(Reads&&) noexcept = default;
Reads& Reads::operator=(Reads&&) noexcept = default;
Reads::~Reads() = default;
Result<Reads> Reads::open(const host::Root& /*root*/, const Options& /*options*/) {
    return fail("this program is built without BPF");
}
bool Reads::has_other_protocols() const { return false; }
Result<std::map<int, std::string>> Reads::readers() const { return std::map<int, std::string>(); }
Result<void> Reads::take(locality::ReadCounts& /*seen*/) const { return {}; }
std::vector<Taker> Reads::takers() const { return {}; }
int Reads::event_fd() const { return -1; }
bool Reads::take_events() { return false; }
void Reads::set_port(std::uint64_t, std::uint16_t, PortState) const {}
void Reads::forget_port(std::uint64_t, std::uint16_t) const {}
int Reads::table(const std::string& /*name*/) const { return -1; }

Lanes::Lanes(std::unique_ptr<Program> program) : program_(std::move(program)) {}
Lanes::Lanes(Lanes&&) noexcept = default;
Lanes& Lanes::operator=(Lanes&&) noexcept = default;
Lanes::~Lanes() = default;
Result<Lanes> Lanes::open(const host::Root&, int, std::uint64_t, const Reads&, Kept&) {
    return fail("this program is built without BPF");
}
void Lanes::mark(int /*process*/) {}
std::vector<Listener> Lanes::listeners(std::vector<int> /*processes*/) { return {}; }
std::map<std::uint64_t, int> Lanes::set(const std::vector<Service>& /*services*/) { return {}; }
Handed Lanes::handed() const { return {}; }
void Lanes::end() {}

} // namespace affinityd::steer
