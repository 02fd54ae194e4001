// SPDX-License-Identifier: Apache-2.0
// Policies on trial, and what the daemon does when one begins and ends.
#include "base/clock.hpp"
#include "base/text.hpp"
#include "behaviours/trials/effects.hpp"
#include "host/file.hpp"
#include "planner/judgement.hpp"
#include "status/json.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace affinityd::behaviours {

namespace {

using std::chrono::milliseconds;

constexpr std::string_view first_word = "#affinityd-trial-2";
constexpr std::size_t longest_name = 100, longest_head = 200;
// A round takes a 24th of its trial, at least 1 s, and at most 10 s or a 240th, whichever is longer.
constexpr double usual_round = 10, shortest_round = 1, rounds_of_long = 240, rounds_of_short = 24;
constexpr std::size_t most_ended = 8;

/// A name that is one component of a path, and can stand in a line of a log.
bool is_trial_name(std::string_view name) {
    const auto is_control = [](unsigned char byte) { return byte < 0x20 || byte == 0x7f; };
    return !name.empty() && name.size() <= longest_name && !name.starts_with('.') && !name.starts_with('#') &&
           !name.contains('/') && std::ranges::none_of(name, is_control);
}

/// A policy that is tried for a while, in turn with how it is without. Times are since the boot.
struct Trial {
    std::string policy, text;
    std::chrono::milliseconds began{}, ends{};
    std::string replaces{};     ///< the file that counts without it; "": none
    std::uint64_t own_text = 0; ///< hash of the file that `keep` writes, when the trial began; 0: none
    std::string file{};         ///< that it is kept in
    planner::Alternation turns{2, round_of(ends - began)};                ///< without it, with it
    [[nodiscard]] bool is_placed() const { return turns.present() == 1; } ///< it is to be in force now
    [[nodiscard]] planner::Judgement judgement() const {
        return planner::judge(turns.rounds(0), turns.rounds(1));
    }
    /// In seconds.
    [[nodiscard]] static double round_of(std::chrono::milliseconds length);
    [[nodiscard]] status::TrialStatus status(std::chrono::milliseconds now) const;
};

/// The policies on trial, each in a file of the runtime directory: a daemon that is killed takes them up when
/// it is started again, and a boot ends them. The first line of a file has the times.
class Trials {
  public:
    static constexpr std::size_t most = 8, longest_text = 1U << 20;
    static constexpr std::chrono::seconds shortest{10}, longest{86400};
    explicit Trials(std::string folder) : folder_(std::move(folder)) {}

    /// Reads what a daemon before has left. Returns the policies whose time is over, and that are removed. An
    /// Error: the folder is not root's alone; nothing of it counts.
    [[nodiscard]] Result<std::vector<std::string>> recover(std::chrono::milliseconds now);
    /// Why this one cannot begin; "": it can.
    [[nodiscard]] std::string refusal_of(const Trial& trial) const;
    /// Writes it down, and names its file. An Error: it is not on trial.
    [[nodiscard]] Result<void> add(Trial trial);
    void remove(const std::string& policy);
    void clear();

    [[nodiscard]] std::string file_of(const std::string& policy) const {
        return folder_ + "/" + policy + ".yaml";
    }
    [[nodiscard]] const Trial* find(std::string_view policy) const;
    [[nodiscard]] std::vector<Trial>& all() { return trials_; }
    [[nodiscard]] const std::vector<Trial>& all() const { return trials_; }
    /// For Loading. Without it, the policy of its name counts, or its programs are only watched.
    [[nodiscard]] std::vector<Overlay> overlays() const;
    [[nodiscard]] std::vector<status::TrialStatus> status(std::chrono::milliseconds now) const;

  private:
    std::string folder_;
    std::vector<Trial> trials_;
};

/// Puts policies on trial, compares both turns each second, and takes them back when their time is over,
/// whatever the verdict; `affinity: auto` tries by itself.
class TrialRunner final : public Behaviour {
  public:
    explicit TrialRunner(Daemon& daemon);
    World::Choices choices(const World& world) override {
        look(); // what grew until now counts for nothing
        return automatic_.choices(world);
    }
    std::vector<Overlay> overlays() const override { return trials_.overlays(); }
    void released(const std::string& what, uid_t user) override;
    Slices end_pass() override;
    Clock::time_point due() const override;
    void tick() override;
    void begin_stop(bool is_handover) override;
    void report(status::Overview& into) const override;
    void explain(const inventory::ProcessScan& scan, status::ProcessExplanation& into) const override;
    bool run(Order& order) override;

