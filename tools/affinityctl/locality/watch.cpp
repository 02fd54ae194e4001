// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/locality/watch.hpp"

#include "affinityctl/values/counted.hpp"
#include "inventory/lookup.hpp"
#include "inventory/name_space.hpp"

#include <algorithm>
#include <cstring>

namespace affinityctl {

namespace locality = affinityd::locality;

using affinityd::Result;
using Clock = std::chrono::steady_clock;
using Kind = LocalitySubject::Kind;
using std::chrono::milliseconds;

namespace {
constexpr milliseconds between_looks{250};
} // namespace

LocalityWatch::LocalityWatch(const affinityd::host::Root& root, const LocalitySubject& subject,
                             std::function<nlohmann::json()> ask)
    : root_(&root), subject_(subject), members_(root, subject, std::move(ask)) {}

Result<void> LocalityWatch::begin(bool with_others) {
    affinityd::steer::DeviceFilter filter;
    if (subject_.kind == Kind::nic)
        filter = {affinityd::inventory::name_space(*root_, "self", "net"), subject_.devices};
    auto events = affinityd::steer::Reads::open(*root_, {.filter = filter, .with_others = with_others});
    began_ = Clock::now();
    if (!events) return std::unexpected(std::move(events.error()));
    events_ = std::move(*events);
    return {};
}

bool LocalityWatch::has_ended() const {
    return subject_.kind == Kind::process && !affinityd::inventory::read_process_id(*root_, subject_.pid);
}

void LocalityWatch::run(milliseconds time, const std::function<bool(milliseconds)>& wait) {
    const auto end = began_ + time;
    for (auto now = Clock::now(); now < end; now = Clock::now()) {
        if (auto readers = events_->readers()) readers_ = std::move(*readers);
        members_.look(readers_, false);
        if (has_ended()) return;
        const auto left = std::chrono::ceil<milliseconds>(end - Clock::now());
        if (wait(std::clamp(between_looks, milliseconds(0), std::max(left, milliseconds(0))))) return;
    }
}

Result<locality::ReadCounts> LocalityWatch::take() {
    locality::ReadCounts seen{.has_other_protocols = events_->has_other_protocols()};
    if (const auto done = events_->take(seen); !done) return std::unexpected(done.error());
    seen.seconds = std::chrono::duration<double>(Clock::now() - began_).count();
    if (auto readers = events_->readers()) readers_ = std::move(*readers);
    events_.reset();
    for (const auto& count : seen.counts)
        readers_.try_emplace(count.pid, ""); // there may be more than the table of names has room for
    members_.look(readers_, true);
    for (const auto& [pid, name] : readers_)
        seen.names[pid] = members_.name(pid, name);
    for (const auto& count : seen.counts)
        if (!members_.is_known(count.pid)) seen.of_unknown += count.reads;
    if (subject_.kind != Kind::all) seen.in_softirq = 0; // whose it was is not known
    if (has_ended()) seen.notes.push_back("The process has ended meanwhile.");
    return seen;
}

} // namespace affinityctl
