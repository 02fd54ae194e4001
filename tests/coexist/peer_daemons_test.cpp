// SPDX-License-Identifier: Apache-2.0
// Peer daemons: found among root's processes, and by nothing that another user can make.
#include "coexist/peer_daemons.hpp"
#include "host/root.hpp"
#include "state/journal.hpp"
#include "support/nobody.hpp"
#include "support/tree.hpp"

#include <csignal>
#include <filesystem>

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace affinityd::coexist {
namespace {

const planner::TaskMask task{{10, 100}, 10, "server"};
const planner::TaskMask other{{20, 200}, 20, "other"};
const planner::UnitCpuset unit{"nginx.service"};
using affinityd::test::nobody;

/// Writes a journal into the folder.
void hold(const std::string& folder, std::initializer_list<planner::Subject> subjects) {
    auto journal = *state::Journal::open(folder + "/undo.journal");
    for (const auto& subject : subjects)
        ASSERT_TRUE(journal.remember(subject, CpuSet{0, 1}, CpuSet{1}, "theirs"));
}

class PeerDaemonsTest : public testing::Test {
  protected:
    PeerDaemonsTest() {
        for (const char* folder : {"proc", "own", "two", "three"})
            tree_.folder(folder);
        root_.emplace(host::Root::open(tree_.path()).value());
        EXPECT_TRUE(own_.remember(task, CpuSet{0, 1}, CpuSet{1}, "ours"));
        EXPECT_TRUE(own_.remember(unit, CpuSet{}, CpuSet{1}, "ours"));
        hold(tree_.path("own"), {task});
    }
    /// A process that has the journal of this folder open.
    void daemon(int pid, const std::string& folder, unsigned user = 0,
                const std::string& program = "/usr/sbin/affinityd") const {
        const auto proc = fmt::format("proc/{}/", pid);
        tree_.file(proc + "status", fmt::format("Uid:\t{0}\t{0}\t{0}\t{0}\n", user));
        tree_.link(proc + "exe", program);
        tree_.link(proc + "fd/0", "/dev/null");
        tree_.link(proc + "fd/7", folder + "/undo.journal");
    }
    const std::vector<PeerDaemon>& find(std::initializer_list<int> pids, const char* comm = "affinityd") {
        peers_.begin_pass();
        for (const int pid : pids)
            peers_.see(pid, comm);
        peers_.finish_pass();
        for (slices_ = 1; !peers_.step(own_, [] { return true; });
             ++slices_) { // the smallest slices there are
        }
        return peers_.list();
    }
    test::Tree tree_;
    std::optional<host::Root> root_;
    state::Journal own_ = *state::Journal::open("");
    PeerDaemons peers_{*(root_.emplace(host::Root::open(tree_.path()).value()), root_), tree_.path("own")};
    unsigned slices_ = 0;
};

TEST_F(PeerDaemonsTest, APeerThatHoldsTheSameIsFound) {
    hold(tree_.path("two"), {task, unit, other});
    hold(tree_.path("three"), {other});
    daemon(100, "/own");
    daemon(200, "/two");
    daemon(300, "/three");
    const auto& found = find({100, 200, 300});
    ASSERT_EQ(found.size(), 1U) << "not this daemon itself, and not one that holds other things";
    EXPECT_EQ(found[0].runtime_dir, "/two");
    ASSERT_EQ(found[0].shared.size(), 2U);
    EXPECT_EQ(found[0].shared[0], planner::Subject(task));
    EXPECT_EQ(found[0].shared[1], planner::Subject(unit));
    EXPECT_TRUE(find({100, 300}).empty()) << "it has ended";
}

TEST_F(PeerDaemonsTest, WhatAPeerHasForgottenIsNotShared) {
    {
        auto theirs = *state::Journal::open(tree_.path("two/undo.journal"));
        for (const planner::Subject& subject : {planner::Subject(task), planner::Subject(unit)}) {
            ASSERT_TRUE(theirs.remember(subject, CpuSet{0, 1}, CpuSet{1}, "theirs"));
            ASSERT_TRUE(theirs.forget(subject));
        }
        ASSERT_TRUE(theirs.remember(unit, CpuSet{}, CpuSet{1}, "theirs"));
    }
    daemon(200, "/two");
    const auto& found = find({200});
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].shared, std::vector<planner::Subject>{unit});
}

