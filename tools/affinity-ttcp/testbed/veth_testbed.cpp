// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/testbed/link_setup.hpp"
#include "affinity-ttcp/testbed/napi_threads.hpp"
#include "affinity-ttcp/testbed/testbed.hpp"
#include "host/scheduler.hpp"

#include <cerrno>

#include <fmt/format.h>
#include <sys/stat.h>

namespace affinityd::ttcp {

namespace {

/// Prepares one end to receive by NAPI and brings it up.
Result<void> prepare(const NetworkSpace& space, const std::string& name, const std::string& address) {
    return space.within([&]() -> Result<void> {
        if (auto done = set_gro(name, true); !done) return done;
        if (auto done = set_tso(name, false); !done) return done;
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

} // namespace

Result<Testbed> make_veth_testbed(const host::Root& root, unsigned connections) {
    if (connections == 0 || connections > most_connections)
        return fail(fmt::format("expected 1 to {} connections", most_connections), {}, EINVAL);
    Testbed testbed;
    for (int i = 0; i < 2; ++i) {
        auto space = NetworkSpace::make(root);
        if (!space) return std::unexpected(space.error());
        testbed.spaces.push_back(std::move(*space));
    }
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

} // namespace affinityd::ttcp
