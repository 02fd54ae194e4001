// SPDX-License-Identifier: Apache-2.0
// The control room over its private socket: a real sd-bus client in a child process, or bare bytes, against
// the server in this process.
#include "control/server.hpp"
#include "fake_commands.hpp"
#include "support/no_descriptors_left.hpp"
#include "support/tree.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <tuple>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>
#include <unistd.h>

namespace affinityd::control {
namespace {

struct Answer {
    int status = 0;         ///< of sd_bus_call, or -EPROTO where the client died
    std::string text;       ///< the answer, or the error's message
    std::string error_name; ///< "" on success
};

sd_bus* connect_bus(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sd_bus* bus = nullptr;
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        sd_bus_new(&bus) < 0 || sd_bus_set_fd(bus, fd, fd) < 0 || sd_bus_start(bus) < 0)
        return nullptr;
    return bus;
}

int make_call(sd_bus* bus, sd_bus_message** call, const char* method, const char* types,
              const std::string& argument, const char* interface, const char* first = nullptr) {
    int status = sd_bus_message_new_method_call(bus, call, nullptr, "/org/affinityd", interface, method);
    if (status < 0) return status;
    if (std::strcmp(types, "s") == 0) return sd_bus_message_append(*call, "s", argument.c_str());
    if (std::strcmp(types, "ss") == 0)
        return sd_bus_message_append(*call, "ss", first == nullptr ? argument.c_str() : first,
                                     argument.c_str());
    if (std::strcmp(types, "u") == 0) return sd_bus_message_append(*call, "u", 7U);
    if (std::strcmp(types, "as") == 0) return sd_bus_message_append(*call, "as", 1, argument.c_str());
    return 0;
}

class ControlTest : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_GE(sd_event_new(&event_), 0);
        auto started = Server::start(event_, tree_.path(), commands_,
                                     {[this](core::Answer answer, core::Until until) {
                                          ++measured_;
                                          if (measuring_fails_)
                                              return answer(fail("a measurement is running already"));
                                          answer(until == core::Until::done ? "measured" : "begun");
                                      },
                                      {}},
                                     {bus_, calls_}, {});
        ASSERT_TRUE(started) << started.error().to_string();
        server_ = std::move(*started);
    }
    void TearDown() override {
        server_.reset();
        sd_event_unref(event_);
    }

    /// Runs the loop until `done` says so; false after ten seconds.
    template <class Done>
    bool run_until(Done done) {
        for (int turn = 0; turn < 1000; ++turn) {
            if (done()) return true;
            sd_event_run(event_, 10'000);
        }
        return false;
    }
    void settle() {
        while (sd_event_run(event_, 20'000) > 0) {
        }
    }

    /// A call by another process, which says in a pipe what it got.
    Answer call(const char* method, const char* types = "", const std::string& argument = {},
                const char* interface = "org.affinityd.Manager1", const char* first = nullptr) {
        std::array<int, 2> pipe{};
        EXPECT_EQ(::pipe2(pipe.data(), O_CLOEXEC | O_NONBLOCK), 0);
        const pid_t child = ::fork();
        if (child == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            ::fcntl(pipe[1], F_SETFL, 0);
            client(pipe[1], method, types, argument, interface, first);
        }
        ::close(pipe[1]);
        int ended = 0;
        std::string got;
        const bool over = run_until([&] {
            std::array<char, 4096> chunk{};
            for (ssize_t size = 0; (size = ::read(pipe[0], chunk.data(), chunk.size())) > 0;)
                got.append(chunk.data(), static_cast<std::size_t>(size));
            return ::waitpid(child, &ended, WNOHANG) == child;
        });
        if (!over) {
            ::kill(child, SIGKILL);
            ::waitpid(child, &ended, 0);
        }
        std::array<char, 4096> chunk{};
        for (ssize_t size = 0; (size = ::read(pipe[0], chunk.data(), chunk.size())) > 0;)
            got.append(chunk.data(), static_cast<std::size_t>(size));
        ::close(pipe[0]);
        Answer answer;
        const auto status_end = got.find('\n');
        const auto name_end = got.find('\n', status_end + 1);
        if (!over || name_end == std::string::npos) return {-EPROTO, "the client got no answer", {}};
        answer.status = std::stoi(got.substr(0, status_end));
        answer.error_name = got.substr(status_end + 1, name_end - status_end - 1);
        answer.text = got.substr(name_end + 1);
        return answer;
    }
    [[noreturn]] static void client_says(int out, const std::string& text) {
        std::size_t at = 0;
        while (at < text.size()) {
            const auto put = ::write(out, text.data() + at, text.size() - at);
            if (put <= 0) break;
            at += static_cast<std::size_t>(put);
        }
        ::_exit(0);
    }
    [[noreturn]] void client(int out, const char* method, const char* types, const std::string& argument,
                             const char* interface, const char* first) const {
        sd_bus* bus = connect_bus(socket_path(tree_.path()));
        if (bus == nullptr) ::_exit(1);
        sd_bus_message* message = nullptr;
        sd_bus_message* reply = nullptr;
        sd_bus_error error = SD_BUS_ERROR_NULL;
        int status = make_call(bus, &message, method, types, argument, interface, first);
        if (status >= 0) status = sd_bus_call(bus, message, 8'000'000, &error, &reply);
        const char* text = "";
        if (status >= 0) status = std::min(status, sd_bus_message_read(reply, "s", &text));
        const std::string name = error.name == nullptr ? "" : error.name;
        client_says(out, std::to_string(status) + "\n" + name + "\n" +
                             (error.message != nullptr ? error.message : text));
    }

    /// Bytes as they are; a connection that a test holds in its hand.
    [[nodiscard]] int bare() const {
        const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::strncpy(address.sun_path, socket_path(tree_.path()).c_str(), sizeof address.sun_path - 1);
        EXPECT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
        return fd;
    }
    static bool is_closed(int fd) {
        char byte = 0;
        ssize_t got = 0;
        while ((got = ::recv(fd, &byte, 1, MSG_DONTWAIT)) > 0) {
        }
        return got == 0 || (errno != EAGAIN && errno != EINTR);
    }

    test::Tree tree_;
    FakeCommands commands_;
    SystemBus bus_{[] { return std::unexpected(ENOENT); }};
    SystemBus calls_{[] { return std::unexpected(ENOENT); }};
    sd_event* event_ = nullptr;
    std::unique_ptr<Server> server_;
    unsigned measured_ = 0;
    bool measuring_fails_ = false;
};

TEST_F(ControlTest, TheSocketIsRootsFromTheFirstMoment) {
    struct stat status {};
    ASSERT_EQ(::lstat(socket_path(tree_.path()).c_str(), &status), 0);
    EXPECT_TRUE(S_ISSOCK(status.st_mode));
    EXPECT_EQ(status.st_mode & 0777, 0600U);
    server_.reset();
    EXPECT_NE(::lstat(socket_path(tree_.path()).c_str(), &status), 0) << "gone with the server";
}

TEST_F(ControlTest, ASocketThatAKilledDaemonLeftIsReplaced) {
    server_.reset();
    tree_.file("control", "left behind");
    auto again = Server::start(event_, tree_.path(), commands_, {}, {bus_, calls_}, {});
    ASSERT_TRUE(again) << again.error().to_string();
    server_ = std::move(*again);
    EXPECT_EQ(call("GetStatus").text, "{}");
}

TEST_F(ControlTest, APlaceThatCannotBeIsAnError) {
    EXPECT_FALSE(Server::start(event_, tree_.path(std::string(200, 'x')), commands_, {}, {bus_, calls_}, {}));
    const auto missing = Server::start(event_, tree_.path("missing"), commands_, {}, {bus_, calls_}, {});
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, ENOENT);
}

