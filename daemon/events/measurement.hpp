// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "events/sources.hpp"
#include "measure/program.hpp"
#include "measure/run.hpp"
#include "policy/settings.hpp"

#include <functional>
#include <optional>
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
    [[nodiscard]] bool running() const { return watched_.has_value(); }

  private:
    /// In this order: the sources end before the run is.
    struct Watched {
        std::variant<measure::UnitRun, measure::Child> run;
        Source output, exit, timeout;
    };
    static int on_output(sd_event_source*, int fd, std::uint32_t, void* userdata);
    static int on_exit(sd_event_source*, const siginfo_t* info, void* userdata);
    static int on_timeout(sd_event_source*, std::uint64_t, void* userdata);
    [[nodiscard]] Result<Watched> begin(const std::vector<std::string>& options) const;
    [[nodiscard]] int watch(Watched& watched, std::chrono::seconds limit);
    void end(const measure::Run& run);

    sd_event* event_;
    policy::Settings::Measure settings_;
    Done done_;
    Places places_;
    std::optional<Watched> watched_;
};

} // namespace affinityd::events
