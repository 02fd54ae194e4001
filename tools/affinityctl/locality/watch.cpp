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
constexpr std::size_t most_sockets =
    200;                           // of one process in one look, in the mean; the next ones the next time
constexpr int rest_after_look = 9; // times as long as the look took: at most a tenth of a CPU
} // namespace

LocalityWatch::LocalityWatch(const affinityd::host::Root& root, const LocalitySubject& subject,
                             std::function<nlohmann::json()> ask)
    : root_(&root), subject_(subject), members_(root, subject, std::move(ask)), samples_(root) {}

void LocalityWatch::begin(const std::string& why_not, bool with_others) {
    why_sampled_ = why_not;
    began_ = Clock::now();
    if (!why_not.empty()) return;
    DeviceFilter filter;
    if (subject_.kind == Kind::nic)
        filter = {affinityd::inventory::name_space(*root_, "self", "net"), subject_.devices};
    auto events = EventReads::open(*root_, filter, with_others);
    began_ = Clock::now();
    if (events)
        events_ = std::move(*events);
    else
        why_sampled_ = events.error().to_string();
}

void LocalityWatch::look(Clock::time_point end) {
    if (!events_) {
        const auto pids = members_.present();
        samples_.look(pids, most_sockets * pids.size(), [&] { return Clock::now() < end; });
        return;
    }
    if (auto readers = events_->readers()) readers_ = std::move(*readers);
    members_.look(readers_, false);
}

bool LocalityWatch::has_ended() const {
    return subject_.kind == Kind::process && !affinityd::inventory::read_process_id(*root_, subject_.pid);
}

void LocalityWatch::run(milliseconds time, const std::function<bool(milliseconds)>& wait) {
    const auto end = began_ + time;
    for (auto now = Clock::now(); now < end; now = Clock::now()) {
        look(end);
        if (has_ended()) return;
        const auto took = std::chrono::duration_cast<milliseconds>(Clock::now() - now);
        const auto left = std::chrono::ceil<milliseconds>(end - Clock::now());
        if (wait(std::clamp(std::max(between_looks, took * rest_after_look), milliseconds(0),
                            std::max(left, milliseconds(0)))))
            return;
    }
}

void LocalityWatch::take_samples(locality::ReadCounts& into) {
    samples_.take(into);
    if (const int refused = samples_.take_refused(); refused != 0)
        into.notes.push_back(std::string("Some sockets could not be looked at: ") + std::strerror(refused) +
                             ".");
    if (samples_.unplaced() > 0)
        into.notes.push_back("Of " + counted(samples_.unplaced(), "sample") +
                             " it is not known which thread reads the socket; these are left out.");
}

Result<locality::ReadCounts> LocalityWatch::take() {
    locality::ReadCounts seen{.is_exact = events_.has_value(),
                              .has_other_protocols = events_ && events_->has_other_protocols()};
    if (!events_) {
        take_samples(seen);
        seen.seconds = std::chrono::duration<double>(Clock::now() - began_).count();
        return seen;
    }
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