TEST_F(ControlTest, EveryMethodReachesItsCommand) {
    commands_.answer = "{\"a\": \"\xc3\xa4\"}";
    for (const char* method : {"GetStatus", "GetPlan", "Reload"})
        EXPECT_EQ(call(method).text, commands_.answer) << method;
    EXPECT_EQ(call("Explain", "s", "10").text, commands_.answer);
    EXPECT_EQ(call("Release", "s", "nginx").text, commands_.answer);
    EXPECT_EQ(call("Apply").text, commands_.answer);
    EXPECT_EQ(call("Measure").text, "measured");
    EXPECT_EQ(measured_, 1U);
    EXPECT_EQ(commands_.asked,
              (std::vector<std::string>{"status", "plan", "reload", "explain 10", "release nginx", "apply"}));
}

TEST_F(ControlTest, WhatIsOnlyToBeBegunIsNamedByItsMethod) {
    const auto begin = [this](const char* method, const char* argument = "") {
        return call("Begin", "ss", argument, "org.affinityd.Manager1", method);
    };
    EXPECT_EQ(begin("Apply").text, commands_.answer);
    EXPECT_EQ(begin("Reload").text, commands_.answer);
    EXPECT_EQ(begin("Release", "nginx").text, commands_.answer);
    EXPECT_EQ(begin("Measure").text, "begun");
    EXPECT_EQ(commands_.asked,
              (std::vector<std::string>{"begin apply", "begin reload", "begin release nginx"}));
    for (const char* name : {"GetStatus", "Begin", "apply", ""})
        EXPECT_EQ(begin(name).error_name, SD_BUS_ERROR_INVALID_ARGS) << name;
    EXPECT_EQ(call("Begin").error_name, SD_BUS_ERROR_INVALID_ARGS);
}

