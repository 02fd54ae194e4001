// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/testbed/borrowed_nic.hpp"

#include "affinity-ttcp/testbed/link_setup.hpp"
#include "affinity-ttcp/testbed/napi_threads.hpp"
#include "host/root.hpp"

#include <cerrno>

#include <fmt/format.h>

namespace affinityd::ttcp {

namespace {

std::string affinity_file(unsigned irq) { return fmt::format("irq/{}/smp_affinity_list", irq); }

/// Why an interface must stay where it is; "" if it may move.
std::string why_in_use(const host::Root& root, const netdev::Nic& nic) {
    if (nic.name == "lo") return "the loopback interface cannot be borrowed";
    for (const auto& address : nic.addresses)
        if (!address.starts_with("fe80:")) return "it is in use: it has the address " + address;
    for (const auto& entry : root.sys().list("class/net/" + nic.name).value_or(std::vector<std::string>{}))
        if (entry == "master" || entry.starts_with("upper_"))
            return "it is in use: another device is stacked on it (" + entry + ")";
    return {};
}

} // namespace

Result<BorrowedNic> BorrowedNic::take(const host::Root& root, const netdev::Nic& nic,
                                      const NetworkSpace& space) {
    if (const auto why = why_in_use(root, nic); !why.empty()) return fail(why, nic.name, EBUSY);
    if (auto moved = move_link(nic.name, space.fd()); !moved) return std::unexpected(moved.error());
    State state;
    state.nic = nic;
    state.was_up = nic.up;
    return BorrowedNic(root, space, std::move(state));
}

BorrowedNic::~BorrowedNic() {
    if (root_ == nullptr) return;
    for (const auto& [irq, cpus] : state_.interrupts)
        static_cast<void>(
            root_->proc().write(affinity_file(irq), cpus)); // an interrupt that has gone needs no restoring
    const auto& name = state_.nic.name;
    static_cast<void>(bring_back(*space_, name, state_.switches));
    if (state_.was_up) static_cast<void>(put_up(name));
}

Result<void> BorrowedNic::start(const std::string& address) {
    const auto& name = state_.nic.name;
    return space_->within([&]() -> Result<void> {
        if (state_.nic.device.empty())
            if (auto done = use_threads(); !done) return done;
        return bring_up(name, address, 24);
    });
}

/// Inside the space. A veth has NAPI threads once it is up and receives by NAPI; other devices have them once
/// they are enabled.
Result<void> BorrowedNic::use_threads() {
    const auto& name = state_.nic.name;
    const auto gro = has_gro(name), tso = has_tso(name);
    if (!gro) return std::unexpected(gro.error());
    if (!tso) return std::unexpected(tso.error());
    if (!*gro) {
        if (auto done = set_gro(name, true); !done) return done;
        state_.switches.gro = false;
    }
    if (*tso) {
        if (auto done = set_tso(name, false); !done) return done;
        state_.switches.tso = true;
    }
    if (auto done = put_up(name); !done) return done;
    const auto before = space_->sys().text("class/net/" + name + "/threaded");
    auto threads = start_napi_threads(*root_, *space_, name);
    if (!threads) return std::unexpected(threads.error());
    state_.switches.threaded = before.value_or("0");
    state_.threads = std::move(*threads);
    return {};
}

bool BorrowedNic::has_link() const {
    return space_->sys().text("class/net/" + state_.nic.name + "/carrier") == "1";
}

std::vector<unsigned> BorrowedNic::take_interrupts() {
    state_.interrupts = movable_interrupts(*root_, state_.nic);
    std::vector<unsigned> taken;
    for (const auto& [irq, cpus] : state_.interrupts)
        taken.push_back(irq);
    return taken;
}

} // namespace affinityd::ttcp
