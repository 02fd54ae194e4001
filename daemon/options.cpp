// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include "host/file.hpp"
#include "policy/reader.hpp"

#include <CLI/CLI.hpp>
#include <cstdlib>

#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/sinks/systemd_sink.h>
#include <spdlog/spdlog.h>

namespace affinityd {

namespace {

Result<void> load_settings(policy::Settings& settings, bool named) {
    const auto text = host::read_file(settings.config);
    if (!text) return std::unexpected(text.error());
    if (!*text) {
        if (named) return fail("there is no such file", settings.config);
        return {}; // the usual place may well be empty
    }
    if (auto checked = host::check_ownership(settings.config); !checked) return checked;
    return policy::read_settings(settings.config, **text, settings);
}

} // namespace

std::expected<Options, int> parse_options(int argc, char** argv) {
    Options options;
    CLI::App cli("Keeps processes, threads and interrupts on the CPUs that policies ask for.", "affinityd");
    bool foreground = false;
    std::vector<std::string> folders;
    std::string config;
    cli.add_flag("--foreground", foreground,
                 "stay in the foreground (it always does; for service managers other than systemd)");
    cli.add_option("--config", config, fmt::format("settings file (default {})", policy::standard_settings));
    cli.add_option("--policies", folders,
                   "policy folder instead of the three usual ones; may be given again, the last wins");
    cli.add_option("--runtime-dir", options.settings.runtime_dir, "lock, control socket and undo journal")
        ->capture_default_str();
    cli.add_option("--state-dir", options.settings.state_dir, "measurement history")->capture_default_str();
    cli.add_flag("--dry-run", options.settings.dry_run, "plan and tell, but change nothing");
    cli.add_option("--proc", options.proc,
                   "where the machine's /proc is mounted: a container's own is read-only in part");
    cli.add_flag("--trust-policies", options.settings.trust_policies,
                 "policies may be in folders that others can write to, as a ConfigMap's are");
    auto* root =
        cli.add_option("--root", options.root, "a recorded machine instead of this one; needs --dry-run");
    cli.add_flag("-v,--verbose", options.verbose, "log every change");
    cli.set_version_flag("--version", "affinityd " AFFINITYD_VERSION);
    try {
        cli.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        const int code = cli.exit(error);
        return std::unexpected(code == 0 ? 0 : static_cast<int>(exit_usage));
    }
    if (root->count() > 0 && !options.settings.dry_run) {
        fmt::print(stderr,
                   "affinityd: --root only together with --dry-run: a recorded machine cannot be changed\n");
        return std::unexpected(static_cast<int>(exit_usage));
    }
    options.config_is_named = !config.empty();
    options.settings.config = options.config_is_named ? config : policy::standard_settings;
    options.settings.policy_folders = folders.empty() ? policy::standard_folders() : folders;
    options.command_line = options.settings;
    if (auto loaded = load_settings(options.settings, options.config_is_named); !loaded) {
        fmt::print(stderr, "affinityd: {}\n", loaded.error().to_string());
        return std::unexpected(static_cast<int>(exit_config));
    }
    return options;
}

Result<policy::Settings> read_settings_again(const Options& options) {
    auto settings = options.command_line;
    if (auto loaded = load_settings(settings, options.config_is_named); !loaded)
        return std::unexpected(std::move(loaded.error()));
    return settings;
}

std::shared_ptr<spdlog::logger> make_logger(bool verbose) {
    std::shared_ptr<spdlog::logger> logger;
    if (std::getenv("JOURNAL_STREAM") != nullptr) {
        logger = std::make_shared<spdlog::logger>(
            "affinityd", std::make_shared<spdlog::sinks::systemd_sink_mt>("affinityd"));
    } else {
        logger = std::make_shared<spdlog::logger>("affinityd",
                                                  std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
        logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %v");
    }
    logger->set_level(verbose ? spdlog::level::debug : spdlog::level::info);
    logger->flush_on(spdlog::level::info);
    return logger;
}

} // namespace affinityd
