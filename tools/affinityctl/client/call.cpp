// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/client/call.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

namespace affinityctl {

namespace {

constexpr const char* bus_name = "org.affinityd";
constexpr const char* object_path = "/org/affinityd";
constexpr const char* interface_name = "org.affinityd.Manager1";
constexpr std::uint64_t password_usec = 120'000'000; // over the bus, polkit may ask the user for one
constexpr std::uint64_t tick_usec = 100'000;         // between looks at the progress line

constexpr std::chrono::milliseconds unseen{500}; // until a progress line is shown

/// True: the terminal can wipe a line.
bool has_terminal() {
    const char* terminal = std::getenv("TERM");
    return ::isatty(STDERR_FILENO) == 1 && terminal != nullptr && std::string_view(terminal) != "dumb";
}

struct Unref {
    void operator()(sd_bus* bus) const { sd_bus_close_unref(bus); }
    void operator()(sd_bus_message* message) const { sd_bus_message_unref(message); }
};
using Bus = std::unique_ptr<sd_bus, Unref>;
using Message = std::unique_ptr<sd_bus_message, Unref>;

/// 0, or the errno value of what failed.
int open_private(const std::string& runtime_dir, Bus& into) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = runtime_dir + "/control";
    if (path.size() >= sizeof address.sun_path) return ENAMETOOLONG;
    std::memcpy(address.sun_path, path.data(), path.size());
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return errno;
    sd_bus* bus = nullptr;
    int code = ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
    if (code == 0) code = -sd_bus_new(&bus);
    into.reset(bus);
    if (code == 0) code = -sd_bus_set_fd(bus, fd, fd);
    if (code > 0) {
        ::close(fd);
        return code;
    }
    code = sd_bus_start(bus);
    return code < 0 ? -code : 0;
}

/// The handshake goes on while the reply is awaited.
std::expected<Bus, CallError> open_remote(const std::string& host) {
    sd_bus* bus = nullptr;
    if (const int status = sd_bus_open_system_remote(&bus, host.c_str()); status < 0)
        return std::unexpected(CallError{
            exit_usage, host + ": cannot be asked by ssh: " + std::generic_category().message(-status)});
    return Bus(bus);
}

std::expected<Bus, CallError> open_bus(const Globals& globals, const char*& destination) {
    destination = bus_name;
    if (!globals.host.empty()) return open_remote(globals.host);
    const auto& runtime_dir = globals.runtime_dir;
    Bus bus;
    const int code = open_private(runtime_dir, bus);
    destination = nullptr;
    if (code == 0) return bus;
    if (code == EACCES || code == EPERM) {
        sd_bus* system = nullptr;
        const int status = sd_bus_open_system(&system);
        if (status >= 0) {
            destination = bus_name;
            return Bus(system);
        }
        return std::unexpected(CallError{
            exit_no_daemon, "the daemon's socket is root's, and the system bus cannot be reached: " +
                                std::generic_category().message(-status)});
    }
    return std::unexpected(
        CallError{exit_no_daemon, "no daemon answers at " + runtime_dir +
                                      "/control: " + std::generic_category().message(code) +
                                      " (is affinityd running? systemctl status affinityd)"});
}

int on_reply(sd_bus_message* reply, void* userdata, sd_bus_error*) {
    static_cast<Message*>(userdata)->reset(sd_bus_message_ref(reply));
    return 0;
}

/// Sends the call and waits. 0, or the negative errno of what broke.
int wait_for_reply(sd_bus* bus, sd_bus_message* call, std::uint64_t usec, const std::string& doing,
                   Message& reply) {
    ProgressLine progress(doing);
    int status = sd_bus_call_async(bus, nullptr, call, on_reply, &reply, usec);
    // sd-bus lets a handshake last longer, and a peer may send what is no reply for ever.
    while (status >= 0 && !reply && progress.elapsed() < std::chrono::microseconds(usec)) {
        status = sd_bus_process(bus, nullptr);
        if (status != 0 || reply) continue;
        progress.go_on();
        status = sd_bus_wait(bus, tick_usec);
        if (status == -EINTR) status = 0;
    }
    // Where the connection has ended, sd-bus makes up an answer.
    if (reply && sd_bus_is_open(bus) <= 0) return -ECONNRESET;
    return progress.elapsed() >= std::chrono::microseconds(usec) ? -ETIMEDOUT : status;
}

/// The text of a reply, or what is wrong.
std::expected<std::string, CallError> read(int status, sd_bus_message* reply) {
    if (status == -ECONNRESET || status == -ENOTCONN || status == -EPIPE)
        return std::unexpected(
            CallError{exit_no_daemon, "the daemon ended, or closed the connection, before it answered"});
    if (status == -ETIMEDOUT)
        return std::unexpected(CallError{exit_failure, "no answer in time: the daemon goes on with it, and "
                                                       "affinityctl status shows what comes of it"});
    const auto* fault = reply == nullptr ? nullptr : sd_bus_message_get_error(reply);
    if (fault != nullptr) {
        const bool is_absent = sd_bus_error_has_name(fault, SD_BUS_ERROR_SERVICE_UNKNOWN) != 0;
        const char* why = fault->message != nullptr ? fault->message : fault->name;
        return std::unexpected(CallError{is_absent ? exit_no_daemon : exit_failure, why});
    }
    const char* text = nullptr;
    if (status >= 0) status = sd_bus_message_read(reply, "s", &text);
    if (status < 0) return std::unexpected(CallError{exit_failure, std::generic_category().message(-status)});
    return text == nullptr ? "" : text;
}

} // namespace

