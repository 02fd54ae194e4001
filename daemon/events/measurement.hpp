// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accounting/measuring_run.hpp"
#include "app/settings.hpp"
#include "base/error.hpp"
#include "events/sources.hpp"
#include "host/fd.hpp"

#include <functional>
#include <string>

#include <sys/types.h>

namespace affinityd::events {

/// Runs the ttcp program as a child: lowered privileges and priority, bounded in time and bytes, killable;
/// one at a time. The daemon never waits for it.
class MeasurementChild {
  public:
    using Done = std::function<void(const accounting::MeasuringRun& run)>;
    MeasurementChild(sd_event* event, app::Settings::Measure settings, Done done);
    MeasurementChild(const MeasurementChild&) = delete;
    MeasurementChild& operator=(const MeasurementChild&) = delete;
    ~MeasurementChild();

    /// `may_skip`: by itself; what a person asks for is run on a busy machine too.
    [[nodiscard]] Result<void> start(bool may_skip);
    [[nodiscard]] bool running() const { return pid_ > 0; }

  private:
    static int on_output(sd_event_source*, int fd, std::uint32_t, void* userdata);
    static int on_exit(sd_event_source*, const siginfo_t* info, void* userdata);
    static int on_timeout(sd_event_source*, std::uint64_t, void* userdata);
    void drain();

    sd_event* event_;
    app::Settings::Measure settings_;
    Done done_;
    pid_t pid_ = 0;
    bool timed_out_ = false;
    host::Fd output_;
    std::string text_;
    Source output_source_, exit_source_, timeout_source_;
};

} // namespace affinityd::events
