// SPDX-License-Identifier: Apache-2.0
// Whether a program is the one that this machine has at its path: real processes, in mount namespaces of
// their own and not, as the user that an attacker is.
#include "inventory/facts.hpp"
#include "recorded.hpp"
#include "support/nobody.hpp"

#include <csignal>
#include <filesystem>
#include <functional>
#include <tuple>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace affinityd::inventory {
namespace {

namespace fs = std::filesystem;

using affinityd::test::nobody;

/// A process that runs a program which sleeps.
class Sleeper {
  public:
    /// `prepare` gives a descriptor to run from, or -1: by the path.
    Sleeper(const std::string& path, const std::function<int()>& prepare, unsigned user = 0) {
        int started[2];
        if (::pipe2(started, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
        pid_ = ::fork();
        if (pid_ == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            run(path, prepare(), user);
            std::ignore = ::write(started[1], "x", 1);
            ::_exit(1);
        }
        ::close(started[1]);
        char byte = 0;
        runs_ = ::read(started[0], &byte, 1) == 0; // exec closes it
        ::close(started[0]);
    }
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;
    ~Sleeper() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    [[nodiscard]] int pid() const { return pid_; }
    [[nodiscard]] bool runs() const { return runs_; }

  private:
    static void run(const std::string& path, int file, unsigned user) {
        if (user != 0 && (::setresgid(user, user, user) != 0 || ::setresuid(user, user, user) != 0)) return;
        std::string name = "nginx";
        std::string time = "1000";
        char* arguments[] = {name.data(), time.data(), nullptr};
        char* nothing[] = {nullptr};
        if (file >= 0)
            ::fexecve(file, arguments, nothing);
        else
            ::execve(path.c_str(), arguments, nothing);
    }
    int pid_ = -1;
    bool runs_ = false;
};

class ProgramFile : public testing::Test {
  protected:
    ProgramFile() {
        fs::permissions(tree_.path(), fs::perms(0755));
        for (const char* folder : {"sbin", "home"})
            tree_.folder(folder);
        program(system_);
        program(evil_);
        EXPECT_EQ(::chown(evil_.c_str(), nobody, nobody), 0) << "the test needs to be root";
    }
    static void program(const std::string& path) {
        fs::remove(path);
        fs::copy_file("/bin/sleep", path);
        fs::permissions(path, fs::perms(0755));
    }
    /// Mounts the intruder's file over the system's, in a mount namespace of the caller's own.
    [[nodiscard]] bool mount_over() const {
        return ::unshare(CLONE_NEWNS) == 0 &&
               ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
               ::mount(evil_.c_str(), system_.c_str(), nullptr, MS_BIND, nullptr) == 0;
    }
    /// Whether the process's program is this machine's; a failure if it does not show the system's path.
    [[nodiscard]] bool is_true(const Sleeper& sleeper) const {
        EXPECT_TRUE(sleeper.runs());
        const auto root = host::Root::open().value();
        const auto process = test::read_process(root, sleeper.pid());
        if (!process) return false;
        EXPECT_EQ(process->facts->exe(), system_);
        return process->facts->is_exe_true();
    }
    static int by_path() { return -1; }

    test::Tree tree_;
    std::string system_ = tree_.path("sbin/nginx");
    std::string evil_ = tree_.path("home/evil");
};

TEST_F(ProgramFile, OfAnyUsersProcessIsTheOneAtItsPath) {
    EXPECT_TRUE(is_true(Sleeper(system_, by_path)));
    EXPECT_TRUE(is_true(Sleeper(system_, by_path, nobody)));
}

TEST_F(ProgramFile, IsKnownInAMountNamespaceOfAService) {
    const Sleeper service(system_, [] {
        const bool has_own =
            ::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
        return has_own ? -1 : 1000;
    });
    EXPECT_TRUE(is_true(service));
}

TEST_F(ProgramFile, MountedOverThePathIsAnother) {
    const Sleeper intruder(
        system_, [&] { return mount_over() ? -1 : 1000; }, nobody);
    EXPECT_FALSE(is_true(intruder));
}

TEST_F(ProgramFile, MountedOverThePathAndRemovedIsAnother) {
    const Sleeper intruder(
        system_, [&] { return mount_over() ? -1 : 1000; }, nobody);
    fs::remove(evil_);
    EXPECT_FALSE(is_true(intruder));
}

TEST_F(ProgramFile, HandedOverFromAnotherMountNamespaceIsAnother) {
    const Sleeper intruder(
        system_,
        [&] { // the process itself lives in the namespace of all
            const int all = ::open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
            const int file = mount_over() ? ::open(system_.c_str(), O_PATH) : 1000;
            const int other = ::open("/proc/self/ns/mnt", O_RDONLY); // keeps it and its mounts
            return other >= 0 && ::setns(all, CLONE_NEWNS) == 0 ? file : 1000;
        },
        nobody);
    EXPECT_FALSE(is_true(intruder));
}

TEST_F(ProgramFile, WhereThisMachineHasNoneIsAnother) {
    fs::remove(system_);
    const auto folder = tree_.path("sbin");
    const Sleeper intruder(
        system_,
        [&] {
            const bool has_own = ::unshare(CLONE_NEWNS) == 0 &&
                                 ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                                 ::mount("none", folder.c_str(), "tmpfs", 0, "mode=0755") == 0;
            if (has_own) program(system_);
            return has_own ? -1 : 1000;
        },
        nobody);
    EXPECT_FALSE(is_true(intruder));
}

TEST_F(ProgramFile, ReplacedOrRemovedWhileItRunsIsStillItself) {
    const Sleeper sleeper(system_, by_path);
    const auto next = tree_.path("sbin/next");
    program(next);
    fs::rename(next, system_); // as packages do
    EXPECT_TRUE(is_true(sleeper));
    fs::remove_all(tree_.path("sbin"));
    EXPECT_TRUE(is_true(sleeper)) << "and its folder with it";
}

TEST_F(ProgramFile, ReplacedWhileItRunsInTheMountNamespaceOfAServiceIsStillItself) {
    const Sleeper service(system_, [] {
        const bool has_own =
            ::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
        return has_own ? -1 : 1000;
    });
    const auto next = tree_.path("sbin/next");
    program(next);
    fs::rename(next, system_);
    EXPECT_TRUE(is_true(service));
}

TEST_F(ProgramFile, RemovedInAMountNamespaceOfAUsersIsNotBelieved) {
    const Sleeper intruder(system_, [] { // as root there, in a user namespace of his own
        const bool has_own = ::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
                             ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
        return has_own ? -1 : 1000;
    });
    EXPECT_TRUE(is_true(intruder)) << "as long as it is there";
    fs::remove(system_);
    EXPECT_FALSE(is_true(intruder)) << "it can have been any file of root's";
}

TEST(ProgramOf, TellsRemovedPrograms) {
    EXPECT_EQ(program_of("/usr/sbin/nginx").path, "/usr/sbin/nginx");
    EXPECT_FALSE(program_of("/usr/sbin/nginx").is_removed);
    EXPECT_EQ(program_of("/usr/sbin/nginx (deleted)").path, "/usr/sbin/nginx");
    EXPECT_TRUE(program_of("/usr/sbin/nginx (deleted)").is_removed);
    EXPECT_EQ(program_of("").path, "");
}

TEST(ProgramOfARecording, IsBelieved) {
    const test::Tree tree;
    tree.folder("proc/50");
    const auto root = host::Root::open(tree.path()).value();
    EXPECT_TRUE(is_program_of_this_machine(root, root.proc().dir("50").value(), {"/usr/sbin/nginx"}).value());
}

} // namespace
} // namespace affinityd::inventory
