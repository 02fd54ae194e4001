// SPDX-License-Identifier: Apache-2.0
#include "events/measurement.hpp"

#include "host/self.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace affinityd::events {

namespace {

constexpr std::size_t most_output = 256U << 10;
constexpr std::uint64_t grace_usec =
    20'000'000;                 ///< beyond the test's own time, for start, connect and report
constexpr uid_t nobody = 65534; ///< the kernel's overflow user: owns nothing

/// The daemon's own place must not become the child's: a service manager or an administrator may have pinned
/// us.
void unpin() {
    cpu_set_t all;
    CPU_ZERO(&all);
    for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        CPU_SET(cpu, &all);
    ::sched_setaffinity(0, sizeof all, &all);
}

[[noreturn]] void become(const std::vector<std::string>& arguments, int output) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::setpgid(0, 0);
    ::dup2(output, STDOUT_FILENO);
    ::signal(SIGPIPE, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::setpriority(PRIO_PROCESS, 0, 10);
    unpin();
    if (::geteuid() == 0 && (::setgroups(0, nullptr) != 0 || ::setresgid(nobody, nobody, nobody) != 0 ||
                             ::setresuid(nobody, nobody, nobody) != 0))
        ::_exit(126);
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL); // cleared by the change of user
    std::vector<char*> argv;
    for (const auto& argument : arguments)
        argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    ::execv(argv[0], argv.data());
    ::_exit(127);
}

/// Beside the daemon, where it is installed, or where both were built. Only relative to the daemon: never by
/// PATH.
std::string find_program() {
    for (const char* place :
         {"affinity-ttcp", "../bin/affinity-ttcp", "../tools/affinity-ttcp/affinity-ttcp"})
        if (std::string path = host::program_folder() + place; ::access(path.c_str(), X_OK) == 0) return path;
    return {};
}

} // namespace

MeasurementChild::MeasurementChild(sd_event* event, app::Settings::Measure settings, Done done)
    : event_(event), settings_(std::move(settings)), done_(std::move(done)) {}

MeasurementChild::~MeasurementChild() {
    if (pid_ <= 0) return;
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
}

Result<void> MeasurementChild::start(bool may_skip) {
    if (running()) return fail("a measurement is running already");
    std::vector<std::string> arguments{find_program()};
    if (settings_.target.empty())
        arguments.emplace_back("--loopback");
    else
        arguments.insert(arguments.end(), {"--target", settings_.target});
    arguments.insert(arguments.end(), {"--seconds", std::to_string(settings_.duration.count()), "--json"});
    if (settings_.bytes > 0) arguments.insert(arguments.end(), {"--bytes", std::to_string(settings_.bytes)});
    if (may_skip && settings_.idle_only)
        arguments.insert(arguments.end(), {"--idle-only", std::to_string(settings_.busy_above)});
    if (arguments.front().empty())
        return fail("the program affinity-ttcp is not there", host::program_folder());

    std::array<int, 2> pipe{};
    if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return fail("cannot make a pipe", {}, errno);
    output_.reset(pipe[0]);
    const host::Fd writer(pipe[1]);
    ::fcntl(output_.get(), F_SETFL, O_NONBLOCK);
    const pid_t child = ::fork();
    if (child < 0) return fail("cannot fork", {}, errno);
    if (child == 0) become(arguments, writer.get());
    pid_ = child;
    text_.clear();
    timed_out_ = false;
    sd_event_source* source = nullptr;
    int status = sd_event_add_io(event_, &source, output_.get(), EPOLLIN, on_output, this);
    output_source_.reset(source);
    if (status >= 0) {
        status = sd_event_add_child(event_, &source, pid_, WEXITED, on_exit, this);
        exit_source_.reset(status >= 0 ? source : nullptr);
    }
    if (status >= 0) {
        const auto limit = static_cast<std::uint64_t>(settings_.duration.count()) * 2'000'000 + grace_usec;
        status =
            sd_event_add_time_relative(event_, &source, CLOCK_MONOTONIC, limit, 1'000'000, on_timeout, this);
        timeout_source_.reset(status >= 0 ? source : nullptr);
    }
    if (status < 0) return fail("cannot watch the measuring program", {}, -status);
    return {};
}

void MeasurementChild::drain() {
    std::array<char, 4096> chunk{};
    while (true) {
        const auto got = ::read(output_.get(), chunk.data(), chunk.size());
        if (got <= 0) return;
        if (text_.size() < most_output) text_.append(chunk.data(), static_cast<std::size_t>(got));
    }
}

int MeasurementChild::on_output(sd_event_source*, int, std::uint32_t events, void* userdata) {
    auto* child = static_cast<MeasurementChild*>(userdata);
    child->drain();
    if ((events & EPOLLHUP) != 0) child->output_source_.reset();
    return 0;
}

int MeasurementChild::on_timeout(sd_event_source*, std::uint64_t, void* userdata) {
    auto* child = static_cast<MeasurementChild*>(userdata);
    child->timed_out_ = true;
    ::kill(-child->pid_, SIGKILL); // its exit is reported as usual
    return 0;
}

int MeasurementChild::on_exit(sd_event_source*, const siginfo_t* info, void* userdata) {
    auto* child = static_cast<MeasurementChild*>(userdata);
    child->drain();
    child->pid_ = 0;
    child->output_source_.reset();
    child->timeout_source_.reset();
    const Source ended = std::move(child->exit_source_);
    accounting::MeasuringRun run{
        child->text_, measure::Outcome::done, {}}; // a run that failed says in its report why
    if (child->timed_out_) {
        run.outcome = measure::Outcome::timed_out;
        run.fault = "took too long and was ended";
    } else if (info->si_code != CLD_EXITED) {
        run.outcome = measure::Outcome::killed;
        run.fault = "was killed by signal " + std::to_string(info->si_status);
    } else if (info->si_status != 0) {
        run.outcome = measure::Outcome::failed;
        run.fault = "ended with exit code " + std::to_string(info->si_status);
    }
    child->done_(run);
    return 0;
}

} // namespace affinityd::events
