// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/commands.hpp"
#include "base/error.hpp"
#include "events/sources.hpp"
#include "measure/program.hpp"
#include "measure/run.hpp"
#include "policy/settings.hpp"

#include <functional>
#include <optional>
#include <random>
#include <string>
#include <variant>
#include <vector>

namespace affinityd::events {

/// Connects one measurement at a time to the event loop, which never waits for it. It runs in a unit of its
/// own where the service manager listens for one, and else as a child of the daemon.
class Measurement {
  public:
    using Done = std::function<void(const measure::Run& run)>;
    /// Where a run can be had.
    struct Places {
        std::string socket; ///< of affinity-measure.socket; nobody need listen there
        std::optional<std::string> program = measure::find_ttcp();
    };
    Measurement(sd_event* event, policy::Settings::Measure settings, Done done, Places places);
    Measurement(const Measurement&) = delete;
    Measurement& operator=(const Measurement&) = delete;
    ~Measurement() = default;

    /// `may_skip`: a run by the timer, which a busy machine may do without; what a person asks for always
    /// runs. After an Error no run is left, and the next start() is free to try.
    [[nodiscard]] Result<void> start(bool may_skip);
    /// From the next run on.
    void use(const policy::Settings::Measure& settings) { settings_ = settings; }
    [[nodiscard]] bool running() const { return run_.has_value(); }

  private:
    using Running = std::variant<measure::UnitRun, measure::Child>;
    static int on_exit(sd_event_source*, const siginfo_t* info, void* userdata);
    [[nodiscard]] Result<Running> begin(const std::vector<std::string>& options) const;
    [[nodiscard]] Result<void> watch(std::chrono::seconds limit);
    void read_output();
    void time_out();
    void end(const measure::Run& run);

    sd_event* event_;
    policy::Settings::Measure settings_;
    Done done_;
    Places places_;
    std::optional<Running> run_; ///< its sources end before it
    Descriptor output_{[this] { read_output(); }};
    Source exit_;
    Timer timeout_{[this] { time_out(); }};
};

/// Measures at the interval of affinityd.yaml(5), and when a person asks.
class MeasureSchedule {
  public:
    /// Keeps a run, and says what it has shown, or why it has no result.
    using Keep = std::function<Result<std::string>(const measure::Run& run)>;
    MeasureSchedule(sd_event* event, const policy::Settings& settings, Keep keep);

    [[nodiscard]] Result<void> start();
    /// A run now. The answer is an Error if one is running already, or it could not be started.
    void measure(app::Answer answer, app::Until until);
    /// From now on; a run under way is not changed, and the same settings change nothing.
    void use(const policy::Settings::Measure& settings);
    /// The daemon ends.
    void end();

  private:
    [[nodiscard]] Result<void> begin(bool may_skip);
    void ended(const measure::Run& run);
    void arm();
    sd_event* event_;
    policy::Settings::Measure settings_;
    Keep keep_;
    app::Answer waiting_; ///< for the run under way; may be empty
    Measurement measurement_;
    std::minstd_rand random_{std::random_device{}()};
    Timer timer_;
};

} // namespace affinityd::events
