// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace affinityd::test {

/// Answers at a socket as irqbalance does: one request of at most 500 bytes for each connection, only from
/// root and only with credentials.
class FakeIrqbalance {
  public:
    FakeIrqbalance(const std::string& folder, unsigned pid, std::vector<unsigned> banned)
        : path_(folder + "/irqbalance" + std::to_string(pid) + ".sock"), banned_(std::move(banned)) {
        fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        path_.copy(address.sun_path, sizeof address.sun_path - 1);
        const int on = 1;
        ::setsockopt(fd_, SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
        if (::bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
            ::listen(fd_, 5) != 0)
            ::abort();
        server_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
    }
    FakeIrqbalance(const FakeIrqbalance&) = delete;
    FakeIrqbalance& operator=(const FakeIrqbalance&) = delete;
    ~FakeIrqbalance() {
        server_.request_stop();
        server_.join();
        ::close(fd_);
        ::unlink(path_.c_str());
    }

    [[nodiscard]] std::vector<unsigned> banned() {
        const std::scoped_lock lock(mutex_);
        return banned_;
    }
    [[nodiscard]] unsigned requests() const { return requests_; }
    /// From now on it accepts connections and never answers.
    void hang() { hangs_ = true; }

  private:
    void serve(const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            pollfd waiting{fd_, POLLIN, 0};
            if (::poll(&waiting, 1, 10) <= 0) continue;
            const int peer = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
            if (hangs_)
                kept_.push_back(peer);
            else
                answer(peer);
        }
        for (const int peer : kept_)
            ::close(peer);
    }
    void answer(int peer) {
        char text[500] = {};
        alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred))] = {};
        iovec part{text, sizeof text};
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        const auto size = ::recvmsg(peer, &message, 0);
        const auto* header = CMSG_FIRSTHDR(&message);
        if (size > 0 && header != nullptr && header->cmsg_type == SCM_CREDENTIALS)
            obey(peer, {text, static_cast<std::size_t>(size)});
        ::close(peer);
    }
    void obey(int peer, const std::string& request) {
        const std::scoped_lock lock(mutex_);
        const std::string prefix = "settings ban irqs ";
        if (request == "setup") {
            std::string setup = "SLEEP 10 ";
            for (const unsigned irq : banned_)
                setup += "IRQ " + std::to_string(irq) + " LOAD 0 DIFF 0 CLASS 5 ";
            setup += "BANNED 0";
            if (::send(peer, setup.data(), setup.size(), MSG_NOSIGNAL) < 0) return;
        } else if (request.starts_with(prefix)) {
            banned_.clear();
            std::istringstream list(request.substr(prefix.size()));
            for (unsigned irq = 0; list >> irq;)
                banned_.push_back(irq);
        }
        ++requests_;
    }

    std::string path_;
    std::vector<unsigned> banned_;
    std::mutex mutex_;
    std::atomic<unsigned> requests_ = 0;
    std::atomic<bool> hangs_ = false;
    std::vector<int> kept_;
    int fd_ = -1;
    std::jthread server_;
};

} // namespace affinityd::test