  private:
    void recover();
    [[nodiscard]] std::string fault_of(const Loaded& loaded, const std::string& policy) const;
    void begin_trial(Order order);
    void end_trial(Order order);
    [[nodiscard]] Slices try_policy(Trial trial, uid_t user, Answer answer);
    [[nodiscard]] Slices reload(std::string headline = "trials", Answer answer = {},
                                Until until = Until::begun);
    [[nodiscard]] Slices take_back(std::string policy, bool is_kept, uid_t user, Answer answer);
    void end_those(const std::function<bool(const Trial&)>& is_over, const std::string& by);
    [[nodiscard]] std::string close(Trial trial, const char* how, const std::string& by);
    void look();
    void release_ended();
    [[nodiscard]] Slices watch();

    Daemon& daemon_;
    Shared& shared_;
    Trials trials_;
    Effects effects_;
    Automatic automatic_;
    std::vector<status::TrialStatus> ended_; ///< the last ones
    Clock::time_point next_{};               ///< tick, where something is watched
    bool is_in_tick_ = false;                ///< its work is under way
    bool is_stopping_ = false;
};

std::string head_of(const Trial& trial) {
    return fmt::format("{} {} {} {} {}\n", first_word, trial.began.count(), trial.ends.count(),
                       trial.own_text, trial.replaces);
}

/// No value: it was not written by add().
std::optional<Trial> read_trial(std::string policy, const std::string& text) {
    std::istringstream head(text.substr(0, text.find('\n')));
    std::string word;
    std::int64_t began = 0, ends = 0;
    std::uint64_t own_text = 0;
    head >> word >> began >> ends >> own_text;
    const bool is_ours = head && word == first_word && head.get() == ' ' && text.contains('\n');
    if (!is_ours || began < 0 || ends < began) return std::nullopt;
    std::string replaces;
    std::getline(head, replaces);
    return Trial{.policy = std::move(policy),
                 .text = text.substr(text.find('\n') + 1),
                 .began = milliseconds(began),
                 .ends = milliseconds(ends),
                 .replaces = std::move(replaces),
                 .own_text = own_text};
}

std::string seconds_of(milliseconds time) {
    return counted(static_cast<std::uint64_t>(std::max(milliseconds(0), time).count() + 999) / 1000,
                   "second");
}

double Trial::round_of(milliseconds length) {
    const double seconds = std::chrono::duration<double>(length).count();
    return std::clamp(seconds / rounds_of_short, shortest_round,
                      std::max(usual_round, seconds / rounds_of_long));
}

status::TrialStatus Trial::status(milliseconds now) const {
    const milliseconds left = std::max(ends - now, milliseconds(0)),
                       turn(static_cast<std::int64_t>(turns.left() * 1e3));
    return {.policy = policy,
            .file = file,
            .replaces = replaces,
            .own_text = own_text,
            .length = ends - began,
            .left = left,
            .until_placed = is_placed() ? milliseconds(0) : std::clamp(turn, milliseconds(0), left),
            .judgement = judgement()};
}

Result<std::vector<std::string>> Trials::recover(milliseconds now) {
    std::vector<std::string> over;
    if (auto checked = host::check_ownership(folder_); !checked) return std::unexpected(checked.error());
    std::error_code code;
    for (std::filesystem::directory_iterator at(folder_, code), end; !code && at != end; at.increment(code)) {
        const auto path = at->path().string();
        auto name = at->path().stem().string();
        const auto text = host::read_file(path, longest_text + longest_head, host::Links::refused);
        auto trial = text && *text && path.ends_with(".yaml") ? read_trial(name, **text) : std::nullopt;
        const bool goes_on = trial && trial->began <= now && now < trial->ends &&
                             trial->ends <= now + longest && trials_.size() < most;
        if (!goes_on) {
            std::error_code ignored;
            std::filesystem::remove(path, ignored);
            if (trial) over.push_back(std::move(name));
            continue;
        }
        trial->file = path;
        trials_.push_back(std::move(*trial));
    }
    return over;
}

std::string Trials::refusal_of(const Trial& trial) const {
    const auto length = trial.ends - trial.began;
    if (!is_trial_name(trial.policy)) return "this is no name of a policy";
    if (trial.text.size() > longest_text) return "the text is longer than 1 MiB";
    if (length < shortest || length > longest) return "a trial takes 10 s to 24 h";
    if (const auto* other = find(trial.policy))
        return fmt::format("policy {} is on trial already, for {} more: affinityctl keep {}, or affinityctl "
                           "try {} --back",
                           trial.policy, seconds_of(other->ends - trial.began), trial.policy, trial.policy);
    if (trials_.size() >= most) return fmt::format("{} policies are on trial already", most);
    return {};
}

Result<void> Trials::add(Trial trial) {
    if (auto made = host::make_directories(folder_, 0700); !made) return made;
    if (auto checked = host::check_ownership(folder_); !checked) return checked;
    trial.file = file_of(trial.policy);
    if (auto written = host::replace_file(trial.file, head_of(trial) + trial.text, 0600); !written)
        return written;
    trials_.push_back(std::move(trial));
    return {};
}

void Trials::remove(const std::string& policy) {
    std::error_code ignored;
    std::filesystem::remove(file_of(policy), ignored);
    std::erase_if(trials_, [&](const Trial& trial) { return trial.policy == policy; });
}

void Trials::clear() {
    while (!trials_.empty())
        remove(std::string(trials_.back().policy));
}

const Trial* Trials::find(std::string_view policy) const {
    const auto found = std::ranges::find(trials_, policy, &Trial::policy);
    return found == trials_.end() ? nullptr : &*found;
}

std::vector<Overlay> Trials::overlays() const {
    std::vector<Overlay> overlays;
    for (const auto& trial : trials_)
        if (trial.is_placed() || trial.replaces.empty())
            overlays.push_back({{trial.file, trial.text}, !trial.is_placed()});
    return overlays;
}

std::vector<status::TrialStatus> Trials::status(milliseconds now) const {
    std::vector<status::TrialStatus> list;
    for (const auto& trial : trials_)
        list.push_back(trial.status(now));
    return list;
}

TrialRunner::TrialRunner(Daemon& daemon)
    : daemon_(daemon), shared_(daemon.shared()), trials_(shared_.settings.runtime_dir + "/trials"),
      effects_(daemon), automatic_(shared_, effects_) {
    if (shared_.acts()) recover();
}

/// Takes up what a daemon before has left.
void TrialRunner::recover() {
    const auto over = trials_.recover(time_since_boot());
    if (!over) return shared_.log.error("policies on trial do not count: " + over.error().to_string());
    for (const auto& policy : *over)
        shared_.log.info(
            fmt::format("the trial of policy {} ended while no daemon ran: it goes back", policy),
            Log::Kind::always(), {.policy = policy});
    for (const auto& trial : trials_.all())
        shared_.log.info(fmt::format("the trial of policy {} goes on for {}", trial.policy,
                                     seconds_of(trial.ends - time_since_boot())),
                         Log::Kind::always(), {.policy = trial.policy});
}

void TrialRunner::released(const std::string& what, uid_t user) {
    end_those([&](const Trial& trial) { return what.empty() || trial.policy == what; },
              fmt::format(", as user {} released it", user));
}

Slices TrialRunner::end_pass() {
    automatic_.end_pass(trials_.all().empty());
    co_return;
}

Behaviour::Clock::time_point TrialRunner::due() const {
    const bool is_watching = effects_.is_watching() || !trials_.all().empty();
    return is_watching && !is_stopping_ ? next_ : Clock::time_point::max();
}

/// Each second, and when a trial ends.
void TrialRunner::tick() {
    constexpr milliseconds second{1000}, moment{20};
    const auto now = time_since_boot();
    end_those([now](const Trial& trial) { return now >= trial.ends; }, "");
    next_ = Clock::now() + second;
    for (const auto& trial : trials_.all())
        next_ = std::min(next_, Clock::now() + std::max(trial.ends - now, moment));
    if (!std::exchange(is_in_tick_, true)) shared_.work.add(watch());
}

Slices TrialRunner::watch() {
    for (auto reading = effects_.read(); !reading.step(a_part);)
        co_yield pause;
    look();
    automatic_.tick();
    is_in_tick_ = false;
}

void TrialRunner::begin_stop(bool is_handover) {
    is_stopping_ = true;
    if (!is_handover) trials_.clear();
}

void TrialRunner::report(status::Overview& into) const {
    into.trials = trials_.status(time_since_boot());
    for (std::size_t i = 0; i < into.policies.size(); ++i)
        into.policies[i].automatic = automatic_.state(shared_.current->policy(i));
}

void TrialRunner::explain(const inventory::ProcessScan&, status::ProcessExplanation& into) const {
    if (const auto* resolved = shared_.current.placements().find(into.policy))
        into.automatic = automatic_.state(*resolved->policy);
    if (const auto* trial = trials_.find(into.policy); trial != nullptr && trial->is_placed())
        into.trial_left = trial->ends - time_since_boot();
}

bool TrialRunner::run(Order& order) {
    if (order.verb == "GetTrials")
        order.answer(status::to_text(trials_.status(time_since_boot()), ended_));
    else if (order.verb == "Try")
        begin_trial(std::move(order));
    else if (order.verb == "EndTrial")
        end_trial(std::move(order));
    else
        return false;
    return true;
}

void TrialRunner::begin_trial(Order order) {
    auto& [verb, texts, user, answer] = order;
    const auto seconds = parse_number<std::uint32_t>(texts.at(2));
    if (!seconds) return answer(fail("the third argument is a number of seconds", texts[2]));
    if (!shared_.acts()) return answer(fail("this is a dry run: nothing can be tried"));
    const auto now = time_since_boot();
    Trial trial{.policy = std::move(texts[0]),
                .text = std::move(texts[1]),
                .began = now,
                .ends = now + std::chrono::seconds(*seconds)};
    shared_.work.add(try_policy(std::move(trial), user, std::move(answer)));
}

void TrialRunner::end_trial(Order order) {
    auto& [verb, texts, user, answer] = order;
    if (texts.at(1) != "keep" && texts[1] != "back")
        return answer(fail("the second argument is keep or back", texts[1]));
    shared_.work.add(take_back(std::move(texts[0]), texts[1] == "keep", user, std::move(answer)));
}

/// Why a policy on trial cannot be in force as read, with the place of the fault; "": it can. A fault of
/// another file counts if the policy brings it about.
std::string TrialRunner::fault_of(const Loaded& loaded, const std::string& policy) const {
    if (!loaded.refused.empty()) return loaded.refused;
    for (const auto& fault : loaded.faults) {
        if (daemon_.loading().faulty().contains(fault.policy) && fault.at.file != trials_.file_of(policy))
            continue;
        return fmt::format("{}:{}:{}: {}", fault.at.file, fault.at.line, fault.at.column, fault.message);
    }
    const auto* found = loaded.world->placements().find(policy);
    if (found == nullptr) return "the text has no policy";
    return found->policy->model_auto ? "a policy with affinity: auto tries by itself" : "";
}

/// Reads the text beside all others before it counts.
Slices TrialRunner::try_policy(Trial trial, uid_t user, Answer answer) {
    constexpr milliseconds patience{1};
    const auto length = trial.ends - trial.began;
    auto refusal = trials_.refusal_of(trial);
    if (refusal.empty() && shared_.releases.policy(trial.policy))
        refusal = "the policy was released by hand: affinityctl apply takes it up again";
    if (!refusal.empty()) co_return answer(fail(std::move(refusal), trial.policy));
    const auto policy = trial.policy;
    auto all = trials_.overlays();
    all.push_back({{trials_.file_of(policy), trial.text}});
    auto checked =
        daemon_.loading().begin(shared_.current->machine(), shared_.current->usage(), std::move(all), true);
    while (checked.wait_for(patience) == std::future_status::timeout)
        co_yield end_of_slice;
    if (auto fault = fault_of(checked.get(), policy); !fault.empty())
        co_return answer(fail(std::move(fault)));
    if (const auto* replaced = shared_.current.placements().find(policy))
        trial.replaces = replaced->policy->at.file;
    const auto own = host::read_file(shared_.settings.policy_folders.back() + "/" + policy + ".yaml");
    if (own && *own) trial.own_text = fnv1a_64(**own);
    if (auto added = trials_.add(std::move(trial)); !added) co_return answer(std::unexpected(added.error()));
    const auto text = fmt::format("policy {} is on trial for {}", policy, seconds_of(length));
    shared_.log.info(fmt::format("{}, by user {}", text, user), Log::Kind::always(),
                     {.policy = policy, .user = user});
    for (auto reading = reload(text, std::move(answer), Until::begun); !reading.step(a_part);)
        co_yield pause;
    if (!daemon_.loading().status().refused.empty()) trials_.remove(policy); // which the answer says
}

/// Reads the policies again with those on trial.
Slices TrialRunner::reload(std::string headline, Answer answer, Until until) {
    if (!answer) answer = [](const auto&) {};
    for (auto reading =
             daemon_.read_policies(std::move(answer), until, ReloadReason::overlay, std::move(headline));
         !reading.step(a_part);)
        co_yield pause;
    look(); // what grew until now counts for nothing
    if (!daemon_.loading().status().refused.empty()) release_ended();
}

/// A reload has failed: those whose time is over let go of all that they hold, until one succeeds.
void TrialRunner::release_ended() {
    for (const auto& policy : shared_.current->policies().policies)
        if (policy.at.file == trials_.file_of(policy.name) && trials_.find(policy.name) == nullptr)
            shared_.releases.release_policy(policy.name);
    daemon_.update_claims();
    daemon_.begin_pass(false);
}

Slices TrialRunner::take_back(std::string policy, bool is_kept, uid_t user, Answer answer) {
    const auto* trial = trials_.find(policy);
    if (trial == nullptr) co_return answer(fail("this policy is not on trial", policy));
    const auto text = close(*trial, is_kept ? "kept" : "went back", fmt::format(", by user {}", user));
    for (auto reading = reload(text, std::move(answer), Until::done); !reading.step(a_part);)
        co_yield pause;
}

/// Removes a trial with its file, and keeps the verdict in the history. Returns it in words.
std::string TrialRunner::close(Trial trial, const char* how, const std::string& by) {
    const auto now = time_since_boot();
    const auto judgement = trial.judgement();
    const auto found = fmt::format("{}; {}", how, judgement.sentence);
    auto text = fmt::format("the trial of policy {} is over: {}", trial.policy, found);
    shared_.log.info(text + by, Log::Kind::always(), {.policy = trial.policy});
    state::MeasurementRecord record;
    record.time = std::time(nullptr);
    record.kind = "trial";
    record.outcome = "done";
    record.reason = found;
    record.path = record.policies = trial.policy;
    if (const auto* tried = shared_.current.placements().find(trial.policy))
        record.model = to_string(tried->policy->model);
    record.seconds = std::chrono::duration<double>(std::min(now, trial.ends) - trial.began).count();
    record.detail = status::to_text(judgement);
    shared_.keep(std::move(record));
    if (ended_.size() >= most_ended) ended_.erase(ended_.begin());
    ended_.push_back(trial.status(trial.ends));
    ended_.back().outcome = how;
    trials_.remove(trial.policy);
    return text;
}

/// Each second of a trial. A side counts only while it is in force: a reload may be refused.
void TrialRunner::look() {
    bool has_turned = false;
    const auto& policies = shared_.current->policies().policies;
    for (auto& trial : trials_.all()) {
        const auto found = std::ranges::find(policies, trial.policy, &policy::Policy::name);
        if (found == policies.end()) { // the file that it replaces was removed
            has_turned |= !std::exchange(trial.replaces, {}).empty();
            continue;
        }
        const auto index = static_cast<std::size_t>(found - policies.begin());
        const auto effect = effects_.look(index, trial.turns.is_settling());
        // A new policy's text is there in both turns, in one of them without effect.
        const bool is_in_force =
            found->at.file == trial.file && (found->model != policy::Model::none || !trial.replaces.empty());
        if (is_in_force != trial.is_placed() || !trial.turns.add(effect)) continue;
        const auto before = trial.turns.present();
        trial.turns.count();
        has_turned |= trial.turns.present() != before;
    }
    if (has_turned) shared_.work.add(reload());
}

/// They go back with the next reload, whose pass follows.
void TrialRunner::end_those(const std::function<bool(const Trial&)>& is_over, const std::string& by) {
    std::vector<Trial> over;
    std::ranges::copy_if(trials_.all(), std::back_inserter(over), is_over);
    for (const auto& trial : over)
        static_cast<void>(close(trial, "went back", by));
    if (!over.empty()) shared_.work.add(reload());
}

} // namespace

void add_trials(Daemon& daemon, const Bus&) { daemon.add(std::make_unique<TrialRunner>(daemon)); }

} // namespace affinityd::behaviours
