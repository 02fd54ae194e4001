// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/testbed/testbed.hpp"

#include "affinity-ttcp/testbed/network_space.hpp"
#include "base/clock.hpp"
#include "host/scheduler.hpp"
#include "netdev/reader.hpp"

#include <algorithm>
#include <cerrno>
#include <span>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace affinityd::ttcp {

namespace {

Result<void> make_spaces(const host::Root& root, Testbed& testbed) {
    for (int i = 0; i < 2; ++i) {
        auto space = NetworkSpace::make(root);
        if (!space) return std::unexpected(space.error());
        testbed.spaces.push_back(std::move(*space));
    }
    return {};
}

/// Prepares one end to receive by NAPI and brings it up.
Result<void> prepare(const NetworkSpace& space, const std::string& name, const std::string& address) {
    return space.within([&]() -> Result<void> {
        if (auto done = receive_by_napi(name); !done) return done;
        return bring_up(name, address, 24);
    });
}

/// The last three hexadecimal digits of the namespace's inode number. NAPI threads are found by name, so
/// experiments that begin at the same moment should differ in it. With it, names of interfaces have at most
/// eight characters: older kernels cut the name of a thread after fifteen.
std::string mark_of(const NetworkSpace& space) {
    struct stat status {};
    ::fstat(space.fd(), &status);
    return fmt::format("{:03x}", status.st_ino & 0xfff);
}

Result<Path> make_path(const host::Root& root, Testbed& testbed, unsigned number) {
    const auto name = mark_of(testbed.spaces[0]) + std::to_string(number);
    Path path{"afm" + name, 0, 1, fmt::format("198.18.{}.1", number), fmt::format("198.18.{}.2", number),
              {},           {}};
    const std::string peer = "afp" + name;
    const auto& here = testbed.spaces[path.here];
    const auto& there = testbed.spaces[path.there];
    if (auto made = here.within([&] { return make_veth(path.nic, peer, there.fd()); }); !made)
        return std::unexpected(made.error());
    if (auto done = prepare(here, path.nic, path.here_address); !done) return std::unexpected(done.error());
    if (auto done = prepare(there, peer, path.there_address); !done) return std::unexpected(done.error());
    auto threads = start_napi_threads(root, here, path.nic);
    if (!threads) return std::unexpected(threads.error());
    path.threads = std::move(*threads);
    if (auto others = start_napi_threads(root, there, peer); !others) return std::unexpected(others.error());
    return path;
}

constexpr double link_seconds = 30; ///< negotiation with the other end of the cable

/// Both ends of the cable, each in its own space. `ends` are the NICs of the pair.
Result<void> take_pair(const host::Root& root, Testbed& testbed, std::span<const netdev::Nic> ends) {
    const unsigned number = static_cast<unsigned>(testbed.paths.size() / 2);
    const std::string addresses[] = {fmt::format("198.18.{}.1", number), fmt::format("198.18.{}.2", number)};
    for (std::size_t end = 0; end < 2; ++end) {
        auto threads = borrow(root, ends[end], testbed.spaces[end], addresses[end]);
        if (!threads) return std::unexpected(threads.error());
        testbed.paths.push_back(
            {ends[end].name, end, 1 - end, addresses[end], addresses[1 - end], std::move(*threads), {}});
    }
    return {};
}

Result<void> wait_for_links(const Testbed& testbed) {
    const double until = monotonic_seconds() + link_seconds;
    for (std::size_t i = 0; i < testbed.paths.size(); ++i) {
        const auto& path = testbed.paths[i];
        while (testbed.spaces[path.here].sys().text("class/net/" + path.nic + "/carrier") != "1") {
            if (monotonic_seconds() > until)
                return fail("no carrier: is it cabled to " + testbed.paths[i ^ 1].nic + "?", path.nic,
                            ENETDOWN);
            ::usleep(50'000);
        }
    }
    return {};
}

} // namespace

Result<Testbed> make_veth_testbed(const host::Root& root, unsigned connections) {
    if (connections == 0 || connections > most_connections)
        return fail(fmt::format("expected 1 to {} connections", most_connections), {}, EINVAL);
    Testbed testbed;
    if (auto made = make_spaces(root, testbed); !made) return std::unexpected(made.error());
    for (unsigned i = 0; i < connections; ++i) {
        auto path = make_path(root, testbed, i);
        if (!path) return std::unexpected(path.error());
        testbed.paths.push_back(std::move(*path));
    }
    testbed.description = fmt::format(
        "{} veth pairs between two network namespaces made for this experiment, threaded NAPI: no NIC and no "
        "hardware interrupt is involved; what is bound as interrupts are the pairs' NAPI threads",
        connections);
    return testbed;
}

Result<void> place_interrupts(const host::Root& root, const Path& path, const CpuSet& cpus) {
    for (const int tid : path.threads)
        if (const int code = host::set_affinity(tid, cpus); code != 0)
            return fail("cannot move its NAPI thread", path.nic, code);
    for (const unsigned irq : path.irqs)
        if (const int code = root.proc().write(fmt::format("irq/{}/smp_affinity_list", irq), cpus.to_list());
            code != 0)
            return fail(fmt::format("cannot move its interrupt {}", irq), path.nic, code);
    return {};
}

Result<Testbed> make_nic_testbed(const host::Root& root, const std::vector<NicPair>& pairs) {
    if (pairs.empty() || 2 * pairs.size() > most_connections)
        return fail(fmt::format("expected 1 to {} pairs of NICs", most_connections / 2), {}, EINVAL);
    const auto present = netdev::read_nics(root);
    if (!present) return std::unexpected(present.error());
    std::vector<netdev::Nic> nics; // pair by pair
    for (const auto& pair : pairs)
        for (const auto& name : {pair.first, pair.second}) {
            const auto nic = std::ranges::find(*present, name, &netdev::Nic::name);
            if (std::ranges::find(nics, name, &netdev::Nic::name) != nics.end())
                return fail("named twice", name, EINVAL);
            if (nic == present->end()) return fail("there is no such interface", name, ENODEV);
            if (const auto why = why_in_use(root, *nic); !why.empty()) return fail(why, name, EBUSY);
            nics.push_back(*nic);
        }
    Testbed testbed;
    if (auto made = make_spaces(root, testbed); !made) return std::unexpected(made.error());
    auto keeper = NicKeeper::start(root, nics, testbed.spaces); // before any of them is touched
    if (!keeper) return std::unexpected(keeper.error());
    testbed.keeper.emplace(std::move(*keeper));
    for (std::size_t i = 0; i < nics.size(); i += 2)
        if (auto taken = take_pair(root, testbed, std::span(nics).subspan(i, 2)); !taken)
            return std::unexpected(taken.error());
    if (auto linked = wait_for_links(testbed); !linked) return std::unexpected(linked.error());
    for (std::size_t i = 0; i < testbed.paths.size(); ++i) {
        auto& path = testbed.paths[i];
        for (const auto& [irq, cpus] : movable_interrupts(root, nics[i]))
            path.irqs.push_back(irq);
        if (path.threads.empty() && path.irqs.empty())
            return fail("it has no interrupt that may be moved", path.nic, ENOTSUP);
    }
    testbed.description =
        fmt::format("{} NICs, joined two by two, for this time in two network namespaces of "
                    "this experiment's own; each takes "
                    "the packets of one connection, and is the far end of its partner's",
                    testbed.paths.size());
    return testbed;
}

} // namespace affinityd::ttcp
