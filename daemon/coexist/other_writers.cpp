// SPDX-License-Identifier: Apache-2.0
#include "app/other_writers.hpp"

#include "base/text.hpp"
#include "host/file.hpp"

#include <algorithm>
#include <iterator>
#include <set>

#include <fmt/format.h>

namespace affinityd::app {

namespace {

constexpr std::chrono::minutes files_every{10};

std::vector<unsigned> irqs_of(const planner::Placements& placements) {
    std::set<unsigned> numbers;
    for (const auto& target : placements.queues)
        if (const auto* irq = std::get_if<planner::IrqMask>(&target.subject)) numbers.insert(irq->irq);
    return {numbers.begin(), numbers.end()};
}

} // namespace

void OtherWriters::see(const inventory::Head& head) {
    if (head.is_kernel()) return;
    if (head.comm == "irqbalance" || head.comm == "tuned") seen_.insert_or_assign(head.comm, head.id.tid);
}

Result<void> OtherWriters::ban(const std::string& socket, Banned& banned, const std::vector<unsigned>& irqs) {
    std::vector<unsigned> all;
    std::ranges::set_union(banned.original, irqs, std::back_inserter(all));
    if (all == banned.asked) return {};
    if (auto written = write_record(); !written) return written; // what could not be undone is not done
    if (auto done = irqbalance_.ban(socket, all); !done) return done;
    banned.asked = std::move(all);
    return {};
}

std::string OtherWriters::keep_off(const std::vector<unsigned>& irqs) {
    const auto sockets = irqbalance_.sockets();
    std::erase_if(
        banned_, [&](const auto& entry) { return std::ranges::find(sockets, entry.first) == sockets.end(); });
    if (sockets.empty())
        return "it has no socket here: start it with IRQBALANCE_ARGS=\"--banirq=N\" for each interrupt of "
               "ours";
    const auto recorded = read_record();
    std::string note;
    for (const auto& socket : sockets) {
        if (!banned_.contains(socket)) {
            if (irqs.empty() && !recorded.contains(socket)) continue;
            const auto now = irqbalance_.banned(socket);
            if (!now) {
                note = now.error().to_string();
                continue;
            }
            const auto before =
                recorded.find(socket); // an earlier daemon was killed: its bans are not irqbalance's own
            banned_[socket] = {before != recorded.end() ? before->second : *now, *now, {}};
        }
        auto& banned = banned_.at(socket);
        const auto done = ban(socket, banned, irqs);
        banned.fault = done ? "" : done.error().to_string();
        if (!done)
            note = banned.fault + "; start it with IRQBALANCE_ARGS=\"--banirq=N\" for each interrupt of ours";
        else if (note.empty() && !irqs.empty())
            note =
                fmt::format("{} interrupts of ours are banned through its socket until we end", irqs.size());
    }
    if (!note.empty()) return note;
    return "no interrupt is under policy";
}

void OtherWriters::finish_pass(const planner::Placements& placements,
                               std::chrono::steady_clock::time_point now) {
    if (files_read_ == std::chrono::steady_clock::time_point{} || now - files_read_ > files_every) {
        files_ = find_interrupt_settings(root_);
        files_read_ = now;
    }
    list_.clear();
    if (const auto found = seen_.find("irqbalance"); found != seen_.end())
        list_.push_back(
            {"irqbalance", fmt::format("pid {}", found->second),
             acts_ ? keep_off(irqs_of(placements)) : std::string("it moves interrupts every few seconds")});
    if (const auto found = seen_.find("tuned"); found != seen_.end())
        list_.push_back(
            {"tuned", fmt::format("pid {}", found->second),
             "profiles with isolated_cores or irq settings move interrupts when they are applied"});
    list_.insert(list_.end(), files_.begin(), files_.end());
    for (const auto& writer : list_)
        if (log_.count(
                fmt::format("also writing here: {} ({}): {}", writer.name, writer.where, writer.note)) == 0)
            log_.warn(fmt::format("also writing here: {} ({}): {}", writer.name, writer.where, writer.note));
}

void OtherWriters::stop() {
    if (banned_.empty()) return;
    for (auto& [socket, banned] : banned_) {
        if (banned.asked == banned.original) continue;
        if (const auto done = irqbalance_.ban(socket, banned.original); !done)
            log_.warn("irqbalance could not be given its own list back: " + done.error().to_string());
        else
            banned.asked = banned.original;
    }
    std::erase_if(banned_, [](const auto& entry) { return entry.second.asked == entry.second.original; });
    if (const auto done = write_record(); !done) log_.error(done.error().to_string());
}

Result<void> OtherWriters::write_record() const {
    std::string text;
    for (const auto& [socket, banned] : banned_) {
        text += socket;
        for (const unsigned irq : banned.original)
            text += fmt::format(" {}", irq);
        text += '\n';
    }
    return host::replace_file(record_, text);
}

std::map<std::string, std::vector<unsigned>> OtherWriters::read_record() const {
    std::map<std::string, std::vector<unsigned>> record;
    const auto text = host::read_file(record_);
    if (!text || !*text) return record;
    for (const auto line : split(**text, '\n')) {
        const auto words = split_words(line);
        if (words.empty()) continue;
        auto& irqs = record[std::string(words[0])];
        for (std::size_t i = 1; i < words.size(); ++i)
            if (const auto irq = parse_number<unsigned>(words[i])) irqs.push_back(*irq);
    }
    return record;
}

} // namespace affinityd::app
