// SPDX-License-Identifier: Apache-2.0
// The whole loop over a machine out of files, in a child process: what signals, timers and the service
// manager's socket do.
#include "app/simulated.hpp"
#include "events/loop.hpp"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <stop_token>
#include <thread>

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace affinityd::events {
namespace {

using app::test::Machine;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int no_start = 97;

class LoopTest : public testing::Test {
  protected:
    void SetUp() override {
        machine_.policy("server", "match: {comm: server}\ncpus: \"2\"\nbind: set\n");
        socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::strncpy(address.sun_path, machine_.path("notify").c_str(), sizeof address.sun_path - 1);
        ASSERT_EQ(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    }
    void TearDown() override {
        end();
        ::close(socket_);
    }
    void end() {
        if (child_ <= 0) return;
        ::kill(child_, SIGKILL);
        ::waitpid(child_, nullptr, 0);
        child_ = 0;
    }

    /// The loop in a process of its own. `acting`: with the enforcer that writes into the machine's files.
    void start(std::chrono::seconds reconcile = std::chrono::hours(1)) {
        child_ = ::fork();
        ASSERT_GE(child_, 0);
        if (child_ != 0) return;
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        ::setenv("NOTIFY_SOCKET", machine_.path("notify").c_str(), 1);
        ::_exit(run(reconcile));
    }
    int run(std::chrono::seconds reconcile) const {
        const auto root = host::Root::open(machine_.path());
        auto journal = state::Journal::open(machine_.path("undo.journal"));
        if (!root || !journal) return no_start;
        app::test::SimulatedEnforcer enforcer(machine_);
        enforcer.takes = each_takes_;
        for (const int pid : refused_)
            enforcer.refuse[planner::TaskMask{{pid, 100}, pid, "server"}] = enforcer::Outcome::not_permitted;
        app::test::ReadableLog log;
        app::test::SimulatedSystemd systemd;
        app::Settings settings;
        settings.policy_folders = {machine_.policies()};
        settings.runtime_dir = machine_.path("run");
        settings.dry_run = true; // no history
        settings.reconcile_interval = reconcile;
        app::Manager manager({*root, *journal, enforcer, systemd, log.log(), settings});
        if (!manager.start()) return no_start;
        auto loop = Loop::create(manager, log.log());
        if (!loop || !(*loop)->subscribe()) return no_start;
        return (*loop)->run();
    }

    template <class Done>
    static bool until(Done done, milliseconds patience = milliseconds(15000)) {
        for (const auto end = steady_clock::now() + patience; !done(); ::usleep(2000))
            if (steady_clock::now() > end) return false;
        return true;
    }
    /// Has the service manager been told this since the last time it was asked for?
    bool is_told(const std::string& text) {
        return until([&] {
            char message[4096];
            for (ssize_t size = 0; (size = ::recv(socket_, message, sizeof message, 0)) > 0;)
                told_ += std::string(message, static_cast<std::size_t>(size)) + "\n";
            const auto at = told_.find(text);
            if (at == std::string::npos) return false;
            told_.erase(0, at + text.size());
            return true;
        });
    }
    int exit_code() {
        int status = 0;
        if (!until([&] { return ::waitpid(child_, &status, WNOHANG) == child_; })) return -1;
        child_ = 0;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    [[nodiscard]] std::string mask() const { return machine_.allowed(10, 10); }

    Machine machine_;
    milliseconds each_takes_{0}; ///< change of a mask
    std::vector<int> refused_;   ///< processes whose masks cannot be changed
    int socket_ = -1;
    pid_t child_ = 0;
    std::string told_;
};

TEST_F(LoopTest, PassesEndAlthoughMoreAreRequestedAllTheTime) {
    machine_.tree().file("sys/fs/cgroup/cgroup.controllers", "cpuset\n");
    machine_.tree().file("sys/fs/cgroup/cgroup.subtree_control", "\n");
    // A pass takes a second, because each of these is tried again.
    each_takes_ = milliseconds(20);
    for (int pid = 100; pid < 150; ++pid) {
        machine_.process(pid, "server");
        refused_.push_back(pid);
    }
    start();
    ASSERT_TRUE(is_told("READY=1"));
    ASSERT_TRUE(is_told("STATUS="));
    const std::jthread writer([&](const std::stop_token& stop) {
        for (; !stop.stop_requested(); std::this_thread::sleep_for(milliseconds(50)))
            std::ofstream(machine_.path("sys/fs/cgroup/cgroup.subtree_control"), std::ios::app)
                << "+cpuset\n";
    });
    EXPECT_TRUE(is_told("STATUS="));
    EXPECT_TRUE(is_told("STATUS="));
}

TEST_F(LoopTest, ReadyAfterTheFirstPassAndAllPutBackAtTheEnd) {
    for (const int signal : {SIGTERM, SIGINT}) {
        machine_.process(10, "server", "1-3");
        start();
        ASSERT_TRUE(is_told("READY=1"));
        EXPECT_EQ(mask(), "2") << "ready means placed";
        ASSERT_TRUE(is_told("STATUS=1 policy, 1 process with 1 thread, 0 queues under policy"));
        ASSERT_EQ(::kill(child_, signal), 0);
        EXPECT_TRUE(is_told("STOPPING=1"));
        EXPECT_EQ(exit_code(), 0);
        EXPECT_EQ(mask(), "1-3");
    }
}

TEST_F(LoopTest, HangupReloads) {
    machine_.tree().file("elsewhere", "version: 1\nmatch: {comm: server}\ncpus: \"2\"\nbind: set\n");
    std::filesystem::remove(machine_.path("policies/server.yaml"));
    machine_.tree().link("policies/server.yaml", machine_.path("elsewhere"));
    machine_.process(10, "server");
    start();
    ASSERT_TRUE(is_told("READY=1"));
    // What a link points at is not in the watched folder: only the signal tells of it.
    machine_.tree().file("elsewhere", "version: 1\nmatch: {comm: server}\ncpus: \"3\"\nbind: set\n");
    ASSERT_EQ(::kill(child_, SIGHUP), 0);
    EXPECT_TRUE(is_told("RELOADING=1"));
    EXPECT_TRUE(is_told("MONOTONIC_USEC="));
    EXPECT_TRUE(is_told("READY=1"));
    EXPECT_TRUE(until([&] { return mask() == "3"; }));
}

TEST_F(LoopTest, AChangedFolderReloadsAndABadFileChangesNothing) {
    machine_.process(10, "server");
    start();
    ASSERT_TRUE(is_told("READY=1"));
    machine_.policy("server", "match: {comm: server}\ncpus: \"3\"\nbind: set\n");
    EXPECT_TRUE(is_told("RELOADING=1"));
    EXPECT_TRUE(until([&] { return mask() == "3"; }));
    machine_.policy("server", "match: [\n");
    EXPECT_TRUE(is_told("RELOADING=1"));
    EXPECT_TRUE(is_told("READY=1")) << "goes on with what it has";
    EXPECT_EQ(mask(), "3");
    ASSERT_EQ(::kill(child_, SIGTERM), 0);
    EXPECT_EQ(exit_code(), 0);
    EXPECT_EQ(mask(), "0-3");
}

TEST_F(LoopTest, ThePeriodicPassPlacesWhatNoEventReported) {
    start(std::chrono::seconds(1));
    ASSERT_TRUE(is_told("READY=1"));
    machine_.process(10, "server");
    EXPECT_TRUE(until([&] { return mask() == "2"; }));
    machine_.process(10, "server", "0-1");
    EXPECT_TRUE(until([&] { return mask() == "2"; })) << "and it comes again";
}

TEST_F(LoopTest, OriginalsOfAKilledDaemonAreRestoredByTheNext) {
    machine_.process(10, "server", "1-3");
    start();
    ASSERT_TRUE(is_told("READY=1"));
    end();
    EXPECT_EQ(mask(), "2");
    start();
    ASSERT_TRUE(is_told("READY=1"));
    ASSERT_EQ(::kill(child_, SIGTERM), 0);
    EXPECT_EQ(exit_code(), 0);
    EXPECT_EQ(mask(), "1-3");
}

} // namespace
} // namespace affinityd::events
