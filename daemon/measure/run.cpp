// SPDX-License-Identifier: Apache-2.0
#include "measure/run.hpp"

#include "host/local_socket.hpp"
#include "measure/program.hpp"

#include <array>
#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace affinityd::measure {

bool Output::drain() {
    constexpr std::size_t most = 256U << 10, at_once = 64U << 10; // the second is a pipe's size
    std::array<char, 4096> chunk{};
    for (std::size_t taken = 0; taken < at_once;) {
        if (text_.size() >= most) return false;
        const auto got = ::read(source_.get(), chunk.data(), chunk.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return errno == EAGAIN;
        if (got == 0) return false;
        taken += static_cast<std::size_t>(got);
        text_.append(chunk.data(), static_cast<std::size_t>(got));
    }
    return true; // the caller has other work, and comes again
}

namespace {

/// How the program begins: in a process group of its own, no signal blocked, with `output` as standard
/// output.
class Beginning {
  public:
    Beginning() {
        ::posix_spawnattr_init(&attributes_);
        ::posix_spawn_file_actions_init(&actions_);
    }
    ~Beginning() {
        ::posix_spawn_file_actions_destroy(&actions_);
        ::posix_spawnattr_destroy(&attributes_);
    }
    Beginning(const Beginning&) = delete;
    Beginning& operator=(const Beginning&) = delete;

    /// The new process, or a negative errno.
    pid_t start(char* const* argv, int output) {
        sigset_t ignored_by_daemons, none;
        sigemptyset(&none);
        sigemptyset(&ignored_by_daemons);
        sigaddset(&ignored_by_daemons, SIGPIPE);
        sigaddset(&ignored_by_daemons, SIGXFSZ);
        ::posix_spawnattr_setsigmask(&attributes_, &none);
        ::posix_spawnattr_setsigdefault(&attributes_, &ignored_by_daemons);
        ::posix_spawnattr_setpgroup(&attributes_, 0);
        ::posix_spawnattr_setflags(&attributes_,
                                   POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
        int error = ::posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
        pid_t pid = 0;
        if (error == 0) error = ::posix_spawn(&pid, argv[0], &actions_, &attributes_, argv, environ);
        return error == 0 ? pid : -error;
    }

  private:
    posix_spawnattr_t attributes_{};
    posix_spawn_file_actions_t actions_{};
};

} // namespace

Result<Child> Child::start(const std::vector<std::string>& command) {
    if (command.empty()) return fail("no program to run", {}, EINVAL);
    std::vector<char*> argv;
    for (const auto& word : command)
        argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    std::array<int, 2> pipe{};
    if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return fail("cannot make a pipe", {}, errno);
    host::Fd reader(pipe[0]);
    const host::Fd writer(pipe[1]);
    if (::fcntl(reader.get(), F_SETFL, O_NONBLOCK) != 0) return fail("cannot set up a pipe", {}, errno);
    const pid_t pid = Beginning().start(argv.data(), writer.get());
    if (pid < 0) return fail("cannot start the measuring program", command.front(), -pid);
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

Result<UnitRun> UnitRun::start(const std::string& socket, const std::vector<std::string>& options) {
    const auto address = host::local_address(socket);
    if (!address) return std::unexpected(address.error());
    host::Fd connection(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!connection) return fail("cannot make a socket", socket, errno);
    if (::connect(connection.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0)
        return fail("cannot ask for a measurement", socket, errno);
    const std::string line = to_line(options);
    const auto sent = ::send(connection.get(), line.data(), line.size(), MSG_NOSIGNAL);
    if (sent != static_cast<ssize_t>(line.size()))
        return fail("cannot ask for a measurement", socket, sent < 0 ? errno : EMSGSIZE);
    return UnitRun(std::move(connection));
}

Run UnitRun::ended() {
    Run run{output_.take(), Outcome::done, {}};
    if (run.output.empty()) {
        run.outcome = Outcome::failed;
        run.fault = "ended without a report; journalctl -u 'affinity-measure@*' tells why";
    }
    return run;
}

} // namespace affinityd::measure