TEST_F(PeerDaemonsTest, OnlyRootsProcessesOfThisProgramCount) {
    hold(tree_.path("two"), {task});
    daemon(200, "/two", nobody);
    daemon(201, "/two", 0, "/usr/bin/sudo");
    daemon(202, "/two", 0, "/usr/sbin/affinityd (deleted)");
    EXPECT_TRUE(find({200, 201}).empty());
    EXPECT_TRUE(find({202}, "sshd").empty());
    EXPECT_EQ(find({200, 201, 202}).size(), 1U) << "one whose program was upgraded is one still";
}

TEST_F(PeerDaemonsTest, AJournalThatAnotherUserCouldHaveMadeIsNotRead) {
    hold(tree_.path("two"), {task});
    daemon(200, "/two");
    ASSERT_EQ(find({200}).size(), 1U);
    const auto path = tree_.path("two/undo.journal");
    ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
    EXPECT_TRUE(find({200}).empty());
    ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
    ASSERT_EQ(::chown(tree_.path("two").c_str(), nobody, nobody), 0);
    EXPECT_TRUE(find({200}).empty());
    ASSERT_EQ(::chown(tree_.path("two").c_str(), 0, 0), 0);
    EXPECT_EQ(find({200}).size(), 1U);
    ASSERT_EQ(::unlink(path.c_str()), 0);
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    EXPECT_TRUE(find({200}).empty()) << "and nobody waits for a writer";
}

TEST_F(PeerDaemonsTest, OddDescriptorsAreNoJournals) {
    hold(tree_.path("two"), {task});
    int pid = 200;
    for (const char* folder : {"/two/../two", "/two\n", "two", "", "@/two", "/two/.", "//two"})
        daemon(pid++, folder);
    EXPECT_TRUE(find({200, 201, 202, 203, 204, 205, 206}).empty());
}

TEST_F(PeerDaemonsTest, DamagedLinesAreLeftOut) {
    hold(tree_.path("two"), {task});
    daemon(200, "/two");
    std::string text;
    {
        std::ostringstream all;
        all << std::ifstream(tree_.path("two/undo.journal")).rdbuf();
        text = all.str();
    }
    tree_.file("two/undo.journal",
               std::string("garbage\n\0\xff\n", 11) + std::string(50'000, 'x') + "\n" + text + "torn");
    EXPECT_EQ(find({200}).size(), 1U);
    tree_.file("two/undo.journal", std::string(1U << 20, 'x'));
    EXPECT_TRUE(find({200}).empty()) << "a line without end";
}

TEST_F(PeerDaemonsTest, ALargeJournalIsReadInSlicesAndWhatIsToldOfItIsBounded) {
    auto theirs = *state::Journal::open(tree_.path("two/undo.journal"));
    for (int i = 1; i <= 5000; ++i) {
        const planner::TaskMask thread{{i, 7}, i, "t"};
        ASSERT_TRUE(theirs.remember(thread, CpuSet{0, 1}, CpuSet{1}, "theirs"));
        ASSERT_TRUE(own_.remember(thread, CpuSet{0, 1}, CpuSet{1}, "ours"));
    }
    daemon(200, "/two");
    const auto& found = find({200});
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].shared.size(), 1000U);
    EXPECT_GE(slices_, 5000U) << "one line in each of the smallest slices";
}

/// A user of his own on this very machine, with sockets of every kind by the name of a daemon's.
class Intruder {
  public:
    explicit Intruder(const std::string& folder) {
        int ready[2];
        if (::pipe(ready) != 0) throw std::runtime_error("no pipe");
        pid_ = ::fork();
        if (pid_ == 0) listen(folder, ready[1]);
        ::close(ready[1]);
        char byte = 0;
        listens_ = ::read(ready[0], &byte, 1) == 1;
        ::close(ready[0]);
    }
    Intruder(const Intruder&) = delete;
    Intruder& operator=(const Intruder&) = delete;
    ~Intruder() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    [[nodiscard]] int pid() const { return pid_; }
    [[nodiscard]] bool listens() const { return listens_; }

