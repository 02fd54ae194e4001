// SPDX-License-Identifier: Apache-2.0
#include "experiments/smt/launch.hpp"

#include "experiments/frame/pinned_thread.hpp"
#include "experiments/frame/supervision.hpp"
#include "host/scheduler.hpp"
#include "topology/parts.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include <sched.h>

namespace affinityd::experiments {

namespace {

constexpr std::size_t most_launched = 4; // as in the document
constexpr unsigned looks = 10;
constexpr auto look_pause = std::chrono::milliseconds(20); // the document's is 900

void look_around(std::vector<unsigned>& seen, const Run& run) {
    for (unsigned i = 0; i < looks && !run.is_stopped(); ++i) {
        seen.push_back(static_cast<unsigned>(::sched_getcpu()));
        std::this_thread::sleep_for(look_pause);
    }
}

void live(LaunchedThread& thread, int& refused, const Run& run) {
    look_around(thread.before, run);
    refused = host::set_affinity(0, CpuSet{thread.pinned_to});
    if (refused == 0) look_around(thread.after, run);
}

/// "32 KiB" and how many there are.
std::string size_words(std::uint64_t bytes, std::size_t instances) {
    const bool is_mib = bytes >= 1U << 20U && bytes % (1U << 20U) == 0;
    return std::to_string(is_mib ? bytes >> 20U : bytes >> 10U) + (is_mib ? " MiB" : " KiB") + ", " +
           std::to_string(instances) + (instances == 1 ? " instance" : " instances");
}

/// "2", or where cores differ "1 to 2".
std::string count_words(std::vector<std::size_t> counts) {
    if (counts.empty()) return "1";
    const auto [least, most] = std::ranges::minmax(counts);
    return least == most ? std::to_string(least) : std::to_string(least) + " to " + std::to_string(most);
}

void add_caches(const topology::Topology& topology, std::vector<std::pair<std::string, std::string>>& rows) {
    for (std::size_t i = 0; i < topology.caches.size(); ++i) {
        const auto& cache = topology.caches[i];
        const auto name = topology::cache_name(cache);
        if (cache.size_bytes == 0 || (!rows.empty() && rows.back().first == name + " cache")) continue;
        const auto same = std::ranges::count_if(topology.caches, [&](const topology::Cache& other) {
            return other.level == cache.level && other.type == cache.type;
        });
        rows.emplace_back(name + " cache", size_words(cache.size_bytes, static_cast<std::size_t>(same)));
    }
}

} // namespace

Result<std::vector<LaunchedThread>> launch_threads(const CpuSet& cpus, const Run& run) {
    const auto numbers = cpus.to_vector();
    std::vector<LaunchedThread> launched(std::min(most_launched, numbers.size()));
    std::vector<int> refusals(launched.size(), 0);
    {
        std::vector<PinnedThread> threads; // to all CPUs at first
        for (std::size_t i = 0; i < launched.size(); ++i) {
            launched[i].pinned_to = numbers[i];
            auto thread = PinnedThread::start(cpus, [&, i] { live(launched[i], refusals[i], run); });
            if (!thread) return std::unexpected(thread.error());
            threads.push_back(std::move(*thread));
        }
    }
    for (std::size_t i = 0; i < launched.size(); ++i)
        if (refusals[i] != 0)
            return fail("a thread of this program may not run there",
                        "CPU " + std::to_string(launched[i].pinned_to), refusals[i]);
    return launched;
}

std::vector<std::pair<std::string, std::string>> topology_rows(const topology::Topology& topology) {
    std::vector<std::size_t> threads, cores;
    for (const auto& core : topology.cores)
        threads.push_back(core.count());
    for (const auto& package : topology.packages)
        cores.push_back(static_cast<std::size_t>(std::ranges::count_if(
            topology.cores, [&](const CpuSet& core) { return package.intersects(core); })));
    std::vector<std::pair<std::string, std::string>> rows{
        {"CPUs", std::to_string(topology.online.count())},
        {"On-line CPU list", topology.online.to_list()},
        {"Threads per core", count_words(threads)},
        {"Cores per socket", count_words(cores)},
        {"Sockets", std::to_string(std::max<std::size_t>(1, topology.packages.size()))},
        {"NUMA nodes", std::to_string(std::max<std::size_t>(1, topology.nodes.size()))}};
    add_caches(topology, rows);
    for (const auto& node : topology.nodes)
        rows.emplace_back("NUMA node" + std::to_string(node.id) + " CPUs", node.cpus.to_list());
    if (!topology.online.empty()) {
        const auto first = topology.online.first();
        rows.emplace_back("Hardware threads of CPU " + std::to_string(first) + "'s core",
                          topology.core_of(first).to_list());
    }
    return rows;
}

} // namespace affinityd::experiments
