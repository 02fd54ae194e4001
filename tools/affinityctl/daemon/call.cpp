// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/daemon/call.hpp"

#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>

#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

namespace affinityctl {

namespace {

constexpr const char* bus_name = "org.affinityd";
constexpr const char* object_path = "/org/affinityd";
constexpr const char* interface_name = "org.affinityd.Manager1";
constexpr std::uint64_t patience_usec = 30'000'000;
constexpr std::uint64_t patience_with_password_usec =
    150'000'000; // over the bus, polkit may ask the user for one

struct Unref {
    void operator()(sd_bus* bus) const { sd_bus_flush_close_unref(bus); }
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

std::expected<Bus, CallError> open_bus(const std::string& runtime_dir, const char*& destination) {
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

} // namespace

std::expected<std::string, CallError> call_daemon(const std::string& runtime_dir, const char* method,
                                                  const std::vector<std::string>& arguments) {
    const char* destination = nullptr;
    const auto bus = open_bus(runtime_dir, destination);
    if (!bus) return std::unexpected(bus.error());
    sd_bus_message* raw = nullptr;
    int status =
        sd_bus_message_new_method_call(bus->get(), &raw, destination, object_path, interface_name, method);
    const Message call(raw);
    if (status >= 0) status = sd_bus_message_set_allow_interactive_authorization(raw, 1);
    for (const auto& argument : arguments)
        if (status >= 0) status = sd_bus_message_append(raw, "s", argument.c_str());
    if (status < 0) return std::unexpected(CallError{exit_failure, std::generic_category().message(-status)});
    sd_bus_error fault = SD_BUS_ERROR_NULL;
    sd_bus_message* answer = nullptr;
    status =
        sd_bus_call(bus->get(), raw, destination == nullptr ? patience_usec : patience_with_password_usec,
                    &fault, &answer);
    const Message reply(answer);
    const char* text = nullptr;
    if (status >= 0) status = sd_bus_message_read(answer, "s", &text);
    if (status < 0) {
        const std::string why =
            fault.message != nullptr ? fault.message : std::generic_category().message(-status);
        const bool absent =
            sd_bus_error_has_name(&fault, SD_BUS_ERROR_SERVICE_UNKNOWN) != 0 || status == -ECONNRESET;
        sd_bus_error_free(&fault);
        return std::unexpected(CallError{absent ? exit_no_daemon : exit_failure, why});
    }
    return text == nullptr ? "" : text;
}

} // namespace affinityctl
