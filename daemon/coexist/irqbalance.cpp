// SPDX-License-Identifier: Apache-2.0
#include "coexist/irqbalance.hpp"

#include "host/file.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace affinityd::coexist {

namespace {

constexpr std::size_t most_names = 64; ///< in its folder

constexpr const char* by_hand =
    "start it with IRQBALANCE_ARGS=\"--banirq=N\" for each interrupt that is under policy";

} // namespace

/// Sockets of running instances, by name; the name holds the process id.
void Irqbalance::look_for_sockets() {
    std::vector<std::string> names;
    std::error_code code;
    if (host::check_ownership(folder_)) // else any user may have made them
        for (std::filesystem::directory_iterator entry(folder_, code), end;
             entry != end && names.size() < most_names; entry.increment(code))
            if (auto name = entry->path().filename().string(); is_irqbalance_socket(name))
                names.push_back(std::move(name));
    std::erase_if(instances_,
                  [&](const auto& entry) { return std::ranges::find(names, entry.first) == names.end(); });
    for (const auto& name : names)
        instances_.try_emplace(name);
}

void Irqbalance::keep_off(std::vector<unsigned> irqs, Clock::time_point now) {
    wanted_ = std::move(irqs);
    is_returning_ = false;
    look_for_sockets();
    talk(now);
}

void Irqbalance::give_back(Clock::time_point now) {
    wanted_.clear();
    is_returning_ = true;
    const auto has_its_own = [](const auto& entry) {
        return entry.second.is_known && entry.second.asked == entry.second.original;
    };
    if (std::erase_if(instances_, has_its_own) > 0)
        if (const auto done = write_record(); !done) faults_.push_back(done.error());
    talk(now);
}

/// A conversation with every instance. One under way is finished first: what it says may be outdated, so its
/// instance has its turn again.
void Irqbalance::talk(Clock::time_point now) {
    queue_.clear();
    for (const auto& [socket, instance] : instances_)
        queue_.push_back(socket);
    handle(now);
}

void Irqbalance::handle(Clock::time_point now) {
    while (call_ || start_next(now)) {
        const auto result = call_->call.step(now);
        if (!result) {
            wake_up_.set(call_->call.fd(), call_->call.deadline());
            return;
        }
        wake_up_.clear(); // before the connection is closed
        auto call = std::move(*call_);
        call_.reset();
        finish(call, *result);
    }
}

bool Irqbalance::start_next(Clock::time_point now) {
    while (!call_ && !queue_.empty()) {
        const std::string socket = queue_.front();
        const auto instance = instances_.find(socket);
        if (instance != instances_.end()) call_ = next_call(socket, instance->second, now);
        if (!call_) queue_.pop_front();
    }
    return call_.has_value();
}

/// What is to be said to an instance next. No value: nothing, or it cannot be said.
std::optional<Irqbalance::Call> Irqbalance::next_call(const std::string& socket, Instance& instance,
                                                      Clock::time_point now) {
    const std::string path = folder_ + "/" + socket;
    if (wake_up_.fd() < 0) {
        instance.fault = "no descriptors are left to talk to irqbalance";
        return std::nullopt;
    }
    if (!instance.is_known) {
        if (is_returning_ || (wanted_.empty() && !read_record().contains(socket))) return std::nullopt;
        return Call{socket, true, {}, IrqbalanceCall(path, std::string(setup_request), true, now)};
    }
    std::vector<unsigned> list;
    std::ranges::set_union(instance.original, wanted_, std::back_inserter(list));
    if (list == instance.asked) return std::nullopt;
    const auto request = ban_request(list);
    if (!request) {
        instance.fault = path + ": irqbalance takes no list of so many interrupts";
        return std::nullopt;
    }
    // What could not be undone is not done.
    if (const auto written = is_returning_ ? Result<void>{} : write_record(); !written) {
        instance.fault = written.error().to_string();
        return std::nullopt;
    }
    return Call{socket, false, std::move(list), IrqbalanceCall(path, *request, false, now)};
}

void Irqbalance::finish(Call& call, const Result<std::string>& result) {
    const auto instance = instances_.find(call.socket);
    if (instance == instances_.end()) return; // its socket has gone meanwhile
    auto& about = instance->second;
    about.fault = result ? "" : result.error().to_string();
    if (result && call.is_question) learn(call.socket, about, *result);
    if (result && !call.is_question) about.asked = std::move(call.list);
    const bool has_more = result && about.is_known;
    if (!has_more && !queue_.empty() && queue_.front() == call.socket) queue_.pop_front();
    if (!is_returning_) return;
    if (!result) faults_.push_back(result.error());
    if (about.asked == about.original) {
        instances_.erase(instance);
        if (const auto done = write_record(); !done) faults_.push_back(done.error());
    }
}

void Irqbalance::learn(const std::string& socket, Instance& instance, const std::string& answer) {
    if (!is_setup_answer(answer)) {
        instance.fault = folder_ + "/" + socket + ": irqbalance's answer cannot be read";
        return;
    }
    instance.asked = parse_irqbalance_setup(answer);
    // After an earlier daemon was killed, the bans in force are not irqbalance's own.
    const auto recorded = read_record();
    const auto before = recorded.find(socket);
    instance.original = before != recorded.end() ? before->second : instance.asked;
    instance.is_known = true;
}

std::string Irqbalance::note() const {
    if (is_returning_) return "it uses its own list again";
    if (instances_.empty()) return fmt::format("it has no socket: {}", by_hand);
    for (const auto& [socket, instance] : instances_)
        if (!instance.fault.empty()) return fmt::format("{}; {}", instance.fault, by_hand);
    if (wanted_.empty()) return "no interrupt is under policy";
    if (!keeps_off()) return "it is being asked to leave the interrupts under policy alone";
    return fmt::format("it runs, but leaves the {} interrupts under policy alone until affinityd ends",
                       wanted_.size());
}

bool Irqbalance::keeps_off() const {
    const auto is_well = [](const auto& one) { return one.second.fault.empty(); };
    return !is_returning_ && !call_ && !wanted_.empty() && !instances_.empty() &&
           std::ranges::all_of(instances_, is_well);
}

std::vector<Error> Irqbalance::take_faults() { return std::exchange(faults_, {}); }

Result<void> Irqbalance::write_record() const {
    BannedLists lists;
    for (const auto& [socket, instance] : instances_)
        if (instance.is_known) lists[socket] = instance.original;
    return host::replace_file(record_, print_record(lists));
}

BannedLists Irqbalance::read_record() const {
    const auto text = host::read_file(record_);
    return text && *text ? parse_record(**text) : BannedLists{};
}

} // namespace affinityd::coexist
