// SPDX-License-Identifier: Apache-2.0
#include "app/load.hpp"

#include "app/log.hpp"
#include "base/text.hpp"
#include "host/ownership.hpp"
#include "planner/check.hpp"
#include "policy/folders.hpp"
#include "policy/order.hpp"
#include "policy/set_check.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>

namespace affinityd::app {

World::World(policy::PolicySet policies, machine::Machine machine, planner::NicUsage usage)
    : policies_(std::move(policies)), machine_(std::move(machine)), usage_(std::move(usage)),
      matcher_(policies_), placements_(planner::compile(policies_, machine_, usage_)),
      assumed_(placements_.load) {}

void World::update(machine::Machine machine) {
    machine::use_latencies(machine, std::move(machine_.latencies));
    machine.cannot_steer = machine_.cannot_steer;
    machine_ = std::move(machine);
    work_out();
}

void World::update(planner::NicUsage usage) {
    usage_ = std::move(usage);
    work_out();
}

void World::update(machine::KnownLatencies latencies) {
    machine::use_latencies(machine_, std::move(latencies));
    work_out();
}

void World::use_steering(bool can_steer) {
    if (machine_.cannot_steer == !can_steer) return;
    machine_.cannot_steer = !can_steer;
    work_out();
}

void World::work_out() {
    auto placements = planner::recompile(policies_, machine_, usage_, placements_, released_);
    if (!std::ranges::equal(placements.queues, placements_.queues, &planner::QueueTarget::is_same))
        ++version_;
    placements_ = std::move(placements);
    assumed_ = placements_.load;
    use_weights();
}

void World::weigh_interrupts(const std::map<unsigned, planner::Weight>& weights) {
    constexpr planner::Weight little = planner::one_cpu / 32;
    bool has_changed = false;
    for (const auto& [cpu, weight] : weights) {
        if (assumed_->on_cpu(cpu) == 0) continue;
        auto& known = weights_.try_emplace(cpu, weight).first->second;
        known = (known + weight) / 2;
        has_changed = has_changed || std::abs(known - placements_.load->on_cpu(cpu)) >= little;
    }
    if (has_changed) use_weights();
}

void World::use_weights() {
    std::erase_if(weights_, [&](const auto& entry) { return assumed_->on_cpu(entry.first) == 0; });
    if (weights_.empty()) return;
    planner::CpuLoad load(machine_.topology);
    for (const auto& cpu : machine_.topology.cpus) {
        const auto measured = weights_.find(cpu.id);
        const auto weight = measured == weights_.end() ? assumed_->on_cpu(cpu.id) : measured->second;
        if (weight > 0) load.add({cpu.id}, weight);
    }
    placements_.load = std::make_shared<const planner::CpuLoad>(std::move(load));
}

void World::use_releases(std::function<bool(std::string_view)> is_released) {
    is_released_ = std::move(is_released);
    releases_changed();
}

void World::releases_changed() {
    planner::Released released;
    for (const auto& policy : policies_.policies)
        if (policy.exclusive != policy::Exclusive::no && is_released_ && is_released_(policy.name))
            released.insert(policy.name);
    if (released == released_) return;
    released_ = std::move(released);
    work_out();
}

bool World::needs_nic_usage() const {
    return std::ranges::any_of(policies_.policies, [](const policy::Policy& policy) {
        return policy.model == policy::Model::full || policy.model == policy::Model::irq;
    });
}

bool World::keeps_on_stop(std::string_view name) const {
    const auto found = std::ranges::find(policies_.policies, name, &policy::Policy::name);
    if (found == policies_.policies.end()) return kept_.contains(name);
    return found->on_stop == policy::OnStop::keep;
}

bool World::keeps_after_removal(std::string_view policy) const {
    return kept_.contains(policy) && placements_.find(policy) == nullptr;
}

void World::take_over(const World& before) {
    machine::use_latencies(machine_, before.machine_.latencies);
    machine_.cannot_steer = before.machine_.cannot_steer;
    placements_ = planner::recompile(policies_, machine_, usage_, before.placements_, released_);
    assumed_ = placements_.load;
    weights_ = before.weights_;
    use_weights();
    seen_ = before.seen_;
    kept_ = before.kept_;
    for (const auto& policy : before.policies_.policies)
        if (policy.on_stop == policy::OnStop::keep) kept_.insert(policy.name);
    for (const auto& policy : policies_.policies)
        kept_.erase(policy.name);
}

namespace {

using policy::Diagnostic;
using policy::Severity;

bool is_error(const Diagnostic& diagnostic) { return diagnostic.severity == Severity::error; }

std::vector<Diagnostic> errors_of(const std::vector<Diagnostic>& diagnostics) {
    std::vector<Diagnostic> errors;
    std::ranges::copy_if(diagnostics, std::back_inserter(errors), is_error);
    return errors;
}

} // namespace

std::string place_of(const policy::Position& at) {
    if (at.line == 0) return at.file;
    return fmt::format("{}:{}:{}", at.file, at.line, at.column);
}

GoodPolicies::GoodPolicies(policy::ReadResult read, const std::vector<policy::Document>& documents,
                           const state::LastGood& last_good)
    : documents_(documents), last_good_(last_good) {
    result_.set = std::move(read.set);
    policy::add_source_lines(read.diagnostics, documents_);
    policy::sort_by_place(read.diagnostics);
    for (auto& found : read.diagnostics)
        (is_error(found) ? errors_ : remarks_).push_back(std::move(found));
    std::ranges::reverse(errors_);
    for (std::size_t i = 0; i < documents_.size(); ++i)
        places_.documents.try_emplace(documents_[i].path, i);
}

/// Where policies are; they stay there until the last of the errors is dealt with.
void GoodPolicies::begin_excluding() {
    const auto& set = result_.set.policies;
    places_.policies.clear();
    for (std::size_t i = 0; i < set.size(); ++i)
        places_.policies.emplace(set[i].name, i);
}

void GoodPolicies::end_excluding() {
    auto& set = result_.set.policies;
    std::vector<policy::Policy> left;
    for (std::size_t i = 0; i < set.size(); ++i)
        if (const auto at = places_.policies.find(set[i].name);
            at != places_.policies.end() && at->second == i)
            left.push_back(std::move(set[i]));
    set = std::move(left);
    if (!std::ranges::is_sorted(set, policy::comes_before)) std::ranges::sort(set, policy::comes_before);
}

/// The first fault of a file decides; further ones are told by `affinityctl check`.
void GoodPolicies::exclude(const Diagnostic& fault) {
    const std::string name(policy::policy_name(fault.at.file));
    auto& faults = result_.faults;
    const auto known = places_.faults.find(name);
    const auto in_set = places_.policies.find(name);
    const bool is_in_set = in_set != places_.policies.end();
    if (known != places_.faults.end() &&
        (!is_in_set || result_.set.policies[in_set->second].at.file != fault.at.file))
        return;
    if (is_in_set) places_.policies.erase(in_set);
    if (known != places_.faults.end()) { // its last good text does not do either
        auto& entry = faults[known->second];
        entry.note = "so has its last good version, " + place_of(fault.at) + ": " + fault.message;
        entry.in_force.clear();
        return;
    }
    places_.faults.emplace(name, faults.size());
    auto& entry = faults.emplace_back();
    entry.at = fault.at;
    entry.policy = name;
    entry.message = fault.hint.empty() ? fault.message : fault.message + " (" + fault.hint + ")";
    entry.shown = policy::to_string(fault, true);
    take_last_good(fault, entry);
}

void GoodPolicies::take_last_good(const Diagnostic& fault, status::FileFault& into) {
    const auto found = last_good_.find(into.policy);
    if (!found) into.note = "its last good version cannot be used: " + found.error().to_string();
    const auto kept = found.value_or(std::nullopt);
    const auto place = places_.documents.find(fault.at.file);
    const auto* own = place == places_.documents.end() ? nullptr : &documents_[place->second];
    if (!kept || (own != nullptr && own->fault.empty() && own->text == kept->text)) return;
    auto again = policy::read_policies({{kept->path, kept->text}});
    if (again.set.policies.size() != 1 || !again.ok()) return;
    into.in_force = kept->path;
    auto& set = result_.set.policies;
    places_.policies.insert_or_assign(again.set.policies.front().name, set.size());
    set.push_back(std::move(again.set.policies.front()));
    places_.documents.try_emplace(kept->path, documents_.size());
    documents_.push_back({kept->path, kept->text});
}

/// Of policies at fault side by side.
Diagnostic GoodPolicies::last_of(const std::vector<Diagnostic>& errors) const {
    std::unordered_map<std::string_view, std::size_t> order; // by file
    for (const auto& policy : result_.set.policies)
        order.try_emplace(policy.at.file, order.size());
    return *std::ranges::max_element(errors, {}, [&](const Diagnostic& found) {
        const auto at = order.find(found.at.file);
        return at == order.end() ? order.size() : at->second;
    });
}

std::set<std::string, std::less<>> GoodPolicies::newcomers() const {
    std::set<std::string, std::less<>> names;
    for (const auto& policy : result_.set.policies) {
        const auto kept = last_good_.find(policy.name).value_or(std::nullopt);
        const auto place = places_.documents.find(policy.at.file);
        if (!kept || place == places_.documents.end() || documents_[place->second].text != kept->text)
            names.insert(policy.name);
    }
    return names;
}

bool GoodPolicies::step(const machine::Machine& machine) {
    if (!errors_.empty()) {
        if (!std::exchange(is_excluding_, true)) begin_excluding();
        exclude(errors_.back());
        errors_.pop_back();
        return false;
    }
    if (std::exchange(is_excluding_, false)) {
        end_excluding();
        return false;
    }
    checked_.clear();
    policy::check_set(result_.set, checked_);
    policy::add_source_lines(checked_, documents_);
    // Each policy of a ring is at fault, and without one of them the others are not.
    if (const auto errors = errors_of(checked_); !errors.empty()) {
        errors_ = {last_of(errors)};
        return false;
    }
    auto here = planner::check_on_machine(result_.set, machine, {.newcomers = newcomers()});
    policy::add_source_lines(here, documents_);
    errors_ = errors_of(here);
    std::ranges::reverse(errors_);
    std::ranges::move(here, std::back_inserter(checked_));
    return errors_.empty();
}

GoodPolicies::Result GoodPolicies::take() {
    std::ranges::move(checked_, std::back_inserter(remarks_));
    policy::add_source_lines(remarks_, documents_);
    policy::sort_by_place(remarks_);
    for (const auto& remark : remarks_)
        result_.warnings.push_back(policy::to_string(remark, true) + "\n");
    for (const auto& fault : result_.faults)
        result_.faulty.insert(fault.policy);
    std::unordered_map<std::string_view, const std::string*> texts; // by path
    for (const auto& document : documents_)
        texts.insert_or_assign(document.path, &document.text);
    for (const auto& policy : result_.set.policies)
        if (!result_.faulty.contains(policy.name))
            result_.good.emplace(policy.name, *texts.at(policy.at.file));
    std::ranges::sort(result_.faults, {}, [](const auto& fault) { return fault.at.file; });
    return std::move(result_);
}

std::string in_its_place(const status::FileFault& fault) {
    if (fault.policy.empty()) return fault.note;
    const auto why = fault.note.empty() ? "" : " (" + fault.note + ")";
    if (fault.in_force.empty()) return "left out" + why;
    return "its last good version stays in force: " + fault.in_force;
}

std::string to_string(const status::FileFault& fault) {
    return fault.shown + "\n" + in_its_place(fault) + "\n";
}

FileStamps stamps_of(const std::vector<std::string>& folders) {
    FileStamps stamps;
    const auto add = [&](const std::string& path) {
        struct stat status {};
        if (::stat(path.c_str(), &status) != 0) return;
        auto& stamp = stamps[path];
        stamp = {status.st_dev, status.st_ino};
        if (S_ISDIR(status.st_mode)) return;
        stamp[2] = static_cast<std::uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000U +
                   static_cast<std::uint64_t>(status.st_mtim.tv_nsec);
        stamp[3] = static_cast<std::uint64_t>(status.st_size);
    };
    for (const auto& folder : folders)
        add(folder);
    if (const auto paths = policy::list_folders(folders))
        for (const auto& path : *paths)
            add(path);
    return stamps;
}

/// Each folder that is not to be trusted has a line of its own. Of files it is a fault of theirs.
Result<std::vector<std::string>> WorldLoader::list() const {
    std::string refused;
    for (const auto& folder : folders_)
        if (const auto checked = host::check_ownership(folder); by_whom_ == Owners::trusted && !checked)
            refused += checked.error().to_string() + "\n";
    // What is in such a folder is not even opened.
    if (!refused.empty()) return fail("policies that others can change are refused\n" + refused);
    return policy::list_folders(folders_);
}

std::optional<policy::Document> WorldLoader::read(const std::string& path) const {
    auto document = policy::read_document(path);
    if (!document || by_whom_ != Owners::trusted) return document;
    auto checked = host::check_ownership(path);
    if (checked) return document;
    if (policy::is_removed(path)) return std::nullopt;
    if (checked.error().subject == path) checked.error().subject.clear();
    return policy::Document{path, {}, checked.error().to_string()};
}

bool WorldLoader::read_files(const OutOfTime& out_of_time) {
    while (next_path_ < paths_->size()) {
        if (auto document = read((*paths_)[next_path_++])) {
            documents_.push_back(std::move(*document));
        } else if (listed_ < most_lists) { // others may have come, or this one is there again
            paths_.reset();
            documents_.clear();
            next_path_ = 0;
            return false;
        }
        if (out_of_time()) return false;
    }
    reading_.emplace(std::move(documents_));
    return true;
}

bool WorldLoader::step(const OutOfTime& out_of_time) {
    if (!paths_) {
        ++listed_;
        stamps_ = stamps_of(folders_);
        auto paths = list();
        if (!paths) {
            result_ = std::unexpected(paths.error());
            return true;
        }
        paths_ = std::move(*paths);
    }
    if (!reading_ && (!read_files(out_of_time) || out_of_time())) return false;
    while (!choice_) {
        if (reading_->step()) choice_.emplace(reading_->take(), reading_->documents(), last_good_);
        if (out_of_time()) return false;
    }
    while (!choice_->step(machine_))
        if (out_of_time()) return false;
    result_ = finish();
    return true;
}

LoadedWorld WorldLoader::finish() {
    LoadedWorld loaded{.world = nullptr, .found = choice_->take()};
    policy::resolve_programs(loaded.found.set);
    loaded.world =
        std::make_shared<World>(std::move(loaded.found.set), std::move(machine_), std::move(usage_));
    return loaded;
}

namespace {

std::string number_of(std::size_t files) {
    return files == 1 ? std::string("1 file has errors") : fmt::format("{} files have errors", files);
}

/// The subject of the error is file:line:column, or the file or folder at fault.
status::FileFault fault_of_settings(const std::string& file, const Error& error) {
    status::FileFault fault;
    fault.at.file = file;
    fault.shown = fault.message = error.to_string();
    fault.note = "the settings in force stay";
    const std::string_view place = error.subject;
    if (!place.starts_with(file + ":")) return fault;
    const auto numbers = place.substr(file.size() + 1);
    fault.at.line = parse_number<unsigned>(numbers.substr(0, numbers.find(':'))).value_or(0);
    fault.at.column = parse_number<unsigned>(numbers.substr(numbers.find(':') + 1)).value_or(0);
    fault.message = error.message;
    return fault;
}

} // namespace

Loading::Loading(const Settings& settings, bool acts, Log& log)
    : folders_(settings.policy_folders), acts_(acts), log_(log),
      last_good_(settings.dry_run || !acts ? "" : settings.state_dir + "/last-good") {}

std::shared_ptr<WorldLoader> Loading::begin(machine::Machine machine, planner::NicUsage usage) const {
    return std::make_shared<WorldLoader>(folders_, std::move(machine), std::move(usage), last_good_,
                                         acts_ ? Owners::trusted : Owners::all);
}

Result<std::shared_ptr<World>> Loading::end(WorldLoader& loader, std::vector<status::FileFault> others) {
    auto loaded = loader.take();
    stamps_ = loader.stamps();
    status_.at = std::chrono::system_clock::now();
    if (!loaded) {
        status_.refused = loaded.error().to_string();
        return std::unexpected(std::move(loaded.error()));
    }
    status_.refused.clear();
    auto& found = loaded->found;
    last_good_.keep(found.good, found.faulty);
    status_.faults = std::move(others);
    std::ranges::move(found.faults, std::back_inserter(status_.faults));
    faulty_ = std::move(found.faulty);
    warnings_.clear();
    for (const auto& warning : found.warnings)
        if (!told_.contains(warning)) warnings_ += warning;
    told_ = {found.warnings.begin(), found.warnings.end()};
    if (const auto faults = report(); !faults.empty()) log_.alarm(faulty_files_message, faults);
    return std::move(loaded->world);
}

bool Loading::has_changed() const {
    const auto now = stamps_of(folders_);
    const auto since_epoch = (std::chrono::system_clock::now() - std::chrono::seconds(1)).time_since_epoch();
    const auto latest = static_cast<std::uint64_t>(std::chrono::nanoseconds(since_epoch).count());
    constexpr std::uint64_t ahead = 2'000'000'000; // a time to come is none
    const auto is_fresh = [&](const auto& entry) {
        return entry.second[2] > latest && entry.second[2] < latest + ahead;
    };
    return now != stamps_ && std::ranges::none_of(now, is_fresh);
}

bool Loading::keep(const OutOfTime& out_of_time) {
    if (!last_good_.step(out_of_time)) return false;
    const auto& kept = last_good_.result();
    const auto before = std::exchange(unkept_, kept ? "" : kept.error().to_string());
    if (kept && !before.empty())
        log_.info("policies are kept for a start with errors in their files again");
    else if (unkept_ != before)
        log_.warn("policies are not kept for a start with errors in their files: " + unkept_);
    return true;
}

std::string Loading::report() const {
    if (status_.faults.empty()) return {};
    std::string text = number_of(status_.faults.size()) + "; all others are in force\n";
    for (const auto& fault : status_.faults)
        text += to_string(fault);
    text.pop_back();
    return text;
}

std::vector<planner::Problem> Loading::problems() const {
    std::vector<planner::Problem> list;
    if (!status_.refused.empty())
        list.push_back(
            {{}, "reload", status_.refused + "\nwhat was in force before stays", "affinityctl check"});
    for (const auto& fault : status_.faults)
        list.push_back({fault.policy, place_of(fault.at), fault.message + "; " + in_its_place(fault),
                        "affinityctl check " + fault.at.file});
    if (!unkept_.empty())
        list.push_back(
            {{}, "last good policies", "not kept for a start with errors in their files: " + unkept_});
    return list;
}

std::vector<status::FileFault> reread(const ReadSettings& read, Settings& settings) {
    if (!read) return {};
    auto fresh = read();
    if (!fresh) return {fault_of_settings(settings.config, fresh.error())};
    settings = std::move(*fresh);
    return {};
}

std::string summary_of(const status::LoadStatus& load) {
    if (!load.refused.empty()) return "the last reload was refused: see affinityctl status";
    if (load.faults.empty()) return {};
    return number_of(load.faults.size()) + ": " + place_of(load.faults.front().at);
}

} // namespace affinityd::app
