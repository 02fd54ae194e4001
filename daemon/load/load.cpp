// SPDX-License-Identifier: Apache-2.0
#include "load/load.hpp"

#include "accounting/measurements.hpp"
#include "base/text.hpp"
#include "host/file.hpp"
#include "host/signals.hpp"
#include "machine/pods.hpp"
#include "planner/check.hpp"
#include "policy/reader.hpp"
#include "policy/set_check.hpp"
#include "topology/reader.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <ranges>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>

namespace affinityd::core {

namespace {

using policy::Diagnostic;
using status::FileFault;

constexpr std::string_view ending = ".yaml";
constexpr std::size_t most_text = 1U << 20; ///< of a copy

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
    fault.mend = "affinityctl check " + file;
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

std::string copy_of(const std::string& folder, std::string_view name) {
    return fmt::format("{}/{}{}", folder.empty() ? "last-good" : folder, name, ending);
}

/// Writes copies of the texts, and removes all others. Returns why one could not be written; "": all are.
/// Where one finds no room, a shorter one may.
std::string write_copies(const std::string& folder, const Texts& texts) {
    std::error_code code;
    if (folder.empty() || (texts.empty() && !std::filesystem::exists(folder, code))) return {};
    auto done = host::make_directories(folder);
    if (done) done = host::check_ownership(folder);
    if (!done) return done.error().to_string();
    std::string fault;
    for (const auto& [name, text] : texts) {
        const auto path = copy_of(folder, name);
        const auto present = host::read_file(path, most_text, host::Links::refused);
        if (present && *present == text && host::check_entry(path)) continue;
        if (const auto written = host::replace_file(path, text); !written)
            fault = written.error().to_string();
    }
    for (std::filesystem::directory_iterator at(folder, code), end; !code && at != end; at.increment(code)) {
        const auto file = at->path().filename().string();
        std::error_code ignored;
        if (file.ends_with(ending) && !texts.contains(file.substr(0, file.size() - ending.size())))
            std::filesystem::remove(at->path(), ignored);
    }
    return fault;
}

/// The newest latencies in the measurement history, as they count on this machine.
machine::KnownLatencies newest_latencies(const host::Root& root, const std::string& state_dir,
                                         const topology::Topology& topology) {
    const auto unused = [](const Error& why) {
        return machine::KnownLatencies{
            std::nullopt, "the latencies that are kept cannot be read (" + why.to_string() + ")", 0};
    };
    const auto kept = accounting::newest_experiment(state_dir, "latency");
    if (!kept) return unused(kept.error());
    if (!*kept) return {};
    const auto latencies = topology::latencies_from_json((*kept)->detail);
    if (!latencies) return unused(latencies.error());
    auto known = machine::latencies_here(*latencies, topology, topology::read_cpu_model(root));
    known.time = (*kept)->time;
    return known;
}

/// The reading of Loading, in its thread.
class Loader {
  public:
    struct Task {
        std::vector<std::string> folders;
        std::string copies, state_dir;
        Texts good; ///< in force until now
        std::vector<Overlay> trials;
        bool is_trusting = false; ///< any user may have written the policies; else root and this user only
        bool is_only_checked = false;
        machine::Machine machine;
        planner::NicUsage usage;
    };
    Loader(const host::Root& root, Task task) : root_(root), task_(std::move(task)) {}
    [[nodiscard]] Loaded load();

  private:
    [[nodiscard]] Result<void> read_all();
    [[nodiscard]] std::vector<Diagnostic> check();
    void adapt_trials();
    [[nodiscard]] bool is_on_trial(const std::string& path) const {
        return std::ranges::count(task_.trials, path, [](const auto& one) { return one.document.path; }) > 0;
    }
    [[nodiscard]] std::vector<Diagnostic> next_faults(const std::vector<Diagnostic>& found) const;
    void replace(const Diagnostic& fault);
    [[nodiscard]] Result<std::optional<std::string>> last_good(const std::string& name) const;
    void finish(const std::vector<Diagnostic>& remarks);

