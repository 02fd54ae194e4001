// SPDX-License-Identifier: Apache-2.0
#include "app/load.hpp"

#include "base/text.hpp"
#include "host/file.hpp"
#include "planner/check.hpp"
#include "policy/reader.hpp"
#include "policy/set_check.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <ranges>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>

namespace affinityd::app {

namespace {

using policy::Diagnostic;
using status::FileFault;

constexpr std::string_view ending = ".yaml";

bool is_error(const Diagnostic& diagnostic) { return diagnostic.severity == policy::Severity::error; }

/// file:line:column, or the file where the fault is none of a line.
std::string place_of(const policy::Position& at) {
    return at.line == 0 ? at.file : fmt::format("{}:{}:{}", at.file, at.line, at.column);
}

/// Says which text is in force in its place, as a sentence without its end.
std::string in_its_place(const FileFault& fault) {
    if (fault.policy.empty()) return fault.note;
    if (!fault.in_force.empty()) return "its last good version stays in force: " + fault.in_force;
    return fault.note.empty() ? "left out" : "left out (" + fault.note + ")";
}

std::string number_of(std::size_t files) {
    return files == 1 ? "1 file has errors" : fmt::format("{} files have errors", files);
}

/// The subject of the error is file:line:column, or the file or folder at fault.
FileFault fault_of_settings(const std::string& file, const Error& error) {
    FileFault fault;
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

/// Stamps of the folders and the policy files in them, links followed; missing ones have none.
FileStamps stamps_of(const std::vector<std::string>& folders) {
    FileStamps stamps;
    const auto add = [&](const std::string& path) {
        struct stat status {};
        if (::stat(path.c_str(), &status) != 0) return;
        auto& stamp = stamps[path] = {status.st_dev, status.st_ino};
        if (S_ISDIR(status.st_mode)) return;
        stamp[2] = static_cast<std::uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000U +
                   static_cast<std::uint64_t>(status.st_mtim.tv_nsec);
        stamp[3] = static_cast<std::uint64_t>(status.st_size);
    };
    std::ranges::for_each(folders, add);
    if (const auto paths = policy::list_folders(folders)) std::ranges::for_each(*paths, add);
    return stamps;
}

} // namespace

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

void World::update(planner::Released released) {
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

std::string LastGood::path_of(std::string_view name) const {
    return fmt::format("{}/{}{}", folder_.empty() ? "last-good" : folder_, name, ending);
}

/// In force since this daemon reads, else before it; a link in the folder is none of ours.
Result<std::optional<std::string>> LastGood::find(std::string_view name) const {
    if (const auto known = texts_.find(name); known != texts_.end()) return known->second;
    if (folder_.empty()) return std::nullopt;
    const auto path = path_of(name);
    if (auto checked = host::check_ownership(folder_); !checked) return std::unexpected(checked.error());
    auto text = host::read_file(path, 1U << 20, host::Links::refused);
    if (!text || !*text) return text;
    if (auto checked = host::check_ownership(path); !checked) return std::unexpected(checked.error());
    return text;
}

void LastGood::keep(std::map<std::string, std::string> good, const Names& faulty) {
    std::erase_if(texts_, [&](const auto& entry) { return !faulty.contains(entry.first); });
    kept_ = faulty;
    for (auto& [name, text] : good) {
        kept_.insert(name);
        texts_.insert_or_assign(name, std::move(text));
    }
    if (folder_.empty()) return;
    for (const auto& [name, text] : texts_)
        unwritten_.insert(name);
    std::erase_if(unwritten_, [&](const auto& name) { return !texts_.contains(name); });
    is_written_ = false;
}

Result<void> LastGood::write(const std::string& name, const std::string& text) const {
    const auto path = path_of(name);
    const auto present = host::read_file(path, 1U << 20, host::Links::refused);
    const bool is_there = present && *present == text && host::check_entry(path);
    return is_there ? Result<void>() : host::replace_file(path, text);
}

/// Where one finds no room, a shorter one may.
bool LastGood::step(const OutOfTime& out_of_time) {
    if (is_written_) return true;
    auto done = texts_.empty() ? Result<void>() : host::make_directories(folder_);
    if (done) done = host::check_ownership(folder_);
    fault_ = done ? fault_ : done.error().to_string();
    if (!done) return true;
    while (!unwritten_.empty()) {
        const auto name = unwritten_.extract(unwritten_.begin());
        if (const auto text = texts_.find(name.value()); text != texts_.end())
            if (const auto written = write(text->first, text->second); !written) {
                failed_.insert(name.value());
                fault_ = written.error().to_string();
            }
        if (out_of_time()) return false;
    }
    is_written_ = failed_.empty();
    if (is_written_) fault_.clear();
    unwritten_ = std::exchange(failed_, {});
    remove_others();
    return true;
}

void LastGood::remove_others() const {
    std::error_code code;
    for (std::filesystem::directory_iterator at(folder_, code), end; !code && at != end; at.increment(code)) {
        const auto file = at->path().filename().string();
        std::error_code ignored;
        if (file.ends_with(ending) && !kept_.contains(file.substr(0, file.size() - ending.size())))
            std::filesystem::remove(at->path(), ignored);
    }
}

bool Loader::step(const OutOfTime& out_of_time) {
    while (!result_) {
        work();
        if (out_of_time()) break;
    }
    return result_.has_value();
}

/// The next small part.
void Loader::work() {
    if (!paths_) {
        if (const auto listed = list(); !listed) result_ = std::unexpected(listed.error());
    } else if (!paths_->empty()) {
        const auto path = std::move(paths_->back());
        paths_->pop_back();
        read(path);
    } else if (!reading_) {
        reading_.emplace(documents_);
    } else if (!set_) {
        if (reading_->step()) take_reading();
    } else if (!errors_.empty()) {
        const auto fault = std::move(errors_.back());
        errors_.pop_back();
        exclude(fault);
        if (errors_.empty()) end_excluding();
    } else {
        check();
    }
}

/// In a folder that is not to be trusted, nothing is even opened. Each has a line of its own.
Result<void> Loader::list() {
    stamps_ = stamps_of(folders_);
    std::string refused;
    for (const auto& folder : folders_)
        if (const auto checked = host::check_ownership(folder); !is_trusting_ && !checked)
            refused += checked.error().to_string() + "\n";
    if (!refused.empty()) return fail("policies that others can change are refused\n" + refused);
    auto paths = policy::list_folders(folders_);
    if (!paths) return std::unexpected(paths.error());
    paths_ = std::move(*paths);
    std::ranges::reverse(*paths_);
    return {};
}

/// One that was removed since it was listed is passed over: the next pass finds other stamps.
void Loader::read(const std::string& path) {
    auto document = policy::read_document(path);
    auto checked = is_trusting_ ? Result<void>() : host::check_ownership(path);
    if (!document || (!checked && policy::is_removed(path))) return;
    if (!checked) {
        if (checked.error().subject == path) checked.error().subject.clear();
        document = policy::Document{path, {}, checked.error().to_string()};
    }
    if (last_good_.find(policy::policy_name(path)) == document->text) unchanged_.insert(path);
    documents_.push_back(std::move(*document));
}

void Loader::take_reading() {
    auto read = reading_->take();
    set_ = std::move(read.set);
    policy::add_source_lines(read.diagnostics, documents_);
    policy::sort_by_place(read.diagnostics);
    for (auto& found : read.diagnostics)
        (is_error(found) ? errors_ : remarks_).push_back(std::move(found));
    std::ranges::reverse(errors_);
}

/// The first fault of a file decides; `affinityctl check` tells the others.
void Loader::exclude(const Diagnostic& fault) {
    if (!excluded_.insert(fault.at.file).second) return;
    const std::string name(policy::policy_name(fault.at.file));
    const auto [at, is_first] = faults_.try_emplace(name);
    auto& entry = at->second;
    if (!is_first) { // its last good version does not do either
        entry.note = "so has its last good version, " + place_of(fault.at) + ": " + fault.message;
        entry.in_force.clear();
        return;
    }
    entry.at = fault.at;
    entry.policy = name;
    entry.message = fault.hint.empty() ? fault.message : fault.message + " (" + fault.hint + ")";
    entry.shown = policy::to_string(fault, true);
    take_last_good(fault.at.file, entry);
}

void Loader::take_last_good(const std::string& file, FileFault& into) {
    auto text = last_good_.find(into.policy);
    if (!text) into.note = "its last good version cannot be used: " + text.error().to_string();
    if (!text || !*text || unchanged_.contains(file)) return;
    policy::Document copy{last_good_.path_of(into.policy), std::move(**text)};
    auto read = policy::read_policies({copy});
    if (read.set.policies.size() != 1 || !read.ok()) return;
    into.in_force = copy.path;
    copies_.push_back(std::move(read.set.policies.front()));
    unchanged_.insert(copy.path);
    documents_.push_back(std::move(copy));
}

void Loader::end_excluding() {
    auto& policies = set_->policies;
    std::erase_if(policies, [&](const auto& policy) { return excluded_.contains(policy.at.file); });
    std::ranges::move(copies_, std::back_inserter(policies));
    copies_.clear();
    std::ranges::sort(policies, policy::comes_before);
}

/// One of the policies at fault side by side goes: the others may be at fault no more.
void Loader::check() {
    std::vector<Diagnostic> found;
    policy::check_set(*set_, found);
    policy::add_source_lines(found, documents_);
    std::ranges::copy_if(found, std::back_inserter(errors_), is_error);
    if (!errors_.empty()) {
        for (const auto& policy : set_->policies | std::views::reverse)
            if (const auto last = std::ranges::find(errors_, policy.at.file,
                                                    [](const auto& error) { return error.at.file; });
                last != errors_.end()) {
                errors_ = std::vector{*last};
                return;
            }
    }
    LastGood::Names newcomers;
    for (const auto& policy : set_->policies)
        if (!unchanged_.contains(policy.at.file)) newcomers.insert(policy.name);
    auto here = planner::check_on_machine(*set_, machine_, {.newcomers = std::move(newcomers)});
    policy::add_source_lines(here, documents_);
    std::ranges::copy_if(here, std::back_inserter(errors_), is_error);
    std::ranges::reverse(errors_);
    std::ranges::move(here, std::back_inserter(found));
    if (errors_.empty()) finish(std::move(found));
}

void Loader::finish(std::vector<Diagnostic> remarks) {
    Loaded loaded;
    std::ranges::move(remarks_, std::back_inserter(remarks));
    policy::add_source_lines(remarks, documents_);
    policy::sort_by_place(remarks);
    for (const auto& remark : remarks)
        loaded.warnings.push_back(policy::to_string(remark, true) + "\n");
    for (auto& [name, fault] : faults_) {
        loaded.faulty.insert(name);
        loaded.faults.push_back(std::move(fault));
    }
    std::ranges::sort(loaded.faults, {}, [](const auto& fault) { return fault.at.file; });
    LastGood::Names in_force;
    for (const auto& policy : set_->policies)
        in_force.insert(policy.at.file);
    for (auto& document : documents_)
        if (const std::string name(policy::policy_name(document.path));
            in_force.contains(document.path) && !loaded.faulty.contains(name))
            loaded.good.emplace(name, std::move(document.text));
    policy::resolve_programs(*set_);
    loaded.world = std::make_shared<World>(std::move(*set_), std::move(machine_), std::move(usage_));
    result_ = std::move(loaded);
}

Loading::Loading(const Settings& settings, bool acts, Log& log)
    : folders_(settings.policy_folders), acts_(acts), log_(log),
      last_good_(settings.dry_run || !acts ? "" : settings.state_dir + "/last-good") {}

std::shared_ptr<Loader> Loading::begin(machine::Machine machine, planner::NicUsage usage) const {
    return std::make_shared<Loader>(folders_, std::move(machine), std::move(usage), last_good_, !acts_);
}

Result<std::shared_ptr<World>> Loading::end(Loader& loader, std::vector<FileFault> others) {
    auto loaded = loader.take();
    stamps_ = loader.stamps();
    status_.at = std::chrono::system_clock::now();
    status_.refused = loaded ? "" : loaded.error().to_string();
    if (!loaded) return std::unexpected(std::move(loaded.error()));
    last_good_.keep(std::move(loaded->good), loaded->faulty);
    status_.faults = std::move(others);
    std::ranges::move(loaded->faults, std::back_inserter(status_.faults));
    faulty_ = std::move(loaded->faulty);
    warnings_.clear();
    for (const auto& warning : loaded->warnings)
        if (!told_.contains(warning)) warnings_ += warning;
    told_ = {loaded->warnings.begin(), loaded->warnings.end()};
    if (const auto faults = report(); !faults.empty()) log_.alarm(faulty_files_message, faults);
    return std::move(loaded->world);
}

bool Loading::has_changed() const {
    constexpr std::int64_t second = 1'000'000'000;
    const auto time = std::chrono::system_clock::now().time_since_epoch();
    const auto is_fresh = [now = std::chrono::nanoseconds(time).count()](const auto& entry) {
        return std::abs(now - static_cast<std::int64_t>(entry.second[2])) < second;
    };
    const auto stamps = stamps_of(folders_);
    return stamps != stamps_ && std::ranges::none_of(stamps, is_fresh);
}

bool Loading::keep(const OutOfTime& out_of_time) {
    if (!last_good_.step(out_of_time)) return false;
    if (const auto& fault = last_good_.fault(); !fault.empty())
        log_.warn("policies are not kept for a start with errors in their files: " + fault);
    return true;
}

std::string Loading::report() const {
    if (status_.faults.empty()) return {};
    std::string text = number_of(status_.faults.size()) + "; all others are in force";
    for (const auto& fault : status_.faults)
        text += "\n" + fault.shown + "\n" + in_its_place(fault);
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
    if (const auto& fault = last_good_.fault(); !fault.empty())
        list.push_back(
            {{}, "last good policies", "not kept for a start with errors in their files: " + fault});
    return list;
}

std::vector<FileFault> reread(const ReadSettings& read, Settings& settings) {
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