ProgressLine::ProgressLine(std::string doing) : doing_(has_terminal() ? std::move(doing) : "") {}

void ProgressLine::go_on() {
    if (doing_.empty() || elapsed() < unseen) return;
    auto text = fmt::format("{}: {} s (Ctrl-C ends the waiting only)", doing_,
                            std::chrono::duration_cast<std::chrono::seconds>(elapsed()).count());
    if (text == shown_) return;
    shown_ = std::move(text);
    std::fputs(("\r" + shown_ + "\033[K").c_str(), stderr); // which throws nothing if the terminal has gone
    std::fflush(stderr);
}

ProgressLine::~ProgressLine() {
    if (shown_.empty()) return;
    std::fputs("\r\033[K", stderr);
    std::fflush(stderr);
}

std::expected<std::string, CallError> call_daemon(const Globals& globals, const char* method,
                                                  const std::vector<std::string>& arguments,
                                                  const Patience& patience) {
    const char* destination = nullptr;
    const auto bus = open_bus(globals, destination);
    if (!bus) return std::unexpected(bus.error());
    sd_bus_message* raw = nullptr;
    int status =
        sd_bus_message_new_method_call(bus->get(), &raw, destination, object_path, interface_name, method);
    const Message call(raw);
    if (status >= 0)
        status = sd_bus_message_set_allow_interactive_authorization(raw, patience.may_ask ? 1 : 0);
    for (const auto& argument : arguments)
        if (status >= 0) status = sd_bus_message_append(raw, "s", argument.c_str());
    if (status < 0) return std::unexpected(CallError{exit_failure, std::generic_category().message(-status)});
    const auto usec = static_cast<std::uint64_t>(std::chrono::microseconds(patience.time).count());
    Message reply;
    status = wait_for_reply(bus->get(), raw,
                            destination == nullptr || !patience.may_ask ? usec : usec + password_usec,
                            patience.doing, reply);
    auto answer = read(status, reply.get());
    if (answer || globals.host.empty()) return answer;
    const bool is_broken =
        sd_bus_message_get_error(reply.get()) == nullptr || sd_bus_is_open(bus->get()) <= 0;
    return std::unexpected(
        is_broken ? CallError{exit_failure, globals.host + ": no answer by ssh"}
                  : CallError{answer.error().code, globals.host + ": " + answer.error().message});
}

} // namespace affinityctl
