// SPDX-License-Identifier: Apache-2.0
#include "app/loading.hpp"

#include "app/message_ids.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace affinityd::app {

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
