// SPDX-License-Identifier: Apache-2.0
// The processes that are meant, and how many share a port.
#include "affinityctl/locality/watch.hpp"
#include "host/fd.hpp"

#include <array>
#include <cerrno>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace affinityctl {
namespace {

using affinityd::host::Fd;
using affinityd::host::Root;
using affinityd::netdev::Nic;
using nlohmann::json;

/// A listener on loopback; `port` 0: any, which is put there.
Fd listener(in_port_t& port, bool shares) {
    Fd made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = port;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* raw = reinterpret_cast<sockaddr*>(&address);
    const int on = shares ? 1 : 0;
    EXPECT_EQ(::setsockopt(made.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)), 0);
    EXPECT_EQ(::bind(made.get(), raw, size), 0);
    EXPECT_EQ(::listen(made.get(), 8), 0);
    EXPECT_EQ(::getsockname(made.get(), raw, &size), 0);
    port = address.sin_port;
    return made;
}

TEST(Listeners, AtOnePortAreCounted) {
    const auto root = Root::open();
    ASSERT_TRUE(root);
    const std::array pids{static_cast<int>(::getpid())};
    in_port_t alone = 0, shared = 0;
    const auto one = listener(alone, false);
    EXPECT_EQ(listeners_at_one_port(*root, pids), 1U);
    std::vector<Fd> three;
    for (int i = 0; i < 3; ++i)
        three.push_back(listener(shared, true));
    EXPECT_EQ(listeners_at_one_port(*root, pids), 3U);
    const std::array nobody{4194305};
    EXPECT_EQ(listeners_at_one_port(*root, nobody), 0U);
}

Nic nic(const std::string& name, unsigned ifindex, std::vector<std::string> lower) {
    Nic made;
    made.name = name;
    made.ifindex = ifindex;
    made.lower = std::move(lower);
    return made;
}

TEST(Subject, AnInterfaceStandsForWhatIsOnIt) {
    const std::vector<Nic> nics{nic("eth0", 2, {}), nic("eth1", 3, {}), nic("bond0.7", 5, {"bond0"}),
                                nic("bond0", 4, {"eth0", "eth1"})};
    EXPECT_EQ(devices_over(nics, "eth1"), (std::vector<unsigned>{3, 4, 5}));
    EXPECT_EQ(devices_over(nics, "bond0.7"), (std::vector<unsigned>{5}));
    EXPECT_TRUE(devices_over(nics, "eth9").empty());
    const std::vector<Nic> loop{nic("a", 1, {"b"}), nic("b", 2, {"a"})};
    EXPECT_EQ(devices_over(loop, "a"), (std::vector<unsigned>{1, 2}));
}

TEST(Subject, APolicyThatSteersListenersIsFoundByItsProcesses) {
    const auto status = json::parse(R"({"policies": [{"name": "web", "steer": {"listeners": 2}},
        {"name": "db", "steer": {"listeners": 0, "left": [{}]}}, {"name": "ssh", "steer": {"listeners": 0, "left": []}}, 7],
        "processes": [{"policy": "web", "pid": 12}, {"policy": "db", "pid": 13}, {"policy": "ssh", "pid": 14}]})");
    EXPECT_EQ(steering_policy(status, {11, 12}), "web");
    EXPECT_EQ(steering_policy(status, {11, 13}), "db");
    EXPECT_EQ(steering_policy(status, {11, 14}), "");
    EXPECT_EQ(steering_policy(json(), {12}), "");
}

TEST(Subject, IsWhatTheWordStandsFor) {
    using Kind = LocalitySubject::Kind;
    const auto root = Root::open();
    ASSERT_TRUE(root);
    const std::vector<Nic> nics{nic("eth0", 2, {})};
    const auto status = json::parse(R"({"policies": [{"name": "web"}, {"name": "eth0"}],
        "processes": [{"policy": "web", "pid": 12}, {"policy": "db", "pid": 13}, {"policy": 5}, 7]})");
    const auto kind = [&](const std::string& word) { return read_subject(*root, word, nics, status)->kind; };
    EXPECT_EQ(kind(""), Kind::all);
    EXPECT_EQ(kind(std::to_string(::getpid())), Kind::process);
    EXPECT_EQ(kind("eth0"), Kind::nic) << "interfaces come first";
    EXPECT_EQ(kind("web"), Kind::policy);
    EXPECT_EQ(processes_under(status, "web"), (std::vector<int>{12}));
    EXPECT_FALSE(processes_under(status, "db"));
    EXPECT_FALSE(processes_under(json(), "web"));
    const auto error = [&](const std::string& word, const json& known) {
        return read_subject(*root, word, nics, known).error();
    };
    EXPECT_EQ(error("wep", status).code, ENOENT);
    EXPECT_NE(error("wep", status).message.find("did you mean 'web'?"), std::string::npos);
    EXPECT_EQ(error("wep", json()).code, ENOTCONN);
    EXPECT_EQ(error("no-such.service", json()).code, ENOENT);
    EXPECT_EQ(error("4194305", status).code, ESRCH);
    EXPECT_EQ(error("99999999999999", status).code, ESRCH);
}

} // namespace
} // namespace affinityctl
