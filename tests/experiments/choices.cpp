// SPDX-License-Identifier: Apache-2.0
// usage: experiments-choices ROOT...: which CPUs the experiments would choose on recorded machines, of all
// that are online: one JSON object for each, one per line.
#include "experiments/cache.hpp"
#include "experiments/sharing.hpp"
#include "experiments/smt.hpp"
#include "host/root.hpp"
#include "topology/reader.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace {

using namespace affinityd;
using nlohmann::json;

json pair_json(const std::optional<experiments::CpuPair>& pair) {
    return pair ? json{pair->a, pair->b} : json();
}

json choices_on(const topology::Topology& topology) {
    json document{{"online", topology.online.to_vector()}};
    const auto placings = experiments::placed_threads(topology, topology.online);
    document["sharing"] = placings ? json::object() : json();
    if (placings)
        for (const auto& placed : *placings)
            for (const auto& cpus : placed.cpus)
                document["sharing"][std::string(key_of(placed.placing))].push_back(cpus.to_vector());
    if (const auto seats = experiments::smt_seats(topology, topology.online))
        document["smt"] = {{"alone", seats->alone},
                           {"siblings", pair_json(seats->siblings)},
                           {"cores", pair_json(seats->cores)},
                           {"why_not", {seats->no_siblings, seats->no_cores}}};
    const auto cache = experiments::cache_seats(topology, topology.online);
    if (!cache) return document;
    auto& found =
        document["cache"] = {{"refused", cache->refused}, {"footprints", footprints_for(cache->sizes)}};
    for (const auto place : experiments::places)
        found[std::string(key_of(place))] = cache->of(place) ? json(*cache->of(place)) : json();
    return document;
}

} // namespace

int main(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
        const auto root = host::Root::open(argv[i]);
        const auto topology = root ? topology::read_topology(*root) : std::unexpected(root.error());
        if (!topology) return 1;
        std::puts(choices_on(*topology).dump().c_str());
    }
}
