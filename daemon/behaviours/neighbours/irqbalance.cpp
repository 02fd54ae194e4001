// SPDX-License-Identifier: Apache-2.0
#include "behaviours/neighbours/irqbalance.hpp"

#include "base/text.hpp"
#include "host/file.hpp"
#include "host/local_socket.hpp"
#include "host/signals.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

namespace affinityd::behaviours {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds patience{300}; ///< for an answer
constexpr std::size_t most_names = 64;             ///< in its folder
constexpr std::size_t longest_answer = 65536;
/// Current versions copy so many bytes of a list; older ones take 500 in all.
constexpr std::size_t longest_list = 255;
constexpr const char* by_hand =
    "start it with IRQBALANCE_ARGS=\"--banirq=N\" for each interrupt that is under policy";

} // namespace

std::optional<std::string> ban_request(const std::vector<unsigned>& irqs) {
    std::string list;
    for (const unsigned irq : irqs) {
        list += (list.empty() ? "" : " ") + std::to_string(irq);
        if (list.size() > longest_list) return std::nullopt;
    }
    return "settings ban irqs " + (list.empty() ? "NONE" : list);
}

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

bool is_setup_answer(std::string_view text) { return text.starts_with("SLEEP "); }

bool is_irqbalance_socket(std::string_view name) {
    constexpr std::string_view head = "irqbalance";
    constexpr std::string_view tail = ".sock";
    if (!name.starts_with(head) || !name.ends_with(tail) || name.size() <= head.size() + tail.size())
        return false;
    name.remove_prefix(head.size());
    name.remove_suffix(tail.size());
    return parse_number<unsigned>(name).has_value();
}

std::string print_record(const BannedLists& lists) {
    std::string text;
    for (const auto& [socket, irqs] : lists) {
        text += socket;
        for (const unsigned irq : irqs)
            text += " " + std::to_string(irq);
        text += '\n';
    }
    return text;
}

BannedLists parse_record(std::string_view text) {
    BannedLists lists;
    for (const auto line : split(text, '\n')) {
        const auto words = split_words(line);
        if (words.empty()) continue;
        auto& irqs = lists[std::string(words[0])];
        for (std::size_t i = 1; i < words.size(); ++i)
            if (const auto irq = parse_number<unsigned>(words[i])) irqs.push_back(*irq);
        std::ranges::sort(irqs);
    }
    return lists;
}

namespace {

/// irqbalance wants to see who sends: credentials go with the request.
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
    return ::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(request.size());
}

/// unix(7), SO_PEERCRED: root, or the daemon's own user, listens there.
bool is_roots(int fd) {
    ucred peer{};
    socklen_t size = sizeof peer;
    return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           (peer.uid == 0 || peer.uid == ::geteuid());
}

/// Sends a request over a connection of its own. `wants_answer`: the peer's text up to its end is the result.
Result<std::string> ask(const std::string& path, const std::string& request, bool wants_answer) {
    const auto end = Clock::now() + patience;
    const auto address = host::local_address(path);
    if (!address) return std::unexpected(address.error());
    const host::Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const timeval limit{0, std::chrono::microseconds(patience).count()};
    if (!socket || ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0 ||
        ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) != 0)
        return fail("cannot make a socket", path, errno);
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0)
        return fail("cannot connect", path, errno);
    if (!is_roots(socket.get())) return fail("another user than root listens", path);
    if (!send_with_credentials(socket.get(), request)) return fail("cannot send", path, errno);
    std::string answer;
    std::array<char, 4096> chunk{};
    while (wants_answer && answer.size() < longest_answer) {
        const auto got = ::recv(socket.get(), chunk.data(), chunk.size(), 0);
        if (got == 0) break;
        if (got < 0 && errno != EAGAIN && errno != EINTR) return fail("no answer", path, errno);
        if (Clock::now() >= end) return fail("no answer in time", path);
        if (got > 0) answer.append(chunk.data(), static_cast<std::size_t>(got));
    }
    return answer;
}

/// Sockets of running instances, by name; the name holds the process id.
std::vector<std::string> list_sockets(const std::string& folder) {
    std::vector<std::string> names;
    std::error_code code;
    if (!host::check_ownership(folder)) return names; // any user may have made them
    for (std::filesystem::directory_iterator entry(folder, code), end;
         entry != end && names.size() < most_names; entry.increment(code))
        if (auto name = entry->path().filename().string(); is_irqbalance_socket(name))
            names.push_back(std::move(name));
    return names;
}

/// The thread's part.
struct Conversation {
    const std::string folder, record;
    const Irqbalance::Wish wish;
    Irqbalance::Instances instances;

    [[nodiscard]] BannedLists read_record() const {
        const auto text = host::read_file(record);
        return text && *text ? parse_record(**text) : BannedLists{};
    }
    [[nodiscard]] Result<void> write_record() const {
        BannedLists lists;
        for (const auto& [socket, instance] : instances)
            if (instance.is_known) lists[socket] = instance.original;
        return host::replace_file(record, print_record(lists));
    }
    [[nodiscard]] Result<void> learn(const std::string& socket, Irqbalance::Instance& instance) const;
    [[nodiscard]] Result<void> give(const std::string& socket, Irqbalance::Instance& instance) const;
    void keep_off();
    [[nodiscard]] std::vector<Error> give_back();
};

