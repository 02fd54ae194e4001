// SPDX-License-Identifier: Apache-2.0
#include "measure/child.hpp"

#include "host/privileges.hpp"
#include "host/scheduler.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace affinityd::measure {

namespace {

constexpr int exit_privileges = 126, exit_exec = 127;

/// In the child. The parent may have threads: nothing here allocates.
[[noreturn]] void become(char* const* argv, int output, const CpuSet& cpus) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::setpgid(0, 0);
    ::dup2(output, STDOUT_FILENO);
    ::signal(SIGPIPE, SIG_DFL);
    ::signal(SIGXFSZ, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::setpriority(PRIO_PROCESS, 0, 10);
    // A child that cannot leave the daemon's CPUs still measures.
    static_cast<void>(host::set_affinity(0, cpus));
    if (!host::drop_privileges()) ::_exit(exit_privileges);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL); // the change of user has cleared it
    ::execv(argv[0], argv);
    ::_exit(exit_exec);
}

} // namespace

CpuSet everywhere() {
    const std::vector<std::uint64_t> words((CpuSet::max_cpu + 1) / 64, ~std::uint64_t{0});
    return CpuSet::from_words(words);
}

Result<Child> Child::start(const std::vector<std::string>& command) {
    if (command.empty()) return fail("no program to run", {}, EINVAL);
    std::vector<char*> argv;
    for (const auto& word : command)
        argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    const CpuSet cpus = everywhere();
    std::array<int, 2> pipe{};
    if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return fail("cannot make a pipe", {}, errno);
    host::Fd reader(pipe[0]);
    const host::Fd writer(pipe[1]);
    if (::fcntl(reader.get(), F_SETFL, O_NONBLOCK) != 0) return fail("cannot set up a pipe", {}, errno);
    const pid_t pid = ::fork();
    if (pid < 0) return fail("cannot fork", {}, errno);
    if (pid == 0) become(argv.data(), writer.get(), cpus);
    ::setpgid(pid, pid); // here too: the group must exist before anybody kills it
    return Child(pid, std::move(reader));
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), timed_out_(other.timed_out_), output_(std::move(other.output_)) {}

Child& Child::operator=(Child&& other) noexcept {
    if (this == &other) return *this;
    end();
    pid_ = std::exchange(other.pid_, 0);
    timed_out_ = other.timed_out_;
    output_ = std::move(other.output_);
    return *this;
}

Child::~Child() { end(); }

void Child::end() {
    if (pid_ <= 0) return;
    ::kill(-pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
}

void Child::time_out() {
    timed_out_ = true;
    if (pid_ > 0) ::kill(-pid_, SIGKILL);
}

Run Child::ended(const siginfo_t& info) {
    drain();
    pid_ = 0;
    Run run{output_.take(), Outcome::done, {}}; // a run that failed says why in its report
    if (timed_out_) {
        run.outcome = Outcome::timed_out;
        run.fault = "took too long and was ended";
    } else if (info.si_code != CLD_EXITED) {
        run.outcome = Outcome::killed;
        run.fault = "was killed by signal " + std::to_string(info.si_status);
    } else if (info.si_status != 0) {
        run.outcome = Outcome::failed;
        run.fault = "ended with exit code " + std::to_string(info.si_status);
    }
    return run;
}

} // namespace affinityd::measure
