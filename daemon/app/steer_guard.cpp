// SPDX-License-Identifier: Apache-2.0
#include "app/steer_guard.hpp"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

namespace affinityd::app {

namespace {

constexpr std::chrono::minutes forgotten_after{2}; // while a server is reloaded there may be no targets
constexpr std::size_t most_remembered = 1024;      // addresses of one policy, besides those that are steered

std::uint16_t port_of(std::span<const planner::ListenerTarget> steered, const SteerGuard::Address& address) {
    const auto found = std::ranges::find(steered, address, &planner::ListenerTarget::bound_to);
    return found == steered.end() ? 0 : found->subject.port;
}

std::size_t sum_of(const planner::AcceptShares::Counts& counts) {
    std::size_t sum = 0;
    for (const auto& [listener, count] : counts)
        sum += count.value_or(0);
    return sum;
}

} // namespace

std::optional<SteerGuard::Unfair> SteerGuard::Watched::judge() const {
    using Of = Unfair::Of;
    if (const auto share = shares.unfair()) return Unfair{0, *share, Of::connections, {}};
    if (const auto share = unseen.are_most() ? work.unfair() : std::nullopt)
        return Unfair{0, *share, Of::cpu_time, {}};
    const auto share = waiting.one_sided();
    return share ? std::optional(Unfair{0, *share, Of::waiting, {}}) : std::nullopt;
}

std::vector<SteerGuard::Unfair> SteerGuard::see(const std::string& policy, planner::AcceptProcesses found,
                                                std::span<const planner::ListenerTarget> steered,
                                                Clock::time_point now) {
    auto& addresses = policies_[policy];
    const auto time = std::chrono::duration_cast<planner::AcceptShares::Time>(now.time_since_epoch());
    const auto counts = planner::count_accepted(found, steered);
    const auto work = planner::count_accepted(found, steered, &inventory::AcceptSocket::work);
    const auto waiting = planner::count_accepted(found, steered, &inventory::AcceptSocket::waiting);
    const bool are_many = addresses.size() > most_remembered;
    std::erase_if(addresses, [&](const auto& one) {
        const auto& [address, watched] = one;
        if (counts.contains(address)) return false;
        if (watched.until == Clock::time_point::min())
            return are_many || now - watched.seen > forgotten_after;
        return now - watched.until > longest_pause;
    });
    for (auto& [address, watched] : addresses)
        if (!counts.contains(address)) watched.unseen = {}; // what comes meanwhile is not counted
    std::vector<Unfair> unfair;
    for (const auto& [address, count] : counts) {
        auto& watched = addresses[address];
        watched.seen = now;
        if (now < watched.until) continue;
        watched.shares.see(time, count, planner::sample_at(found, address));
        watched.work.see(time, work.at(address));
        watched.waiting.see(time, waiting.at(address), count);
        if (const auto opened = planner::opened_around(found, address))
            watched.unseen.see(time, *opened, sum_of(count));
        auto judged = watched.judge();
        if (!judged) continue;
        // It went well for as long as the last pause, or longer: whatever was the matter then is over.
        const bool was_good =
            watched.until == Clock::time_point::min() || now - watched.until > watched.pause;
        watched.pause = was_good ? first_pause : std::min<Clock::duration>(2 * watched.pause, longest_pause);
        watched.until = now + watched.pause;
        watched.shares = watched.work = {};
        watched.waiting = {};
        judged->port = port_of(steered, address);
        judged->pause = watched.pause;
        unfair.push_back(*judged);
    }
    return unfair;
}

bool SteerGuard::is_withdrawn(std::string_view policy, const Address& address, Clock::time_point now) const {
    const auto found = policies_.find(policy);
    if (found == policies_.end()) return false;
    const auto watched = found->second.find(address);
    return watched != found->second.end() && now < watched->second.until;
}

SteerGuard::Clock::time_point SteerGuard::next_trial(Clock::time_point now) const {
    auto next = Clock::time_point::max();
    for (const auto& [policy, addresses] : policies_)
        for (const auto& [address, watched] : addresses)
            if (watched.until > now) next = std::min(next, watched.until);
    return next;
}

std::size_t SteerGuard::watched(std::string_view policy) const {
    const auto found = policies_.find(policy);
    return found == policies_.end() ? 0 : found->second.size();
}

void SteerGuard::keep_only(const std::function<bool(const std::string& policy)>& steers) {
    std::erase_if(policies_, [&](const auto& one) { return !steers(one.first); });
}

std::string to_string(const SteerGuard::Unfair& unfair) {
    const auto percent = 100 * unfair.share.busiest;
    if (unfair.of == SteerGuard::Unfair::Of::waiting)
        return "had connections waiting nearly all the time, while as many others had none,";
    return unfair.of == SteerGuard::Unfair::Of::cpu_time
               ? fmt::format("used {:.0f} % of their CPU time, most connections being too short to "
                             "be counted,",
                             percent)
               : fmt::format("got {:.0f} % of their connections", percent);
}

} // namespace affinityd::app
