// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "locality/locality.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace affinityctl {

/// The remedy for the locality that was seen.
enum class Advice {
    watch_longer,  ///< too few reads to judge by
    one_cpu,       ///< nothing can be elsewhere
    not_known,     ///< of most reads the arrival is not known
    loopback,      ///< most packets come from this machine itself
    nothing,       ///< it is local
    more_queues,   ///< one CPU takes in what several workers read
    steer_accept,  ///< workers have own listeners, and other workers' packets
    reuseport,     ///< workers share one listener
    steer_flows,   ///< threads of one process share one listener
    bind_near,     ///< one process that reads elsewhere
    steer_clients, ///< they do not listen
    explain,       ///< a policy steers the listeners, or says why not
};

/// The facts that it depends on.
struct LocalityFacts {
    std::uint64_t reads = 0;      ///< of which the arrival is known; or samples
    std::uint64_t unknown = 0;    ///< of which it is not
    std::uint64_t loopback = 0;   ///< whose packets came over loopback
    double same_core = 0;         ///< 0..1
    std::size_t cpus = 0;         ///< online
    std::size_t arrival_cpus = 0; ///< that take in 5 % or more
    std::size_t workers = 0;      ///< processes that read 5 % or more
    std::size_t reader_cpus = 0;  ///< on which 5 % or more are read
    std::size_t listeners = 0;    ///< at one address and port; 0: none, or not known
    std::string steered_by{};     ///< the policy that would steer listeners of theirs; "": none
};

/// All but `cpus`, `listeners` and `steered_by`.
[[nodiscard]] LocalityFacts facts_of(const affinityd::locality::LocalityFigures& figures,
                                     const std::vector<affinityd::locality::ReadCount>& counts,
                                     const std::function<bool(int pid)>& is_meant);
[[nodiscard]] Advice advice_for(const LocalityFacts& facts);
/// For JSON: "steer_accept".
[[nodiscard]] std::string_view word_of(Advice advice);
/// One sentence for people.
[[nodiscard]] std::string sentence_of(Advice advice, const LocalityFacts& facts);

} // namespace affinityctl