TEST_F(ControlTest, ARefusalCarriesItsReason) {
    commands_.refuses = true;
    commands_.answer = "neither a policy nor a process 100%s %n";
    const auto refused = call("Release", "s", "nobody");
    EXPECT_LT(refused.status, 0);
    EXPECT_EQ(refused.error_name, "org.affinityd.Error.Failed");
    EXPECT_NE(refused.text.find("100%s %n"), std::string::npos) << refused.text;
    measuring_fails_ = true;
    EXPECT_NE(call("Measure").text.find("running already"), std::string::npos);
}

TEST_F(ControlTest, TextOfAnyBytesArrives) {
    // Policy files are any bytes, and faults quote them.
    commands_.answer = "line 1: \xff\xfe \"x\xc0\"";
    EXPECT_EQ(call("Reload").text, "line 1: \xef\xbf\xbd\xef\xbf\xbd \"x\xef\xbf\xbd\"");
    commands_.refuses = true;
    const auto refused = call("Reload");
    EXPECT_EQ(refused.error_name, "org.affinityd.Error.Failed");
    EXPECT_NE(refused.text.find("line 1: \xef\xbf\xbd"), std::string::npos) << refused.text;
}

TEST_F(ControlTest, LongAnswersArriveWhole) {
    commands_.answer = std::string(20U << 20, 'x');
    const auto got = call("GetStatus");
    EXPECT_EQ(got.text.size(), commands_.answer.size()) << got.status;
}

TEST_F(ControlTest, HostileArgumentsAreJustText) {
    for (const auto& argument : {std::string(), std::string("../../etc"), std::string("%s%n"),
                                 std::string("\x01\x02\n"), std::string(1U << 20, 'a')}) {
        commands_.asked.clear();
        EXPECT_EQ(call("Explain", "s", argument).text, "{}");
        ASSERT_EQ(commands_.asked.size(), 1U);
        EXPECT_EQ(commands_.asked[0], "explain " + argument);
    }
}

TEST_F(ControlTest, WrongCallsAreRefusedAndNotCarriedOut) {
    EXPECT_EQ(call("Destroy").error_name, SD_BUS_ERROR_UNKNOWN_METHOD);
    EXPECT_EQ(call("GetStatus", "", "", "org.affinityd.Other").error_name, SD_BUS_ERROR_UNKNOWN_METHOD);
    EXPECT_EQ(call("Explain").error_name, SD_BUS_ERROR_INVALID_ARGS);
    for (const char* types : {"u", "ss", "as"}) {
        EXPECT_EQ(call("Explain", types, "10").error_name, SD_BUS_ERROR_INVALID_ARGS) << types;
        EXPECT_EQ(call("Release", types, "10").error_name, SD_BUS_ERROR_INVALID_ARGS) << types;
        EXPECT_EQ(call("Reload", types, "10").error_name, SD_BUS_ERROR_INVALID_ARGS) << types;
    }
    EXPECT_TRUE(commands_.asked.empty());
    EXPECT_EQ(call("GetStatus").text, "{}") << "and it still serves";
}

TEST_F(ControlTest, BytesThatAreNoMessageEndTheirConnectionOnly) {
    const std::string auth = std::string("\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n", 30);
    // A header that promises 128 MiB, one of an endianness that does not exist, one cut short.
    const std::string huge = auth + std::string("l\1\0\1\xff\xff\xff\x07\1\0\0\0\xff\xff\xff\x03", 16);
    const std::string strange =
        auth + std::string("X\1\0\1\0\0\0\0\1\0\0\0\0\0\0\0", 16) + std::string(64, '\xff');
    const std::string zeroes = auth + std::string(4096, '\0');
    std::vector<int> held;
    for (const auto& bytes : {std::string("GET / HTTP/1.0\r\n\r\n"), std::string(100000, 'A'),
                              std::string(1, '\0'), auth, huge, strange, zeroes, auth + "l"}) {
        const int fd = bare();
        (void)::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        held.push_back(fd);
        settle();
    }
    EXPECT_EQ(call("GetStatus").text, "{}");
    for (const int fd : held)
        ::close(fd);
    settle();
    EXPECT_EQ(call("GetStatus").text, "{}");
    EXPECT_EQ(commands_.asked, (std::vector<std::string>{"status", "status"}));
}

