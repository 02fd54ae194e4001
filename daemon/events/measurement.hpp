// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/settings.hpp"
#include "base/error.hpp"
#include "events/sources.hpp"
#include "measure/child.hpp"
#include "measure/program.hpp"
#include "measure/run.hpp"

#include <functional>
#include <optional>
#include <string>

namespace affinityd::events {

/// Connects one measuring child at a time to the event loop, which never waits for it.
class MeasurementChild {
  public:
    using Done = std::function<void(const measure::Run& run)>;
    MeasurementChild(sd_event* event, app::Settings::Measure settings, Done done,
                     std::optional<std::string> program = measure::find_ttcp());
    MeasurementChild(const MeasurementChild&) = delete;
    MeasurementChild& operator=(const MeasurementChild&) = delete;
    ~MeasurementChild() = default;

    /// `may_skip`: a run by the timer, which a busy machine may do without; what a person asks for always
    /// runs. After an Error no child is left, and the next start() is free to try.
    [[nodiscard]] Result<void> start(bool may_skip);
    [[nodiscard]] bool running() const { return watched_.has_value(); }

  private:
    /// In this order: the sources end before the child is killed and reaped.
    struct Watched {
        measure::Child child;
        Source output, exit, timeout;
    };
    static int on_output(sd_event_source*, int fd, std::uint32_t, void* userdata);
    static int on_exit(sd_event_source*, const siginfo_t* info, void* userdata);
    static int on_timeout(sd_event_source*, std::uint64_t, void* userdata);
    [[nodiscard]] int watch(Watched& watched, std::chrono::seconds limit);

    sd_event* event_;
    app::Settings::Measure settings_;
    Done done_;
    std::optional<std::string> program_;
    std::optional<Watched> watched_;
};

} // namespace affinityd::events