/// Learns an instance's list from its own answer.
Result<void> Conversation::learn(const std::string& socket, Irqbalance::Instance& instance) const {
    const auto path = folder + "/" + socket;
    const auto answer = ask(path, "setup", true);
    if (!answer) return std::unexpected(answer.error());
    if (!is_setup_answer(*answer)) return fail("irqbalance's answer cannot be read", path);
    instance.asked = parse_irqbalance_setup(*answer);
    // After an earlier daemon was killed, the bans in force are not irqbalance's own.
    const auto recorded = read_record();
    const auto before = recorded.find(socket);
    instance.original = before != recorded.end() ? before->second : instance.asked;
    instance.is_known = true;
    return {};
}

/// Gives an instance its own list and the interrupts of the wish.
Result<void> Conversation::give(const std::string& socket, Irqbalance::Instance& instance) const {
    std::vector<unsigned> list;
    std::ranges::set_union(instance.original, wish.irqs, std::back_inserter(list));
    if (list == instance.asked) return {};
    const auto path = folder + "/" + socket;
    const auto request = ban_request(list);
    if (!request) return fail("irqbalance takes no list of so many interrupts", path);
    // A change without a record could not be undone, so it is not made.
    if (!wish.is_return)
        if (auto written = write_record(); !written) return written;
    if (const auto sent = ask(path, *request, false); !sent) return std::unexpected(sent.error());
    instance.asked = std::move(list);
    return {};
}

void Conversation::keep_off() {
    const auto names = list_sockets(folder);
    std::erase_if(instances,
                  [&](const auto& entry) { return std::ranges::find(names, entry.first) == names.end(); });
    for (const auto& socket : names) {
        auto& instance = instances[socket];
        if (!instance.is_known && wish.irqs.empty() && !read_record().contains(socket)) continue;
        auto done = instance.is_known ? Result<void>() : learn(socket, instance);
        if (done) done = give(socket, instance);
        instance.fault = done ? "" : done.error().to_string();
    }
}

std::vector<Error> Conversation::give_back() {
    std::vector<Error> faults;
    for (auto& [socket, instance] : instances)
        if (instance.is_known)
            if (auto done = give(socket, instance); !done) faults.push_back(done.error());
    const auto is_over = [](const auto& one) {
        return one.second.is_known && one.second.asked == one.second.original;
    };
    if (std::erase_if(instances, is_over) > 0)
        if (const auto done = write_record(); !done) faults.push_back(done.error());
    return faults;
}

} // namespace

Irqbalance::Irqbalance(std::string folder, std::string record)
    : folder_(std::move(folder)), record_(std::move(record)),
      over_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void Irqbalance::keep_off(std::vector<unsigned> irqs) { talk({std::move(irqs), false}); }

void Irqbalance::give_back() { talk({{}, true}); }

/// A conversation under way is finished first.
void Irqbalance::talk(Wish wish) {
    wish_ = std::move(wish);
    is_new_ = is_talking();
    if (is_new_) return;
    no_thread_ = over_ ? "" : "no descriptors are left to talk to irqbalance";
    if (!over_) return;
    const host::BlockedSignals blocked;
    try {
        talking_ = std::async(std::launch::async, [about = Conversation{folder_, record_, wish_, instances_},
                                                   over = over_.get()]() mutable {
            std::vector<Error> faults;
            if (about.wish.is_return)
                faults = about.give_back();
            else
                about.keep_off();
            const std::uint64_t one = 1;
            std::ignore = ::write(over, &one, sizeof one);
            return Outcome{std::move(about.instances), std::move(faults)};
        });
    } catch (const std::system_error&) {
        no_thread_ = "no thread is to be had to talk to irqbalance";
    }
}

void Irqbalance::handle() {
    std::uint64_t count = 0;
    if (::read(over_.get(), &count, sizeof count) < 0 || !is_talking()) return;
    auto outcome = talking_.get();
    instances_ = std::move(outcome.instances);
    std::ranges::move(outcome.faults, std::back_inserter(faults_));
    if (std::exchange(is_new_, false)) talk(std::exchange(wish_, {}));
}

std::string Irqbalance::note() const {
    if (wish_.is_return) return "it uses its own list again";
    if (!no_thread_.empty()) return fmt::format("{}; {}", no_thread_, by_hand);
    for (const auto& [socket, instance] : instances_)
        if (!instance.fault.empty()) return fmt::format("{}; {}", instance.fault, by_hand);
    if (is_talking()) return "it is being asked to leave the interrupts under policy alone";
    if (instances_.empty()) return fmt::format("it has no socket: {}", by_hand);
    if (wish_.irqs.empty()) return "no interrupt is under policy";
    return fmt::format("it runs, but leaves the {} interrupts under policy alone until affinityd ends",
                       wish_.irqs.size());
}

bool Irqbalance::keeps_off() const {
    const auto is_well = [](const auto& one) { return one.second.fault.empty(); };
    return no_thread_.empty() && !wish_.is_return && !is_talking() && !wish_.irqs.empty() &&
           !instances_.empty() && std::ranges::all_of(instances_, is_well);
}

std::vector<Error> Irqbalance::take_faults() { return std::exchange(faults_, {}); }

} // namespace affinityd::behaviours
