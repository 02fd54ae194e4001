// SPDX-License-Identifier: Apache-2.0
#include "behaviours/neighbours/other_writers.hpp"

#include "base/text.hpp"
#include "host/root.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

namespace affinityd::behaviours {

namespace {

constexpr std::size_t most_told = 1024; ///< a note may hold any error's text

/// True if every number after "Uid:" (real, effective, saved, file system) in the text of /proc/PID/status is
/// 0 or `own`; proc_pid_status(5). A set-user-ID program keeps its caller as real user, so all four count.
bool has_only_trusted_ids(std::string_view status, unsigned own) {
    constexpr std::size_t ids = 4;
    for (const auto line : split(status, '\n')) {
        auto words = split_words(line);
        if (words.empty() || words[0] != "Uid:") continue;
        words.erase(words.begin());
        return words.size() == ids && std::ranges::all_of(words, [&](const auto word) {
                   const auto id = parse_number<unsigned>(word);
                   return id && (*id == 0 || *id == own);
               });
    }
    return false;
}

} // namespace

OtherWriters::OtherWriters(const host::Root& root, Places places)
    : root_(root), acts_(places.acts),
      irqbalance_(std::move(places.irqbalance_dir), std::move(places.runtime_dir) + "/irqbalance.banned") {}

/// Any user may call a program so: only root's, and those of this daemon's own user, count.
bool OtherWriters::is_writer(int pid, std::string_view comm) const {
    const auto status = is_name(comm) ? root_.proc().text(std::to_string(pid) + "/status") : std::nullopt;
    return status && has_only_trusted_ids(*status, ::geteuid());
}

void OtherWriters::see(int pid, std::string_view comm) {
    if (is_writer(pid, comm)) seen_.insert_or_assign(std::string(comm), pid);
}

bool OtherWriters::is_unknown(int pid, std::string_view comm) const {
    const auto known = running_.find(comm);
    return (known == running_.end() || known->second != pid) && is_writer(pid, comm);
}

void OtherWriters::finish_pass(std::vector<unsigned> irqs) {
    running_ = std::exchange(seen_, {});
    is_list_new_ = true;
    if (acts_ && running_.contains("irqbalance")) irqbalance_.keep_off(std::move(irqs));
}

void OtherWriters::stop() {
    is_list_new_ = false;
    irqbalance_.give_back();
}

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
    if (trim_text(root_.sys().text("kernel/sched_ext/state").value_or("")) == "enabled")
        list.push_back(
            {"sched_ext",
             std::string(trim_text(root_.sys().text("kernel/sched_ext/root/ops").value_or("a scheduler"))),
             "this scheduler chooses the CPUs of tasks among those that their masks allow"});
    return list;
}

std::vector<std::string> OtherWriters::take_notices() {
    std::vector<std::string> notices;
    for (const auto& fault : irqbalance_.take_faults())
        notices.push_back("irqbalance could not be given its own list back: " + fault.to_string());
    if (!is_list_new_ || is_talking()) return notices; // the notes are about to change
    is_list_new_ = false;
    if (told_.size() > most_told) told_.clear();
    for (const auto& writer : list()) {
        auto text = fmt::format("other programs here: {} ({}): {}", writer.name, writer.where, writer.note);
        if (told_.insert(text).second) notices.push_back(std::move(text));
    }
    return notices;
}

} // namespace affinityd::behaviours
