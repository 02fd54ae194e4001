// SPDX-License-Identifier: Apache-2.0
#include "coexist/other_writers.hpp"

#include "coexist/root_process.hpp"

#include <utility>

#include <fmt/format.h>

namespace affinityd::coexist {

namespace {

constexpr std::chrono::minutes files_every{10};
constexpr std::size_t most_told = 1024; ///< a note may hold any error's text

} // namespace

OtherWriters::OtherWriters(const host::Root& root, Places places)
    : root_(root), acts_(places.acts),
      irqbalance_(std::move(places.irqbalance_dir), std::move(places.runtime_dir) + "/irqbalance.banned"),
      files_(root) {}

/// Anybody may call a program so: only root's count.
bool OtherWriters::is_writer(int pid, std::string_view comm) const {
    if (!is_name(comm) || !is_roots_process(root_, pid)) return false;
    // tuned is a script: its program is the interpreter.
    const auto program = program_name(root_, pid);
    return comm != "irqbalance" || !program || *program == comm;
}

void OtherWriters::see(int pid, std::string_view comm) {
    if (is_writer(pid, comm)) seen_.insert_or_assign(std::string(comm), pid);
}

bool OtherWriters::is_unknown(int pid, std::string_view comm) const {
    const auto known = running_.find(comm);
    return (known == running_.end() || known->second != pid) && is_writer(pid, comm);
}

void OtherWriters::finish_pass(std::vector<unsigned> irqs, Clock::time_point now) {
    running_ = std::exchange(seen_, {});
    is_list_new_ = true;
    if (files_read_ == Clock::time_point{} || now - files_read_ > files_every) {
        files_.begin();
        files_read_ = now;
    }
    if (acts_ && running_.contains("irqbalance")) irqbalance_.keep_off(std::move(irqs), now);
}

bool OtherWriters::step(const std::function<bool()>& out_of_time) { return files_.step(out_of_time); }

void OtherWriters::stop(Clock::time_point now) {
    is_list_new_ = false;
    irqbalance_.give_back(now);
}

void OtherWriters::handle(Clock::time_point now) { irqbalance_.handle(now); }

std::vector<OtherWriter> OtherWriters::list() const {
    std::vector<OtherWriter> list;
    if (const auto found = running_.find("irqbalance"); found != running_.end())
        list.push_back({"irqbalance", fmt::format("pid {}", found->second),
                        acts_ ? irqbalance_.note() : "it moves interrupts every few seconds",
                        acts_ && irqbalance_.keeps_off()});
    if (const auto found = running_.find("tuned"); found != running_.end())
        list.push_back(
            {"tuned", fmt::format("pid {}", found->second),
             "profiles with isolated_cores or irq settings move interrupts when they are applied"});
    list.insert(list.end(), files_.found().begin(), files_.found().end());
    return list;
}

std::vector<Notice> OtherWriters::take_notices() {
    std::vector<Notice> notices;
    for (const auto& fault : irqbalance_.take_faults())
        notices.push_back({Notice::Kind::list_not_returned,
                           "irqbalance could not be given its own list back: " + fault.to_string()});
    if (!is_list_new_ || is_talking()) return notices; // the notes are about to change
    is_list_new_ = false;
    if (told_.size() > most_told) told_.clear();
    for (const auto& writer : list()) {
        auto text = fmt::format("other programs here: {} ({}): {}", writer.name, writer.where, writer.note);
        if (told_.insert(text).second) notices.push_back({Notice::Kind::other_writer, std::move(text)});
    }
    return notices;
}

} // namespace affinityd::coexist
