// SPDX-License-Identifier: Apache-2.0
#include "app/inherited_restorer.hpp"

#include "app/notices.hpp"

namespace affinityd::app {

namespace {

constexpr unsigned enough_empty_rounds = 2;
constexpr unsigned most_rounds = 16; // a task that was put back passes none of our masks on

} // namespace

bool InheritedRestorer::begin_round() {
    if (rounds_ > 0) empty_rounds_ = count_ == 0 ? empty_rounds_ + 1 : 0;
    if (empty_rounds_ == enough_empty_rounds || rounds_++ == most_rounds) return false;
    count_ = 0;
    auto pids = inventory::PidStream::open(parts_.root);
    if (!pids) {
        parts_.log.error("the processes could not be listed: " + pids.error().to_string());
        return false;
    }
    pids_ = std::move(*pids);
    return true;
}

void InheritedRestorer::begin_process(int pid) {
    auto scan = inventory::ProcessScan::open(parts_.root, pid);
    if (!scan || !*scan || (*scan)->is_kernel()) return;
    if (parts_.journal.contents().is_mask_source(pid, (*scan)->parent()) ||
        parts_.left.may_be_one(**scan, online_))
        scan_ = std::move(**scan);
}

void InheritedRestorer::put_back(const inventory::Thread& thread) {
    const int pid = scan_->id().tid;
    const machine::TaskMask task{thread.id, pid, thread.comm};
    const int creator = thread.id == scan_->id() ? scan_->parent() : pid;
    auto source = parts_.executor.inherited(task, thread.allowed, creator, online_);
    if (!source) source = parts_.left.explain(task, thread.allowed, online_);
    if (!source || source->is_kept || keeps_(source->policy)) return;
    const auto carried = parts_.executor.put_back_inherited(task, thread.allowed, *source);
    log_notices(parts_.log, carried.notices);
    if (enforcer::took_effect(carried.applied.outcome)) ++count_;
}

bool InheritedRestorer::finish_process(const OutOfTime& out_of_time) {
    if (!scan_->step(out_of_time)) return false;
    if (const auto threads = scan_->take_threads())
        for (const auto& thread : *threads)
            put_back(thread);
    scan_.reset();
    return true;
}

bool InheritedRestorer::step(const OutOfTime& out_of_time) {
    while (true) {
        if (!pids_ && !begin_round()) return true;
        if (scan_) {
            if (!finish_process(out_of_time)) return false;
        } else if (const auto pid = pids_->next().value_or(std::nullopt)) {
            begin_process(*pid);
        } else {
            pids_.reset();
        }
        if (out_of_time()) return false;
    }
}

} // namespace affinityd::app
