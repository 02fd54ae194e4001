// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/engine/worker.hpp"

#include "base/clock.hpp"
#include "host/scheduler.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <type_traits>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace affinityd::ttcp {

namespace {

/// From the child: its figures, or why there are none.
struct Message {
    StreamUse use;
    bool is_fault = false;
    int code = 0;
    std::array<char, 200> text{};
};
static_assert(std::is_trivially_copyable_v<Message>);
static_assert(sizeof(Message) <= 512); // the least PIPE_BUF: one write is never split

void put_fault(Message& message, const Error& error) {
    message.is_fault = true;
    message.code = error.code;
    const std::string text = error.subject.empty() ? error.message : error.subject + ": " + error.message;
    std::memcpy(message.text.data(), text.data(), std::min(text.size(), message.text.size() - 1));
}

[[noreturn]] void run_child(int output, pid_t parent, const CpuSet& cpus,
                            const std::function<Result<StreamUse>(Meter&)>& body) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1); // the parent died before the line above
    ::signal(SIGPIPE, SIG_IGN);
    Message message;
    const int code = cpus.empty() ? 0 : host::set_affinity(0, cpus);
    if (code != 0) {
        put_fault(message, Error{"cannot run on CPUs " + cpus.to_list(), {}, code});
    } else {
        Meter meter;
        if (auto use = body(meter))
            message.use = *use;
        else
            put_fault(message, use.error());
    }
    ::_exit(::write(output, &message, sizeof message) == sizeof message ? 0 : 1);
}

} // namespace

Result<Worker> Worker::start(const CpuSet& cpus, const std::function<Result<StreamUse>(Meter&)>& body) {
    std::array<int, 2> pipe{};
    if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return fail("cannot make a pipe", {}, errno);
    host::Fd reader(pipe[0]);
    const host::Fd writer(pipe[1]);
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child < 0) return fail("cannot fork", {}, errno);
    if (child == 0) run_child(writer.get(), parent, cpus, body);
    return Worker(child, std::move(reader));
}

Worker::Worker(Worker&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), result_(std::move(other.result_)) {}

Worker& Worker::operator=(Worker&& other) noexcept {
    if (this != &other) {
        end();
        pid_ = std::exchange(other.pid_, 0);
        result_ = std::move(other.result_);
    }
    return *this;
}

Worker::~Worker() { end(); }

void Worker::end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
}

Result<StreamUse> Worker::collect(double until) {
    if (!wait_for_any({result_.get()}, until)) {
        end();
        return fail("did not end in time and was killed", {}, ETIMEDOUT);
    }
    Message message;
    const auto got = ::read(result_.get(), &message, sizeof message);
    end();
    if (got != sizeof message) return fail("a measuring process was killed", {}, ECANCELED);
    if (message.is_fault) return fail(message.text.data(), {}, message.code);
    return message.use;
}

std::optional<std::size_t> wait_for_any(const std::vector<int>& files, double until) {
    std::vector<pollfd> items;
    for (const int file : files)
        items.push_back({file, POLLIN, 0});
    while (true) {
        int wait = -1;
        if (until > 0) wait = static_cast<int>(std::clamp((until - monotonic_seconds()) * 1000, 0.0, 1e9));
        const int ready = ::poll(items.data(), items.size(), wait);
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) return std::nullopt;
        const auto at =
            std::find_if(items.begin(), items.end(), [](const pollfd& item) { return item.revents != 0; });
        return static_cast<std::size_t>(at - items.begin());
    }
}

} // namespace affinityd::ttcp
