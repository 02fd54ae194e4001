// SPDX-License-Identifier: Apache-2.0
// The parts list of the daemon: options, settings, parts, loop.
#include "behaviours/list.hpp"
#include "control/joins.hpp"
#include "control/server.hpp"
#include "core/daemon.hpp"
#include "events/loop.hpp"
#include "host/file.hpp"
#include "host/root.hpp"
#include "host/scheduler.hpp"
#include "host/self.hpp"
#include "options.hpp"
#include "state/journal.hpp"

#include <cstdio>

#include <fmt/format.h>

using namespace affinityd;

namespace {

int give_up(core::Log& log, const Error& error, int code = exit_failure) {
    log.error(error.to_string(), core::Log::Kind::always());
    return code;
}

/// Makes the daemon's folders. Nothing in them is opened before it is sure that they are ours alone.
Result<void> own_folders(const policy::Settings& settings, core::Log& log) {
    Result<void> result;
    for (const auto& folder : {settings.runtime_dir, settings.state_dir}) {
        if (auto made = host::make_directories(folder); !made) return made;
        auto checked = host::check_ownership(folder);
        if (checked) continue;
        if (!result) log.error(result.error().to_string()); // a line for each
        result = std::move(checked);
    }
    return result;
}

/// The socket for programs that place their own threads. Without it the daemon does the rest of its work, and
/// programs do without it. Where nothing is changed, no program need ask for it.
std::unique_ptr<control::JoinSocket> serve_joins(const events::Loop& loop, const policy::Settings& settings,
                                                 core::Daemon& daemon, core::Log& log) {
    auto* joining = daemon.joining();
    if (settings.dry_run || joining == nullptr) return nullptr;
    auto socket =
        control::JoinSocket::start(loop.event(), control::join_socket_path(settings.runtime_dir), *joining);
    if (!socket) log.error("programs cannot place their own threads: " + socket.error().to_string());
    return socket ? std::move(*socket) : nullptr;
}

int run(const Options& options, core::Log& log) {
    const auto root = host::Root::open(options.root, options.proc);
    if (!root) return give_up(log, root.error());
    const auto& settings = options.settings;
    if (const auto made = own_folders(settings, log); !made) return give_up(log, made.error());
    const auto lock = host::lock_file(settings.runtime_dir + "/lock");
    if (!lock) return give_up(log, lock.error());
    if (!*lock)
        return give_up(log, {"another affinityd runs here already", settings.runtime_dir + "/lock"},
                       exit_running);

    auto journal = state::Journal::open(settings.dry_run ? "" : settings.runtime_dir + "/undo.journal");
    if (!journal) return give_up(log, journal.error());
    const auto enforcer =
        settings.dry_run ? enforcer::make_recording_enforcer(*root) : enforcer::make_real_enforcer(*root);
    if (!enforcer)
        return give_up(log, {"a recorded machine cannot be changed: --root needs --dry-run", options.root});

    control::SystemBus bus, calls;
    core::Shared shared{.root = *root,
                        .enforcer = *enforcer,
                        .log = log,
                        .settings = settings,
                        .executor = enforcer::Executor(std::move(*journal), *enforcer),
                        .history = accounting::Measurements(settings.dry_run ? "" : settings.state_dir)};
    core::Daemon daemon(shared, [&options] { return read_settings_again(options); });
    behaviours::add_all(daemon, [&] { return calls.connection(); });
    if (auto started = daemon.start(); !started) return give_up(log, started.error(), exit_config);
    auto loop = events::Loop::create(daemon, log, control::is_being_restarted);
    if (!loop) return give_up(log, loop.error());
    const auto server = control::Server::start(
        (*loop)->event(), settings.runtime_dir, daemon,
        {[&](core::Answer answer, core::Until until) { (*loop)->measure(std::move(answer), until); },
         [&](const std::string& text) { log.info(text); }},
        {bus, calls}, {.may_ask = [&](uid_t user) {
            constexpr std::chrono::milliseconds cost{2}; // of a question, however it is answered
            auto& payer = daemon.tasks();
            if (!payer.may_ask(user)) return false;
            payer.charge(user, cost);
            return true;
        }});
    if (!server) return give_up(log, server.error());
    const auto joins = serve_joins(**loop, settings, daemon, log);
    host::prefer_low_latency();
    if (auto done = (*loop)->subscribe(); !done) return give_up(log, done.error());
    return (*loop)->run();
}

} // namespace

int main(int argc, char** argv) {
    events::Loop::block_signals();
    host::allow_many_open_files();
    const auto options = parse_options(argc, argv);
    if (!options) return options.error();
    const auto logger = make_logger(options->verbose);
    core::Log log(logger);
    return run(*options, log);
}