    const host::Root& root_;
    Task task_;
    std::vector<policy::Document> documents_;
    policy::PolicySet set_;                   ///< what is in force, or was to be
    std::set<std::string> unchanged_;         ///< paths of files that are like their copies
    std::set<std::string> excluded_;          ///< paths of files that do not count
    std::set<std::string> untrusted_;         ///< paths of files that others can change
    std::map<std::string, FileFault> faults_; ///< by the policy's name
    Loaded loaded_;
};

Loaded Loader::load() {
    loaded_.stamps = stamps_of(task_.folders);
    if (const auto read = read_all(); !read) {
        loaded_.refused = read.error().to_string();
        return std::move(loaded_);
    }
    auto found = check();
    for (auto faults = next_faults(found); !faults.empty(); faults = next_faults(found)) {
        for (const auto& fault : faults)
            replace(fault);
        found = check();
    }
    finish(found);
    return std::move(loaded_);
}

/// In a folder that is not to be trusted, nothing is even opened. Each has a line of its own. A file that was
/// removed since it was listed is passed over: the next pass finds other stamps.
Result<void> Loader::read_all() {
    std::string refused;
    for (const auto& folder : task_.folders)
        if (const auto checked = host::check_ownership(folder); !task_.is_trusting && !checked)
            refused += checked.error().to_string() + "\n";
    if (!refused.empty()) return fail("policies that others can change are refused\n" + refused);
    const auto paths = policy::list_folders(task_.folders);
    if (!paths) return std::unexpected(paths.error());
    for (const auto& path : *paths) {
        auto document = policy::read_document(path);
        auto checked = task_.is_trusting ? Result<void>() : host::check_ownership(path);
        if (!document || (!checked && policy::is_removed(path))) continue;
        if (!checked) {
            if (checked.error().subject == path) checked.error().subject.clear();
            document = policy::Document{path, {}, checked.error().to_string()};
            untrusted_.insert(path);
        }
        if (last_good(std::string(policy::policy_name(path))) == document->text) unchanged_.insert(path);
        documents_.push_back(std::move(*document));
    }
    for (const auto& trial : task_.trials)
        documents_.push_back(trial.document);
    return {};
}

/// They end with nothing left behind, whatever they say.
void Loader::adapt_trials() {
    for (auto& policy : set_.policies)
        for (const auto& trial : task_.trials) {
            if (policy.at.file != trial.document.path) continue;
            policy.on_stop = policy::OnStop::restore;
            if (!trial.is_only_watched) continue;
            policy.model = policy::Model::none;
            policy.model_auto = false;
        }
}

/// Reads the documents as they are now. Returns all that is to be said of them.
std::vector<Diagnostic> Loader::check() {
    auto read = policy::read_policies(documents_);
    set_ = std::move(read.set);
    adapt_trials();
    auto& topology = task_.machine.topology;
    if (policy::has_word(set_, policy::CpuExpr::Op::pods))
        topology.pods = machine::read_own_cpus(root_, topology.online);
    auto found = std::move(read.diagnostics);
    const auto is_excluded = [&](const Diagnostic& one) { return excluded_.contains(one.at.file); };
    std::erase_if(found, is_excluded);
    if (std::ranges::none_of(found, is_error)) {
        Names newcomers;
        for (const auto& policy : set_.policies)
            if (!unchanged_.contains(policy.at.file)) newcomers.insert(policy.name);
        auto here = planner::check_on_machine(set_, task_.machine, {.newcomers = std::move(newcomers)});
        std::ranges::move(here, std::back_inserter(found));
        policy::add_source_lines(found, documents_);
        policy::sort_by_place(found);
    }
    return found;
}

/// The files that are to be replaced now: those that cannot be read, else the last policy of those that are
/// at fault side by side, since the others may be at fault no more.
std::vector<Diagnostic> Loader::next_faults(const std::vector<Diagnostic>& found) const {
    std::vector<Diagnostic> errors;
    std::ranges::copy_if(found, std::back_inserter(errors), is_error);
    const auto is_in_set = [&](const Diagnostic& error) {
        return std::ranges::count(set_.policies, error.at.file,
                                  [](const auto& policy) { return policy.at.file; }) > 0;
    };
    const auto last = std::ranges::find_if(set_.policies | std::views::reverse, [&](const auto& policy) {
        return std::ranges::count(errors, policy.at.file, [](const auto& error) { return error.at.file; }) >
               0;
    });
    if (!std::ranges::all_of(errors, is_in_set))
        std::erase_if(errors, is_in_set);
    else if (last != std::ranges::rend(set_.policies))
        std::erase_if(errors, [&](const auto& error) { return error.at.file != last->at.file; });
    return errors;
}

/// In the place of a file with errors comes its last good text, and in the place of that, if it has errors,
/// an empty one, which masks others of its name. The first fault of a file decides; `affinityctl check` tells
/// the others.
void Loader::replace(const Diagnostic& fault) {
    const bool is_new = excluded_.insert(fault.at.file).second;
    const auto document = std::ranges::find(documents_, fault.at.file, &policy::Document::path);
    if (!is_new || document == documents_.end()) return;
    const std::string name(policy::policy_name(fault.at.file));
    const auto [at, is_first] = faults_.try_emplace(name);
    auto& entry = at->second;
    document->text.clear();
    document->fault.clear();
    if (!is_first) {
        entry.note = "so has its last good version, " + place_of(fault.at) + ": " + fault.message;
        entry.in_force.clear();
        return;
    }
    entry.at = fault.at;
    entry.policy = name;
    entry.message = fault.hint.empty() ? fault.message : fault.message + " (" + fault.hint + ")";
    entry.shown = policy::to_string(fault, true);
    entry.mend = untrusted_.contains(fault.at.file)
                     ? fmt::format("chown root {0}; chmod go-w {0}; affinityctl reload", fault.at.file)
                     : "affinityctl check " + fault.at.file;
    auto text = last_good(name);
    if (!text) entry.note = "its last good version cannot be used: " + text.error().to_string();
    if (!text || !*text) return;
    loaded_.good.emplace(name, **text);
    if (unchanged_.contains(fault.at.file)) return;
    entry.in_force = copy_of(task_.copies, name);
    unchanged_.insert(entry.in_force);
    *document = policy::Document{entry.in_force, std::move(**text)};
}

/// In force since this daemon reads, else before it; a link in the folder is none of ours. No value: there is
/// none. An Error: others may have written it, or it cannot be read.
Result<std::optional<std::string>> Loader::last_good(const std::string& name) const {
    if (const auto known = task_.good.find(name); known != task_.good.end()) return known->second;
    if (task_.copies.empty()) return std::nullopt;
    const auto path = copy_of(task_.copies, name);
    if (auto checked = host::check_ownership(task_.copies); !checked) return std::unexpected(checked.error());
    auto text = host::read_file(path, most_text, host::Links::refused);
    if (!text || !*text) return text;
    if (auto checked = host::check_ownership(path); !checked) return std::unexpected(checked.error());
    return text;
}

void Loader::finish(const std::vector<Diagnostic>& remarks) {
    for (const auto& remark : remarks)
        loaded_.warnings.push_back(policy::to_string(remark, true) + "\n");
    for (auto& [name, fault] : faults_) {
        loaded_.faulty.insert(name);
        loaded_.faults.push_back(std::move(fault));
    }
    std::ranges::sort(loaded_.faults, {}, [](const auto& fault) { return fault.at.file; });
    std::set<std::string> in_force;
    for (const auto& policy : set_.policies)
        in_force.insert(policy.at.file);
    for (auto& document : documents_) {
        const std::string name(policy::policy_name(document.path));
        if (!in_force.contains(document.path) || loaded_.faulty.contains(name)) continue;
        if (!is_on_trial(document.path)) {
            loaded_.good.insert_or_assign(name, std::move(document.text));
        } else if (auto before = last_good(name); before && *before) {
            loaded_.good.emplace(name, std::move(**before));
        }
    }
    if (!task_.is_only_checked) loaded_.unkept = write_copies(task_.copies, loaded_.good);
    policy::resolve_programs(set_);
    loaded_.world =
        std::make_shared<World>(std::move(set_), std::move(task_.machine), std::move(task_.usage));
    if (loaded_.world->placements().measured)
        loaded_.world->update(newest_latencies(root_, task_.state_dir, loaded_.world->machine().topology));
}

} // namespace

Loading::Loading(const host::Root& root, const Settings& settings, bool acts)
    : root_(root), folders_(settings.policy_folders),
      copies_(settings.dry_run || !acts ? "" : settings.state_dir + "/last-good"),
      state_dir_(settings.state_dir), is_trusting_(!acts || settings.trust_policies) {}

std::future<Loaded> Loading::begin(machine::Machine machine, planner::NicUsage usage,
                                   std::vector<Overlay> trials, bool is_only_checked) const {
    return host::run_aside(
        [&root = root_,
         task = Loader::Task{folders_, copies_, state_dir_, good_, std::move(trials), is_trusting_,
                             is_only_checked, std::move(machine), std::move(usage)}]() mutable {
            return Loader(root, std::move(task)).load();
        });
}

Result<std::shared_ptr<World>> Loading::end(Loaded loaded, std::vector<FileFault> others) {
    before_ = std::exchange(stamps_, std::move(loaded.stamps));
    changed_.reset();
    status_.at = std::chrono::system_clock::now();
    status_.refused = loaded.refused;
    if (!loaded.world) return fail(loaded.refused);
    good_ = std::move(loaded.good);
    unkept_ = std::move(loaded.unkept);
    status_.faults = std::move(others);
    std::ranges::move(loaded.faults, std::back_inserter(status_.faults));
    faulty_ = std::move(loaded.faulty);
    warnings_.clear();
    for (const auto& warning : loaded.warnings)
        if (!told_.contains(warning)) warnings_ += warning;
    told_ = {loaded.warnings.begin(), loaded.warnings.end()};
    return std::move(loaded.world);
}

bool Loading::has_changed() {
    constexpr std::int64_t second = 1'000'000'000;
    constexpr std::chrono::seconds longest_wait{2};
    const auto time = std::chrono::system_clock::now().time_since_epoch();
    const auto is_fresh = [now = std::chrono::nanoseconds(time).count()](const auto& entry) {
        return std::abs(now - static_cast<std::int64_t>(entry.second[2])) < second;
    };
    const auto stamps = stamps_of(folders_);
    if (stamps == stamps_) changed_.reset();
    if (stamps == stamps_) return false;
    if (!changed_) changed_ = std::chrono::steady_clock::now();
    return std::ranges::none_of(stamps, is_fresh) ||
           std::chrono::steady_clock::now() - *changed_ >= longest_wait;
}

bool Loading::is_as_before(const std::string& file) const {
    const auto now = stamps_.find(file), then = before_.find(file);
    return now != stamps_.end() && then != before_.end() && now->second == then->second;
}

std::string Loading::report() const {
    if (status_.faults.empty()) return {};
    std::string text = number_of(status_.faults.size()) + "; all others are in force";
    for (const auto& fault : status_.faults)
        text += "\n" + fault.shown + "\n" + (fault.policy.empty() ? "" : "policy " + fault.policy + ": ") +
                in_its_place(fault);
    return text;
}

std::vector<planner::Problem> Loading::problems() const {
    std::vector<planner::Problem> list;
    if (!status_.refused.empty())
        list.push_back({{},
                        "reload",
                        status_.refused + "\nwhat was in force before stays",
                        "affinityctl reload, once that is mended"});
    for (const auto& fault : status_.faults)
        list.push_back(
            {fault.policy, place_of(fault.at), fault.message + "; " + in_its_place(fault), fault.mend});
    if (!unkept_.empty())
        list.push_back({{},
                        "last good policies",
                        "not kept for a start with errors in their files: " + unkept_,
                        "affinityctl reload, once there is room"});
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

} // namespace affinityd::core