TEST_F(ControlTest, ACallThatComesTogetherWithTheEndOfTheHandshakeIsAnswered) {
    // A header of 16 bytes and its fields, each at a multiple of eight.
    const int fd = bare();
    std::string bytes("\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n", 29);
    const auto field = [&bytes, start = bytes.size()](char code, char type, const std::string& text) {
        bytes.resize(start + (bytes.size() - start + 7) / 8 * 8);
        bytes += {code, '\1', type, '\0', static_cast<char>(text.size()), '\0', '\0', '\0'};
        bytes += text + '\0';
    };
    const auto start = bytes.size();
    bytes += std::string("l\1\0\1\0\0\0\0\1\0\0\0\0\0\0\0", 16);
    field(1, 'o', "/org/affinityd");
    field(2, 's', "org.affinityd.Manager1");
    field(3, 's', "GetStatus");
    bytes[start + 12] = static_cast<char>(bytes.size() - start - 16);
    bytes.resize(start + (bytes.size() - start + 7) / 8 * 8);
    ASSERT_EQ(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
    EXPECT_TRUE(run_until([&] { return !commands_.asked.empty(); })) << "nothing else is sent";
    EXPECT_EQ(commands_.asked, std::vector<std::string>{"status"});
    ::close(fd);
}

TEST_F(ControlTest, WhenAllPlacesAreTakenTheOldestPeerMakesRoom) {
    std::vector<int> held;
    for (int i = 0; i < 80; ++i) {
        held.push_back(bare());
        settle();
    }
    std::vector<bool> closed;
    for (const int fd : held)
        closed.push_back(is_closed(fd));
    EXPECT_EQ(std::ranges::count(closed, true), 16) << "64 at a time";
    EXPECT_TRUE(std::all_of(closed.begin(), closed.begin() + 16, [](bool one) { return one; }));
    EXPECT_EQ(call("GetStatus").text, "{}") << "silent peers hold nobody up";
    for (const int fd : held)
        ::close(fd);
    settle();
    EXPECT_EQ(call("GetStatus").text, "{}");
}

TEST_F(ControlTest, APeerThatHasNotAuthenticatedItselfDoesNotHoldTheEnd) {
    const int silent = bare();
    settle();
    ASSERT_FALSE(is_closed(silent));
    ::alarm(20); // ends the test program where the server would wait for the peer: sd-bus gives it 90 s
    server_.reset();
    ::alarm(0);
    EXPECT_TRUE(is_closed(silent));
    ::close(silent);
}

TEST_F(ControlTest, WithoutADescriptorForItAConnectionWaitsAndTheLoopDoesNotSpin) {
    EXPECT_EQ(call("GetStatus").text, "{}"); // the loop has its timers from here on
    settle();                                // and has closed that connection
    const int waiting = bare();
    const std::string auth("\0AUTH EXTERNAL\r\nDATA\r\n", 23);
    ASSERT_EQ(::send(waiting, auth.data(), auth.size(), MSG_NOSIGNAL), static_cast<ssize_t>(auth.size()));
    const auto is_answered = [&] {
        char byte = 0;
        return ::recv(waiting, &byte, 1, MSG_DONTWAIT) == 1;
    };
    unsigned turns = 0;
    {
        const test::NoDescriptorsLeft none;
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
        while (std::chrono::steady_clock::now() < end)
            if (const int status = sd_event_run(event_, 10'000); status != 0) {
                ASSERT_GT(status, 0) << std::strerror(-status);
                ++turns;
            }
        EXPECT_FALSE(is_answered());
    }
    EXPECT_GE(turns, 1U) << "it tries";
    EXPECT_LT(turns, 3000U) << "64 attempts in a tenth of a second are allowed";
    EXPECT_TRUE(run_until(is_answered)) << "served as soon as descriptors are free";
    EXPECT_EQ(call("GetStatus").text, "{}");
    ::close(waiting);
}

TEST_F(ControlTest, AClientThatNeverReadsDoesNotHoldTheEnd) {
    commands_.answer = std::string(24U << 20, 'x');
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        sd_bus* bus = connect_bus(socket_path(tree_.path()));
        sd_bus_message* message = nullptr;
        std::uint64_t cookie = 0; // without one no answer is wanted
        if (bus == nullptr || make_call(bus, &message, "GetStatus", "", "", "org.affinityd.Manager1") < 0 ||
            sd_bus_send(bus, message, &cookie) < 0 || sd_bus_flush(bus) < 0)
            ::_exit(1);
        char byte = 0;
        std::ignore = ::read(pipe[0], &byte, 1); // until killed
        ::_exit(0);
    }
    EXPECT_TRUE(run_until([&] { return !commands_.asked.empty(); }));
    ::alarm(20); // ends the test program where the server would wait for ever
    server_.reset();
    ::alarm(0);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ::close(pipe[0]);
    ::close(pipe[1]);
}

} // namespace
} // namespace affinityd::control
