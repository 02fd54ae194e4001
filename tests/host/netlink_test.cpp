// SPDX-License-Identifier: Apache-2.0
// The kernel's part is played by a second socket: netlink between programs (NETLINK_USERSOCK).
#include "host/netlink.hpp"

#include <cerrno>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <netlink/msg.h>
#include <netlink/socket.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

namespace affinityd::host {
namespace {

constexpr int answer_type = 100;

/// Answers `requests` requests, one after the other, each by `script`, and then leaves.
class FakeKernel {
  public:
    struct Message {
        int type = answer_type;
        int flags = NLM_F_MULTI;
        int value = 0;
    };
    using Script = std::function<std::vector<Message>(int request)>;

    FakeKernel(int requests, Script script)
        : fd_(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_USERSOCK)) {
        sockaddr_nl own{};
        own.nl_family = AF_NETLINK;
        EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&own), sizeof own), 0);
        socklen_t length = sizeof own;
        EXPECT_EQ(::getsockname(fd_, reinterpret_cast<sockaddr*>(&own), &length), 0);
        port_ = own.nl_pid;
        const timeval patience{10, 0}; // a request that never comes fails the test and does not hang it
        ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        worker_ = std::thread([this, requests, script = std::move(script)] {
            for (int i = 0; i < requests; ++i)
                if (!answer(script(i))) return;
        });
    }
    FakeKernel(const FakeKernel&) = delete;
    FakeKernel& operator=(const FakeKernel&) = delete;
    ~FakeKernel() {
        worker_.join();
        ::close(fd_);
    }
    [[nodiscard]] unsigned port() const { return port_; }

  private:
    bool answer(const std::vector<Message>& messages) {
        struct {
            nlmsghdr head;
            char rest[256];
        } request{};
        sockaddr_nl sender{};
        socklen_t length = sizeof sender;
        if (::recvfrom(fd_, &request, sizeof request, 0, reinterpret_cast<sockaddr*>(&sender), &length) <= 0)
            return false;
        std::vector<char> bytes;
        for (const auto& message : messages) {
            struct {
                nlmsghdr head;
                int value;
                nlmsghdr about;
            } text{};
            text.head.nlmsg_len = message.type == NLMSG_ERROR ? sizeof text : NLMSG_LENGTH(sizeof text.value);
            text.head.nlmsg_type = static_cast<__u16>(message.type);
            text.head.nlmsg_flags = static_cast<__u16>(message.flags);
            text.head.nlmsg_seq = request.head.nlmsg_seq;
            text.head.nlmsg_pid = sender.nl_pid;
            text.value = message.value;
            text.about = request.head;
            const auto* first = reinterpret_cast<const char*>(&text);
            bytes.insert(bytes.end(), first, first + text.head.nlmsg_len);
        }
        return ::sendto(fd_, bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&sender), length) > 0;
    }

    int fd_;
    unsigned port_ = 0;
    std::thread worker_;
};

struct Asked {
    Result<bool> outcome = false;
    std::vector<int> values; ///< of the last attempt
    int attempts = 0;
};

Asked list_from(const FakeKernel& kernel) {
    auto socket = open_netlink(NETLINK_USERSOCK);
    auto request = make_request(answer_type, NLM_F_DUMP);
    if (!socket || !request) return {fail("no netlink"), {}, 0};
    nl_socket_set_peer_port(socket->get(), kernel.port());
    Asked asked;
    const auto begin = [&] {
        ++asked.attempts;
        asked.values.clear();
    };
    const auto take = [&](const nlmsghdr& head) {
        int value = 0;
        std::memcpy(&value, NLMSG_DATA(&head), sizeof value);
        asked.values.push_back(value);
    };
    asked.outcome = ask(**socket, **request, {begin, take});
    return asked;
}

TEST(Netlink, ListComesWhole) {
    const FakeKernel kernel(1, [](int) {
        return std::vector<FakeKernel::Message>{{.value = 1}, {.value = 2}, {.type = NLMSG_DONE}};
    });
    const auto asked = list_from(kernel);
    ASSERT_TRUE(asked.outcome) << asked.outcome.error().to_string();
    EXPECT_TRUE(*asked.outcome);
    EXPECT_EQ(asked.values, (std::vector{1, 2}));
}

/// As the kernel does where one of the things that it lists does not answer it.
TEST(Netlink, EarlyEndOfAListKeepsWhatCameBefore) {
    const FakeKernel kernel(1, [](int) {
        return std::vector<FakeKernel::Message>{{.value = 1}, {.type = NLMSG_DONE, .value = -ENODEV}};
    });
    const auto asked = list_from(kernel);
    ASSERT_TRUE(asked.outcome) << asked.outcome.error().to_string();
    EXPECT_EQ(asked.values, (std::vector{1}));
}

TEST(Netlink, InterruptedListIsReadAgainAndWhatCameBeforeIsForgotten) {
    const FakeKernel kernel(3, [](int request) {
        const int flags = NLM_F_MULTI | (request < 2 ? NLM_F_DUMP_INTR : 0);
        return std::vector<FakeKernel::Message>{
            {.value = request * 10}, {.flags = flags, .value = request * 10 + 1}, {.type = NLMSG_DONE}};
    });
    const auto asked = list_from(kernel);
    ASSERT_TRUE(asked.outcome) << asked.outcome.error().to_string();
    EXPECT_EQ(asked.values, (std::vector{20, 21}));
    EXPECT_EQ(asked.attempts, 3);
}

TEST(Netlink, ListThatChangesInEveryAttemptIsAFaultAndNotTakenForTheEnd) {
    const FakeKernel kernel(most_attempts, [](int) {
        return std::vector<FakeKernel::Message>{{.flags = NLM_F_MULTI | NLM_F_DUMP_INTR},
                                                {.type = NLMSG_DONE}};
    });
    const auto asked = list_from(kernel);
    ASSERT_FALSE(asked.outcome);
    EXPECT_EQ(asked.outcome.error().code, EAGAIN);
    EXPECT_EQ(asked.attempts, most_attempts);
}

TEST(Netlink, RefusalIsNoFault) {
    const FakeKernel kernel(1, [](int) {
        return std::vector<FakeKernel::Message>{{.type = NLMSG_ERROR, .flags = 0, .value = -EOPNOTSUPP}};
    });
    const auto asked = list_from(kernel);
    ASSERT_TRUE(asked.outcome) << asked.outcome.error().to_string();
    EXPECT_FALSE(*asked.outcome);
}

} // namespace
} // namespace affinityd::host
