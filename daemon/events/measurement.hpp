// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "core/commands.hpp"
#include "events/sources.hpp"
#include "measure/run.hpp"
#include "policy/settings.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <variant>
#include <vector>

namespace affinityd::events {

/// Measures at the interval of affinityd.yaml(5), and when a person asks: one run at a time, for which the
/// loop never waits. A run has a unit of its own where the service manager listens for one, and else is a
/// child of the daemon.
class Measurements {
  public:
    /// Keeps a run, and says what it has shown, or why it has no result.
    using Keep = std::function<Result<std::string>(const measure::Run& run)>;
    Measurements(sd_event* event, const policy::Settings& settings, Keep keep);
    Measurements(const Measurements&) = delete;
    Measurements& operator=(const Measurements&) = delete;
    ~Measurements() = default;

    [[nodiscard]] Result<void> start();
    /// A run now. The answer is an Error if one is running already, or it could not be started.
    void measure(core::Answer answer, core::Until until);
    /// From now on; a run under way is not changed, and the same settings change nothing.
    void use(const policy::Settings::Measure& settings);
    /// The daemon ends.
    void end();

  private:
    using Running = std::variant<measure::UnitRun, measure::Child>;
    /// `may_skip`: a run by the timer, which a busy machine may do without; what a person asks for always
    /// runs.
    [[nodiscard]] Result<void> begin(bool may_skip);
    [[nodiscard]] Result<Running> start_run(const std::vector<std::string>& options) const;
    [[nodiscard]] Result<void> watch(std::chrono::seconds limit);
    static int on_exit(sd_event_source*, const siginfo_t* info, void* userdata);
    void read_output();
    void time_out();
    void ended(const measure::Run& run);
    void arm();

    sd_event* event_;
    policy::Settings::Measure settings_;
    std::string socket_; ///< of affinity-measure.socket, which need not be active
    Keep keep_;
    core::Answer waiting_;       ///< for the run under way; may be empty
    std::optional<Running> run_; ///< its sources end before it
    Descriptor output_{[this] { read_output(); }};
    Source exit_;
    Timer timeout_{[this] { time_out(); }};
    std::minstd_rand random_{std::random_device{}()};
    Timer next_{[this] {
        arm();
        static_cast<void>(begin(true).has_value()); // a run that could not start is on record
    }};
};

} // namespace affinityd::events
