// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstring>

#include <sys/socket.h>

namespace affinityd::test {

/// Sends a packet with an open file beside it (SCM_RIGHTS, unix(7)), which stays open here; as sendmsg(2)
/// returns.
inline ssize_t send_with_file(int fd, const void* data, std::size_t size, int file) {
    iovec part{const_cast<void*>(data), size};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> beside{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = beside.data();
    message.msg_controllen = beside.size();
    auto* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &file, sizeof file);
    return ::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

} // namespace affinityd::test
