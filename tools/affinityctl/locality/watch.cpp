// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/locality/watch.hpp"

#include "affinityctl/offline/still_machine.hpp"
#include "affinityctl/present/document.hpp"
#include "base/text.hpp"
#include "inventory/descriptors.hpp"
#include "inventory/process_files.hpp"
#include "inventory/process_scan.hpp"
#include "inventory/sockets.hpp"
#include "planner/matcher.hpp"
#include "policy/diagnostic.hpp"

#include <algorithm>
#include <cerrno>
#include <tuple>

namespace affinityctl {

using affinityd::fail;
using affinityd::Result;
using affinityd::netdev::Nic;
using nlohmann::json;
using Clock = std::chrono::steady_clock;
using Kind = LocalitySubject::Kind;
using std::chrono::milliseconds;
namespace inventory = affinityd::inventory;
namespace locality = affinityd::locality;

namespace {

constexpr milliseconds between_looks{250};

std::string hint(const std::string& word, std::span<const Nic> nics, const json& status) {
    std::vector<std::string> names;
    for (const auto& nic : nics)
        names.push_back(nic.name);
    for (const auto& policy : list(status, "policies"))
        names.push_back(text(policy, "name"));
    const std::vector<std::string_view> words(names.begin(), names.end());
    const auto near = affinityd::policy::did_you_mean(word, words);
    return near.empty() ? "" : " (" + near + ")";
}

} // namespace

std::vector<unsigned> devices_over(std::span<const Nic> nics, const std::string& name) {
    std::vector<std::string> names{name};
    std::vector<unsigned> devices;
    // Interfaces may be above each other in any order, and a hostile recording may have a loop.
    for (std::size_t at = 0; at < names.size(); ++at)
        for (const auto& nic : nics) {
            if (nic.name == names[at]) devices.push_back(nic.ifindex);
            const bool is_above = std::ranges::find(nic.lower, names[at]) != nic.lower.end();
            if (is_above && std::ranges::find(names, nic.name) == names.end()) names.push_back(nic.name);
        }
    return devices;
}

std::optional<std::vector<int>> processes_under(const json& status, const std::string& policy) {
    if (std::ranges::none_of(list(status, "policies"),
                             [&](const json& one) { return text(one, "name") == policy; }))
        return std::nullopt;
    std::vector<int> pids;
    for (const auto& process : list(status, "processes"))
        if (text(process, "policy") == policy) pids.push_back(static_cast<int>(count(process, "pid")));
    return pids;
}

std::string steering_policy(const json& status, const std::vector<int>& pids) {
    for (const auto& policy : list(status, "policies")) {
        const auto steer = member(policy, "steer");
        if (count(steer, "listeners") == 0 && list(steer, "left").empty()) continue;
        const auto name = text(policy, "name");
        const auto its = processes_under(status, name).value_or(std::vector<int>());
        if (std::ranges::find_first_of(its, pids) != its.end()) return name;
    }
    return {};
}

Result<LocalitySubject> read_subject(const affinityd::host::Root& root, const std::string& word,
                                     std::span<const Nic> nics, const json& status) {
    const auto quoted = affinityd::policy::in_quotes(word);
    if (word.empty()) return LocalitySubject{};
    if (std::ranges::all_of(word, affinityd::is_digit)) {
        const auto id = affinityd::parse_number<int>(word);
        const auto pid = id ? inventory::read_process_id(root, *id) : std::optional<int>();
        if (!pid) return fail("there is no process " + quoted, {}, ESRCH);
        return LocalitySubject{Kind::process, word, *pid, {}};
    }
    if (std::ranges::find(nics, word, &Nic::name) != nics.end())
        return LocalitySubject{Kind::nic, word, 0, devices_over(nics, word)};
    if (processes_under(status, word)) return LocalitySubject{Kind::policy, word, 0, {}};
    if (word.find('.') != std::string::npos) {
        const auto pids = processes_of_unit(root, word);
        if (!pids) return std::unexpected(pids.error());
        if (!pids->empty()) return LocalitySubject{Kind::unit, word, 0, {}};
        return fail("no interface, policy or process of a unit has the name " + quoted, {}, ENOENT);
    }
    if (!status.is_object())
        return fail("there is no interface " + quoted +
                        ", and no daemon answers that could have such a policy",
                    {}, ENOTCONN);
    return fail("there is no interface or policy " + quoted + hint(word, nics, status), {}, ENOENT);
}

std::size_t listeners_at_one_port(const affinityd::host::Root& root, std::span<const int> pids) {
    constexpr std::size_t most_processes = 64, most_descriptors = 65'536;
    std::map<std::uint64_t, std::vector<inventory::LocalSocket>> known; // by network namespace
    // By network namespace, protocol, address, interface, port.
    std::map<
        std::tuple<std::uint64_t, inventory::Protocol, inventory::IpAddress, std::uint32_t, std::uint16_t>,
        std::set<std::uint64_t>>
        listeners;
    std::size_t most = 0;
    for (const int pid : pids.first(std::min(pids.size(), most_processes))) {
        const auto process = std::to_string(pid);
        const auto space = inventory::name_space(root, process, "net");
        const auto folder = root.proc().dir(process);
        const auto inodes = folder ? inventory::socket_inodes(*folder, most_descriptors)
                                   : Result<std::vector<std::uint64_t>>();
        if (space == 0 || !inodes || inodes->empty()) continue;
        if (!known.contains(space))
            known[space] = inventory::read_namespace_listeners(root, process)
                               .value_or(std::vector<inventory::LocalSocket>());
        for (const auto& socket : known[space]) {
            if (!std::ranges::binary_search(*inodes, socket.inode)) continue;
            auto& here = listeners[{space, socket.protocol, socket.local, socket.interface, socket.port}];
            here.insert(socket.inode);
            most = std::max(most, here.size());
        }
    }
    return most;
}

LocalityWatch::LocalityWatch(const affinityd::host::Root& root, LocalitySubject subject,
                             std::function<json()> ask)
    : root_(&root), subject_(std::move(subject)), ask_(std::move(ask)) {
    if (subject_.kind == Kind::process) members_.insert(subject_.pid);
    if (subject_.kind == Kind::policy) ask_daemon();
}

Result<void> LocalityWatch::begin(bool with_others) {
    auto events = affinityd::steer::Reads::open(*root_, {.with_others = with_others});
    began_ = Clock::now();
    if (!events) return std::unexpected(std::move(events.error()));
    events_ = std::move(*events);
    return {};
}

bool LocalityWatch::has_ended() const {
    return subject_.kind == Kind::process && !inventory::read_process_id(*root_, subject_.pid);
}

bool LocalityWatch::is_meant(int pid) const {
    return subject_.kind == Kind::all || subject_.kind == Kind::nic || members_.contains(pid);
}

void LocalityWatch::ask_daemon() {
    asked_ = Clock::now();
    if (const auto pids = processes_under(ask_(), subject_.name)) members_.insert(pids->begin(), pids->end());
}

void LocalityWatch::look_at_readers(bool is_last) {
    if (auto readers = events_->readers()) readers_.merge(*readers);
    bool has_new = is_last;
    for (const auto& [pid, name] : readers_) {
        const bool is_new = !names_.contains(pid);
        has_new = has_new || is_new;
        if (!is_new && !is_last) continue; // at the end they may have another name
        const auto scan = inventory::ProcessScan::open(*root_, pid).value_or(std::nullopt);
        if (!scan) continue;
        names_[pid] = scan->comm();
        if (subject_.kind != Kind::unit) continue;
        const auto units = affinityd::planner::unit_names(scan->facts());
        if (std::ranges::find(units, subject_.name) != units.end()) members_.insert(pid);
    }
    const bool may_ask = is_last || Clock::now() - asked_ >= std::chrono::seconds(1);
    if (subject_.kind == Kind::policy && has_new && may_ask) ask_daemon();
}

void LocalityWatch::run(milliseconds time, const std::function<bool(milliseconds)>& wait) {
    const auto end = began_ + time;
    for (auto now = Clock::now(); now < end; now = Clock::now()) {
        look_at_readers(false);
        if (has_ended()) return;
        const auto left = std::chrono::ceil<milliseconds>(end - Clock::now());
        if (wait(std::clamp(between_looks, milliseconds(0), std::max(left, milliseconds(0))))) return;
    }
}

Result<locality::ReadCounts> LocalityWatch::take() {
    locality::ReadCounts seen{.has_other_protocols = events_->has_other_protocols()};
    if (const auto done = events_->take(seen); !done) return std::unexpected(done.error());
    seen.seconds = std::chrono::duration<double>(Clock::now() - began_).count();
    if (subject_.kind == Kind::nic)
        std::erase_if(seen.counts,
                      [&, here = inventory::name_space(*root_, "self", "net")](const auto& count) {
                          return count.network_space != here ||
                                 std::ranges::find(subject_.devices, count.device) == subject_.devices.end();
                      });
    for (const auto& count : seen.counts)
        readers_.try_emplace(count.pid, ""); // there may be more than the table of names has room for
    look_at_readers(true);
    events_.reset();
    seen.names = readers_;
    for (const auto& [pid, name] : names_)
        seen.names[pid] = name;
    for (const auto& count : seen.counts)
        if (!is_meant(count.pid) && subject_.kind != Kind::process && !names_.contains(count.pid))
            seen.of_unknown += count.reads;              // it ended before anything of it could be read
    if (subject_.kind != Kind::all) seen.in_softirq = 0; // whose it was is not known
    if (has_ended()) seen.notes.push_back("The process has ended meanwhile.");
    return seen;
}

} // namespace affinityctl