  private:
    static bool listen_at(const std::string& name) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        name.copy(address.sun_path, sizeof address.sun_path - 1);
        const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
        const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
        return ::bind(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0 && ::listen(fd, 1) == 0;
    }
    [[noreturn]] static void listen(const std::string& folder, int ready) {
        if (::setresgid(nobody, nobody, nobody) != 0 || ::setresuid(nobody, nobody, nobody) != 0) ::_exit(1);
        ::prctl(PR_SET_NAME, "affinityd");
        // It holds the files of its own folder open, as a daemon does.
        const int journal = ::open((folder + "/undo.journal").c_str(), O_RDWR);
        const bool listens = journal >= 0 && listen_at(folder + "/control") &&
                             listen_at(std::string(1, '\0') + folder + "/control") &&
                             listen_at(std::string(1, '\0') + "@" + folder + "/../x\n/control");
        if (listens && ::write(ready, "x", 1) != 1) ::_exit(1);
        for (;;)
            ::pause();
    }
    int pid_ = -1;
    bool listens_ = false;
};

TEST(LivePeerDaemons, SocketsAndProcessesOfAnotherUserCauseNoAccessToTheirFolder) {
    const test::Tree tree; // below a folder that all can write to, as /tmp is
    ASSERT_EQ(::chmod(tree.path().c_str(), 0755), 0);
    tree.folder("theirs");
    const auto folder = tree.path("theirs");
    hold(folder, {task}); // root's own file, as by a hard link: no check of the file alone tells
    ASSERT_EQ(::chmod((folder + "/undo.journal").c_str(), 0600), 0);
    ASSERT_EQ(::chown(folder.c_str(), nobody, nobody), 0) << "the test needs to be root";
    ASSERT_EQ(::mkfifo((folder + "/fifo").c_str(), 0666), 0);
    ASSERT_EQ(::rename((folder + "/undo.journal").c_str(), (folder + "/kept").c_str()), 0);
    tree.file("theirs/undo.journal", "");
    ASSERT_EQ(::chown((folder + "/undo.journal").c_str(), nobody, nobody), 0);
    const Intruder intruder(folder);
    ASSERT_TRUE(intruder.listens());
    ASSERT_EQ(::rename((folder + "/kept").c_str(), (folder + "/undo.journal").c_str()), 0);

    const int watch = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    ASSERT_GE(::inotify_add_watch(watch, folder.c_str(), IN_ALL_EVENTS), 0);
    const auto root = host::Root::open("/").value();
    auto own = *state::Journal::open("");
    ASSERT_TRUE(own.remember(task, CpuSet{0, 1}, CpuSet{1}, "ours"));
    PeerDaemons peers(root, "/run/affinityd-of-this-test");
    peers.begin_pass();
    peers.see(intruder.pid(), "affinityd");
    peers.finish_pass();
    while (!peers.step(own, [] { return false; })) {
    }
    EXPECT_TRUE(peers.list().empty());
    char events[4096];
    EXPECT_EQ(::read(watch, events, sizeof events), -1) << "something in the folder was opened";
    ::close(watch);
}

TEST(LivePeerDaemons, AProcessOfRootsThatRunsThisProgramIsFoundByTheJournalItHasOpen) {
    const test::Tree tree;
    ASSERT_EQ(::chmod(tree.path().c_str(), 0755), 0);
    const int peer = ::fork();
    if (peer == 0) {
        auto journal = *state::Journal::open(tree.path("undo.journal"));
        const bool is_held = journal.remember(task, CpuSet{0, 1}, CpuSet{1}, "theirs").has_value();
        ::prctl(PR_SET_NAME, "affinityd");
        tree.file("ready", is_held ? "yes" : "no");
        for (;;)
            ::pause();
    }
    for (int i = 0; i < 10'000 && !std::filesystem::exists(tree.path("ready")); ++i)
        ::usleep(1000);
    const auto root = host::Root::open("/").value();
    auto own = *state::Journal::open("");
    EXPECT_TRUE(own.remember(task, CpuSet{0, 1}, CpuSet{1}, "ours"));
    const auto find = [&](const std::string& runtime_dir) {
        PeerDaemons peers(root, runtime_dir);
        peers.begin_pass();
        peers.see(peer, "affinityd");
        peers.see(::getpid(), "affinityd");
        peers.finish_pass();
        while (!peers.step(own, [] { return false; })) {
        }
        return peers.list();
    };
    const auto found = find("/run/affinityd-of-this-test");
    EXPECT_EQ(found.size(), 1U);
    if (!found.empty()) {
        EXPECT_EQ(found[0].runtime_dir + "/", tree.path());
    }
    EXPECT_TRUE(find(tree.path()).empty())
        << "a process that was just forked has this daemon's own journal open";
    ::kill(peer, SIGKILL);
    ::waitpid(peer, nullptr, 0);
}

} // namespace
} // namespace affinityd::coexist
