// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/fd.hpp"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/userfaultfd.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace affinityd {

/// Holds the lock of a TCP socket, as any process can that has it open: a system call that has taken it reads
/// a page that does not come until let_go(). Source: userfaultfd(2); ip(7), IP_OPTIONS.
class HeldSocket {
  public:
    explicit HeldSocket(int socket)
        : faults_(static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK))),
          size_(::sysconf(_SC_PAGESIZE)),
          page_(::mmap(nullptr, static_cast<std::size_t>(size_), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
        uffdio_api api{.api = UFFD_API, .features = 0, .ioctls = 0};
        EXPECT_EQ(::ioctl(faults_.get(), UFFDIO_API, &api), 0) << std::strerror(errno);
        uffdio_register wanted{.range = range(), .mode = UFFDIO_REGISTER_MODE_MISSING, .ioctls = 0};
        EXPECT_EQ(::ioctl(faults_.get(), UFFDIO_REGISTER, &wanted), 0) << std::strerror(errno);
        holder_ =
            std::thread([socket, page = page_] { ::setsockopt(socket, IPPROTO_IP, IP_OPTIONS, page, 4); });
        pollfd fault{faults_.get(), POLLIN, 0};
        EXPECT_EQ(::poll(&fault, 1, 30'000), 1);
        EXPECT_EQ(fault.revents, POLLIN) << "it does not read the page";
    }
    HeldSocket(const HeldSocket&) = delete;
    HeldSocket& operator=(const HeldSocket&) = delete;
    ~HeldSocket() {
        let_go();
        ::munmap(page_, static_cast<std::size_t>(size_));
    }
    void let_go() {
        if (!holder_.joinable()) return;
        uffdio_zeropage zero{.range = range(), .mode = 0, .zeropage = 0};
        EXPECT_EQ(::ioctl(faults_.get(), UFFDIO_ZEROPAGE, &zero), 0) << std::strerror(errno);
        holder_.join();
    }

  private:
    [[nodiscard]] uffdio_range range() const {
        return {reinterpret_cast<__u64>(page_), static_cast<__u64>(size_)};
    }
    host::Fd faults_;
    long size_;
    void* page_;
    std::thread holder_;
};

} // namespace affinityd
