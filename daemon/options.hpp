// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "policy/settings.hpp"

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
    exit_running = 4, ///< another daemon has the runtime directory
    exit_config = 78, ///< settings or folders of policies are unusable: restarting does not help; sysexits.h
};

struct Options {
    policy::Settings settings;
    policy::Settings command_line;  ///< without what the settings file says
    std::string root = "/", proc{}; ///< host::Root::open()
    bool verbose = false;
    bool config_is_named = false; ///< settings.config is to be there
};

/// The settings of the command line with what the settings file says now.
[[nodiscard]] Result<policy::Settings> read_settings_again(const Options& options);

/// The command line and the settings file it names. An error value is the code to exit with (0 after --help);
/// what was to be said is on standard error.
[[nodiscard]] std::expected<Options, int> parse_options(int argc, char** argv);

/// To the journal with priorities under systemd, else to standard error.
[[nodiscard]] std::shared_ptr<spdlog::logger> make_logger(bool verbose);

} // namespace affinityd
