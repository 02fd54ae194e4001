// SPDX-License-Identifier: Apache-2.0
#include "enforcer/irqbalance.hpp"

#include "base/text.hpp"
#include "host/fd.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

namespace affinityd::enforcer {

namespace {

constexpr std::size_t longest_list =
    255; // what current versions copy of it; older ones take 500 bytes in all
constexpr std::size_t longest_answer = 65536;
constexpr timeval patience{0, 300'000};

/// It wants to see who sends: credentials go with the request.
bool send_with_credentials(int fd, const std::string& request) {
    iovec part{const_cast<char*>(request.data()), request.size()}; // NOLINT: sendmsg only reads it
    const ucred own{::getpid(), ::getuid(), ::getgid()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof own)> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    auto* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_CREDENTIALS;
    header->cmsg_len = CMSG_LEN(sizeof own);
    std::memcpy(CMSG_DATA(header), &own, sizeof own);
    return ::sendmsg(fd, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(request.size());
}

} // namespace

std::vector<unsigned> parse_irqbalance_setup(std::string_view text) {
    std::vector<unsigned> irqs;
    const auto words = split_words(text);
    for (std::size_t i = 0; i + 1 < words.size(); ++i)
        if (words[i] == "IRQ")
            if (const auto number = parse_number<unsigned>(words[i + 1])) irqs.push_back(*number);
    std::ranges::sort(irqs);
    irqs.erase(std::ranges::unique(irqs).begin(), irqs.end());
    return irqs;
}

std::vector<std::string> Irqbalance::sockets() const {
    std::vector<std::string> names;
    std::error_code ignored;
    for (auto entry = std::filesystem::directory_iterator(folder_, ignored);
         entry != std::filesystem::directory_iterator(); entry.increment(ignored)) {
        const auto name = entry->path().filename().string();
        if (name.starts_with("irqbalance") && name.ends_with(".sock")) names.push_back(name);
        if (ignored) break;
    }
    std::ranges::sort(names);
    return names;
}

Result<std::string> Irqbalance::ask(const std::string& socket, const std::string& request,
                                    bool wants_answer) const {
    const std::string path = folder_ + "/" + socket;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) return fail("the path is too long for a socket", path);
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    const host::Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
        return fail("cannot connect", path, errno);
    if (!send_with_credentials(fd.get(), request)) return fail("cannot send", path, errno);
    std::string answer;
    std::array<char, 4096> chunk{};
    while (wants_answer && answer.size() < longest_answer) {
        const auto got = ::recv(fd.get(), chunk.data(), chunk.size(), 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail("no answer", path, errno);
        if (got == 0) break;
        answer.append(chunk.data(), static_cast<std::size_t>(got));
    }
    return answer;
}

Result<std::vector<unsigned>> Irqbalance::banned(const std::string& socket) const {
    const auto answer = ask(socket, "setup", true);
    if (!answer) return std::unexpected(answer.error());
    if (!answer->starts_with("SLEEP "))
        return fail("irqbalance gave no answer that is known", folder_ + "/" + socket);
    return parse_irqbalance_setup(*answer);
}

Result<void> Irqbalance::ban(const std::string& socket, const std::vector<unsigned>& irqs) const {
    std::string list;
    for (const unsigned irq : irqs)
        list += (list.empty() ? "" : " ") + std::to_string(irq);
    if (list.empty()) list = "NONE";
    if (list.size() > longest_list)
        return fail("irqbalance takes no list of so many interrupts", folder_ + "/" + socket);
    const auto done = ask(socket, "settings ban irqs " + list, false);
    if (!done) return std::unexpected(done.error());
    return {};
}

} // namespace affinityd::enforcer
