// SPDX-License-Identifier: Apache-2.0
#include "measure/bed.hpp"

#include "host/scheduler.hpp"
#include "measure/link_setup.hpp"
#include "measure/napi_threads.hpp"

#include <cerrno>

#include <fmt/format.h>

namespace affinityd::measure {

namespace {

/// Both ends ready to receive by NAPI; the one in `space` then gets its thread.
Result<void> prepare(const NetworkSpace& space, const std::string& name, const std::string& address) {
    return space.within([&]() -> Result<void> {
        if (auto done = set_gro(name, true); !done) return done;
        if (auto done = set_tso(name, false); !done) return done;
        return bring_up(name, address, 24);
    });
}

Result<Path> make_path(const host::Root& root, Bed& bed, unsigned number) {
    Path path{fmt::format("afm{}", number),       0,  1, fmt::format("198.18.{}.1", number),
              fmt::format("198.18.{}.2", number), {}, {}};
    const std::string peer = fmt::format("afp{}", number);
    const auto& here = bed.spaces[path.here];
    const auto& there = bed.spaces[path.there];
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

Result<Bed> make_veth_bed(const host::Root& root, unsigned connections) {
    if (connections == 0 || connections > most_connections)
        return fail(fmt::format("expected 1 to {} connections", most_connections), {}, EINVAL);
    Bed bed;
    for (int i = 0; i < 2; ++i) {
        auto space = NetworkSpace::make(root);
        if (!space) return std::unexpected(space.error());
        bed.spaces.push_back(std::move(*space));
    }
    for (unsigned i = 0; i < connections; ++i) {
        auto path = make_path(root, bed, i);
        if (!path) return std::unexpected(path.error());
        bed.paths.push_back(std::move(*path));
    }
    bed.description = fmt::format(
        "{} veth pairs between two network namespaces of this experiment's own, threaded NAPI: no NIC and no "
        "hardware interrupt is involved; what is bound as interrupts are the pairs' NAPI threads",
        connections);
    return bed;
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

} // namespace affinityd::measure
