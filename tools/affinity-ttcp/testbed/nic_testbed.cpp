// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/testbed/testbed.hpp"
#include "base/clock.hpp"
#include "netdev/reader.hpp"

#include <algorithm>
#include <cerrno>
#include <set>

#include <fmt/format.h>
#include <unistd.h>

namespace affinityd::ttcp {

namespace {

constexpr double link_seconds = 30; ///< negotiation with the other end of the cable

Result<void> take_pair(const host::Root& root, Testbed& testbed, const std::vector<netdev::Nic>& nics,
                       const NicPair& pair) {
    const unsigned number = static_cast<unsigned>(testbed.paths.size() / 2);
    const std::string addresses[] = {fmt::format("198.18.{}.1", number), fmt::format("198.18.{}.2", number)};
    const std::string* const names[] = {&pair.first, &pair.second};
    for (std::size_t end = 0; end < 2; ++end) {
        const auto nic = std::ranges::find(nics, *names[end], &netdev::Nic::name);
        if (nic == nics.end()) return fail("there is no such interface", *names[end], ENODEV);
        auto borrowed = BorrowedNic::take(root, *nic, testbed.spaces[end]);
        if (!borrowed) return std::unexpected(borrowed.error());
        testbed.borrowed.push_back(std::move(*borrowed));
        if (auto done = testbed.borrowed.back().start(addresses[end]); !done) return done;
        testbed.paths.push_back({*names[end], end, 1 - end, addresses[end], addresses[1 - end], {}, {}});
    }
    return {};
}

/// Before any of them is touched.
Result<void> keep_pairs(const host::Root& root, Testbed& testbed, const std::vector<netdev::Nic>& nics,
                        const std::set<std::string>& names) {
    std::vector<netdev::Nic> kept;
    for (const auto& nic : nics)
        if (names.contains(nic.name)) kept.push_back(nic);
    auto keeper = NicKeeper::start(root, kept, testbed.spaces);
    if (!keeper) return std::unexpected(keeper.error());
    testbed.keeper.emplace(std::move(*keeper));
    return {};
}

Result<void> wait_for_links(const Testbed& testbed) {
    const double until = monotonic_seconds() + link_seconds;
    for (std::size_t i = 0; i < testbed.borrowed.size(); ++i)
        while (!testbed.borrowed[i].has_link()) {
            if (monotonic_seconds() > until)
                return fail("no carrier: is it cabled to " + testbed.paths[i ^ 1].nic + "?",
                            testbed.paths[i].nic, ENETDOWN);
            ::usleep(50'000);
        }
    return {};
}

} // namespace

Result<Testbed> make_nic_testbed(const host::Root& root, const std::vector<NicPair>& pairs) {
    if (pairs.empty() || 2 * pairs.size() > most_connections)
        return fail(fmt::format("expected 1 to {} pairs of NICs", most_connections / 2), {}, EINVAL);
    std::set<std::string> names;
    for (const auto& pair : pairs)
        for (const auto* name : {&pair.first, &pair.second})
            if (!names.insert(*name).second) return fail("named twice", *name, EINVAL);
    const auto nics = netdev::read_nics(root);
    if (!nics) return std::unexpected(nics.error());
    Testbed testbed;
    for (int i = 0; i < 2; ++i) {
        auto space = NetworkSpace::make(root);
        if (!space) return std::unexpected(space.error());
        testbed.spaces.push_back(std::move(*space));
    }
    if (auto kept = keep_pairs(root, testbed, *nics, names); !kept) return std::unexpected(kept.error());
    for (const auto& pair : pairs)
        if (auto taken = take_pair(root, testbed, *nics, pair); !taken) return std::unexpected(taken.error());
    if (auto linked = wait_for_links(testbed); !linked) return std::unexpected(linked.error());
    for (std::size_t i = 0; i < testbed.paths.size(); ++i) {
        auto& path = testbed.paths[i];
        path.threads = testbed.borrowed[i].threads();
        path.irqs = testbed.borrowed[i].take_interrupts();
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
