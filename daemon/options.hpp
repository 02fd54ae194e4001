// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/settings.hpp"

#include <expected>
#include <memory>
#include <string>

namespace spdlog {
class logger;
}

namespace affinityd {

/// Exit codes of the daemon, affinityd(8).
enum Exit : int {
    exit_failure = 1,
    exit_usage = 2,
    exit_config = 3,  ///< policies or settings have errors: restarting does not help
    exit_running = 4, ///< another daemon has the runtime directory
};

struct Options {
    app::Settings settings;
    std::string root = "/";
    bool verbose = false;
};

/// The command line and the settings file it names. An error value is the code to exit with (0 after --help);
/// what was to be said is on standard error.
[[nodiscard]] std::expected<Options, int> parse_options(int argc, char** argv);

/// To the journal with priorities under systemd, else to standard error.
[[nodiscard]] std::shared_ptr<spdlog::logger> make_logger(bool verbose);

} // namespace affinityd
