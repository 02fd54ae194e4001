// SPDX-License-Identifier: Apache-2.0
#include "app/pass_stages.hpp"

#include "machine/reader.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

namespace affinityd::app {

namespace {

/// A reading that is under way, on top of the world that it began with.
struct Reading {
    std::shared_ptr<World> world;
    machine::MachineReader reader;
};

void complain(Log& log, const Error& error) {
    log.error("the machine could not be read again, going on with what is known: " + error.to_string(),
              "machine not read");
}

} // namespace

Sequence::Stage reread_machine(const host::Root& root, Current& current, bool& wanted, Log& log) {
    return [&root, &current, &wanted, &log,
            reading = std::shared_ptr<Reading>()](const OutOfTime& out_of_time) mutable {
        if (!reading && !std::exchange(wanted, false)) return true;
        if (!reading) {
            reading = std::make_shared<Reading>(
                Reading{current.world, machine::MachineReader(root, &current->machine())});
            current.reread.clear();
        }
        auto done = reading->reader.step(out_of_time);
        for (; done && !*done; done = reading->reader.step(out_of_time))
            if (out_of_time()) return false;
        if (!done) {
            complain(log, done.error());
            wanted = true;                            // the next pass tries again
        } else if (reading->world == current.world) { // else a reload read the machine by itself
            auto machine = reading->reader.take();
            machine::keep_younger(current->machine(), current.reread, machine);
            current->update(std::move(machine));
        }
        return true;
    };
}

Sequence::Stage reread_nic(const host::Root& root, Current& current, const std::string& nic, Log& log) {
    return [&root, &current, &log, nic,
            reader = std::shared_ptr<machine::InterfaceReader>()](const OutOfTime& out_of_time) mutable {
        if (!reader) reader = std::make_shared<machine::InterfaceReader>(root, nic, current->machine());
        const auto done = reader->step(out_of_time);
        if (done && !*done) return false;
        if (!done) {
            complain(log, done.error());
            return true;
        }
        machine::Machine machine = current->machine();
        reader->put_into(machine);
        current->update(std::move(machine));
        current.reread.insert(nic);
        return true;
    };
}

Sequence::Stage await_listeners(inventory::FactSources& sources) {
    return [&sources, until = std::optional<std::chrono::steady_clock::time_point>()](
               const OutOfTime& out_of_time) mutable {
        constexpr std::chrono::milliseconds longest{300};
        constexpr std::chrono::microseconds patience{100};
        auto* list = sources.listeners();
        if (!until) until = std::chrono::steady_clock::now() + longest;
        while (list != nullptr && list->is_awaited(patience) && std::chrono::steady_clock::now() < *until)
            if (out_of_time()) return false;
        return true;
    };
}

Sequence::Stage learn_latencies(LatencySource& source, const Current& current, const std::string& state_dir) {
    return [&source, &current, &state_dir, is_begun = false](const OutOfTime& out_of_time) mutable {
        if (!std::exchange(is_begun, true)) source.begin(*current.world, state_dir);
        return source.step(*current.world, out_of_time);
    };
}

Sequence::Stage look_after_journal(state::Journal& journal, Log& log) {
    return [&journal, &log](const OutOfTime& out_of_time) {
        const auto known = journal.faults();
        const bool is_done = journal.look_after_file(out_of_time);
        for (const auto& fault : journal.faults())
            if (std::ranges::find(known, fault.message, &Error::message) == known.end())
                log.error("the undo journal: " + fault.to_string());
        return is_done;
    };
}

Sequence::Stage learn_nic_usage(Bookkeeping& bookkeeping, const Steering& steering,
                                std::function<void()> changed) {
    return [&bookkeeping, &steering, changed = std::move(changed),
            is_begun = false](const OutOfTime& out_of_time) mutable {
        if (!std::exchange(is_begun, true))
            bookkeeping.begin_usage(
                [&](const KnownProcess& process) { return steering.takes_none(process); });
        bool has_changed = false;
        if (!bookkeeping.step_usage(out_of_time, has_changed)) return false;
        if (has_changed) changed();
        return true;
    };
}

} // namespace affinityd::app
