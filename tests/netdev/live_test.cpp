// SPDX-License-Identifier: Apache-2.0
// On this kernel, in a network namespace of the test's own.
#include "host/root.hpp"
#include "netdev/link_monitor.hpp"
#include "netdev/napi.hpp"
#include "netdev/reader.hpp"
#include "own_namespace.hpp"
#include "support/soon.hpp"

#include <algorithm>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>

namespace affinityd::netdev {
namespace {

/// Runs steps in turn until one has something to complain about.
std::string all_of(std::initializer_list<std::string> results) {
    for (const auto& result : results)
        if (!result.empty()) return result;
    return {};
}

/// Waits until an event of the interface arrives ("": of its address), for a second at most, and for those
/// that come together with it.
std::string expect_event(LinkMonitor& monitor, const char* what, std::string_view name) {
    for (int tries = 0; tries < 20; ++tries) {
        pollfd watched{monitor.fd(), POLLIN, 0};
        ::poll(&watched, 1, 50);
        const auto drained = monitor.drain();
        if (!drained) break;
        if (std::ranges::find(drained->events, name, &LinkEvent::name) != drained->events.end()) return {};
    }
    return std::string("no event: ") + what;
}

TEST(LiveLinks, EachChangeIsTold) {
    EXPECT_EQ(in_own_namespace([]() -> std::string {
                  auto monitor = LinkMonitor::open();
                  if (!monitor) return monitor.error().to_string();
                  const auto expect = [&](const char* what, const char* name) {
                      return expect_event(*monitor, what, name);
                  };
                  return all_of(
                      {add_veth("veth0", "veth1", 4), expect("made", "veth0"), set_up("veth0", true),
                       expect("up", "veth0"), add_address("veth0", "192.0.2.1"), expect("address", ""),
                       set_channels("veth0", 2, 2), expect("channels", "veth0"), set_up("veth0", false),
                       expect("down", "veth0"), rename_link("veth0", "other0"), expect("renamed", "other0"),
                       remove_link("other0"), expect("gone", "other0")});
              }),
              "");
}

TEST(LiveLinks, LostMessagesAreNoticed) {
    EXPECT_EQ(in_own_namespace([]() -> std::string {
                  auto monitor = LinkMonitor::open(2048); // the least the kernel gives
                  if (!monitor) return monitor.error().to_string();
                  auto fault = add_veth("veth0", "veth1", 1);
                  for (int round = 0; round < 50 && fault.empty(); ++round)
                      fault = set_up("veth0", round % 2 == 0);
                  if (!fault.empty()) return fault;
                  const auto drained = monitor->drain();
                  if (!drained) return drained.error().to_string();
                  if (!drained->lost) return "the loss was not noticed";
                  fault = set_up("veth0", true);
                  const auto after = expect_event(*monitor, "after the loss", "veth0");
                  return fault.empty() ? after : fault;
              }),
              "");
}

std::string check_veth(const host::Root& root) {
    Result<std::vector<Nic>> nics = read_nics(root);
    const Nic* nic = nullptr;
    // A moment after it is up the kernel gives it an address of its own, and another state.
    const bool agrees = affinityd::test::soon([&] {
        nics = read_nics(root);
        const auto alone = read_nic(root, "veth0");
        if (!nics || !alone) return false;
        const auto found = std::ranges::find(*nics, "veth0", &Nic::name);
        nic = found == nics->end() ? nullptr : &*found;
        return nic != nullptr && *alone == *nic;
    });
    if (!nics) return nics.error().to_string();
    if (nic == nullptr) return "no veth0";
    if (!agrees) return "alone it reads otherwise than among all";
    if (!nic->up || !nic->device.empty() || nic->node || !nic->threaded_napi)
        return "the interface is read wrongly";
    if (std::ranges::find(nic->addresses, "192.0.2.1") == nic->addresses.end())
        return "the address is missing";
    if (nic->queues.size() != 8) return "queues: " + std::to_string(nic->queues.size());
    if (nic->channels && (nic->channels->max_rx != 4U || nic->channels->max_combined))
        return "channels are read wrongly";
    if (!nic->channels) return "no channels";
    for (const auto& queue : nic->queues) {
        if (!queue.steering) return "no steering mask";
        if (queue.irq) return "a veth has no interrupt";
        if (queue.direction == Direction::rx && !queue.flow_count) return "no flow count";
    }
    // The family is there from Linux 6.8 on; then threads are told, and they are named as parse_napi_thread
    // expects.
    unsigned threads = 0;
    unsigned last = 0;
    for (const auto& queue : nic->queues) {
        if (!queue.napi_thread) continue;
        ++threads;
        const auto comm = root.proc().text(std::to_string(*queue.napi_thread) + "/comm");
        const auto name = comm ? parse_napi_thread(*comm) : std::nullopt;
        if (!name || name->interface != "veth0")
            return "thread " + std::to_string(*queue.napi_thread) + " is " + comm.value_or("gone");
        if (queue.napi_id && name->napi_id != queue.napi_id) return "the thread's name has another id";
        // Where the driver links nothing, they are in the order of their ids.
        if (!queue.napi_id && name->napi_id <= last) return "the threads are not in the order of the queues";
        last = name->napi_id;
    }
    const bool has_links =
        std::ranges::any_of(nic->queues, [](const Queue& queue) { return queue.napi_id.has_value(); });
    if ((has_links || threads > 0) && threads != 4) return "threads: " + std::to_string(threads);
    return {};
}

TEST(LiveNics, VethWithThreadedNapi) {
    EXPECT_EQ(in_own_namespace([]() -> std::string {
                  auto fault = all_of({add_veth("veth0", "veth1", 4), set_gro("veth0"), set_gro("veth1"),
                                       add_address("veth0", "192.0.2.1"), set_up("veth0", true),
                                       set_up("veth1", true)});
                  if (!fault.empty()) return fault;
                  const auto root = host::Root::open("/");
                  if (!root) return root.error().to_string();
                  if (const int code = root->sys().write("class/net/veth0/threaded", "1"); code != 0)
                      return "threaded: " + std::to_string(code);
                  return check_veth(*root);
              }),
              "");
}

/// While one address comes and goes all the time.
std::string read_beside_churn(const host::Root& root, std::size_t addresses) {
    const std::jthread churn([](const std::stop_token& stop) {
        for (unsigned i = 0; !stop.stop_requested(); ++i)
            static_cast<void>(add_address("veth1:0", i % 2 == 0 ? "192.0.2.1" : "192.0.2.2"));
    });
    for (int reading = 0; reading < 20; ++reading) {
        const auto nics = read_nics(root);
        if (!nics) return nics.error().to_string();
        const auto nic = std::ranges::find(*nics, "veth0", &Nic::name);
        if (nic == nics->end()) return "no veth0";
        if (nic->addresses.size() != addresses) return std::to_string(nic->addresses.size()) + " addresses";
    }
    return {};
}

/// The kernel lists some hundred at a time, and says so where they changed in between.
TEST(LiveNics, AddressesThatChangeAllTheTimeFailNoReading) {
    EXPECT_EQ(in_own_namespace([]() -> std::string {
                  constexpr unsigned addresses = 2000;
                  auto fault = add_veth("veth0", "veth1", 1);
                  for (unsigned i = 0; i < addresses && fault.empty(); ++i)
                      fault = add_address(fmt::format("veth0:{}", i),
                                          fmt::format("10.{}.{}.1", i / 250, i % 250));
                  if (!fault.empty()) return fault;
                  const auto root = host::Root::open("/");
                  return root ? read_beside_churn(*root, addresses) : root.error().to_string();
              }),
              "");
}

} // namespace
} // namespace affinityd::netdev
