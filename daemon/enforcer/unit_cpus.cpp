// SPDX-License-Identifier: Apache-2.0
#include "enforcer/unit_cpus.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include <systemd/sd-bus.h>

namespace affinityd::enforcer {

namespace {

constexpr const char* destination = "org.freedesktop.systemd1";
constexpr const char* manager_path = "/org/freedesktop/systemd1";
constexpr const char* manager_interface = "org.freedesktop.systemd1.Manager";
constexpr std::uint64_t patience_usec = 2'000'000; // the loop waits for it

struct Unref {
    void operator()(sd_bus_message* message) const { sd_bus_message_unref(message); }
};
using Message = std::unique_ptr<sd_bus_message, Unref>;

struct Fault {
    sd_bus_error error = SD_BUS_ERROR_NULL;
    Fault() = default;
    Fault(const Fault&) = delete;
    Fault& operator=(const Fault&) = delete;
    ~Fault() { sd_bus_error_free(&error); }
};

std::string object_of(const std::string& unit) {
    char* encoded = nullptr;
    if (sd_bus_path_encode("/org/freedesktop/systemd1/unit", unit.c_str(), &encoded) < 0) return {};
    std::string path = encoded;
    std::free(encoded);
    return path;
}

/// The interface that has the property, by the kind of the unit; "" for kinds without processes.
std::string interface_of(const std::string& unit) {
    if (unit.ends_with(".service")) return "org.freedesktop.systemd1.Service";
    if (unit.ends_with(".scope")) return "org.freedesktop.systemd1.Scope";
    return {};
}

} // namespace

void CloseBus::operator()(sd_bus* bus) const { sd_bus_flush_close_unref(bus); }

std::expected<BusHandle, int> UnitCpus::system_bus() {
    sd_bus* bus = nullptr;
    const int status = sd_bus_open_system(&bus);
    if (status < 0) return std::unexpected(-status);
    return BusHandle(bus);
}

std::string to_unit_bytes(const CpuSet& cpus) {
    std::string bytes;
    for (const unsigned cpu : cpus) {
        if (bytes.size() <= cpu / 8) bytes.resize(cpu / 8 + 1, '\0');
        bytes[cpu / 8] = static_cast<char>(static_cast<unsigned char>(bytes[cpu / 8]) | 1U << cpu % 8);
    }
    return bytes;
}

CpuSet from_unit_bytes(std::string_view bytes) {
    CpuSet cpus;
    bytes = bytes.substr(0, CpuSet::max_cpu / 8);
    for (std::size_t i = 0; i < bytes.size(); ++i)
        for (unsigned bit = 0; bit < 8; ++bit)
            if ((static_cast<unsigned char>(bytes[i]) >> bit & 1U) != 0)
                cpus.insert(static_cast<unsigned>(i) * 8 + bit);
    return cpus;
}

std::expected<CpuSet, int> UnitCpus::read(const std::string& unit) const {
    const auto interface = interface_of(unit);
    if (interface.empty()) return std::unexpected(EINVAL);
    const auto bus = connect_();
    if (!bus) return std::unexpected(bus.error());
    Fault fault;
    sd_bus_message* raw = nullptr;
    int status = sd_bus_message_new_method_call(bus->get(), &raw, destination, object_of(unit).c_str(),
                                                "org.freedesktop.DBus.Properties", "Get");
    const Message call(raw);
    if (status >= 0) status = sd_bus_message_append(raw, "ss", interface.c_str(), "AllowedCPUs");
    sd_bus_message* answer = nullptr;
    if (status >= 0) status = sd_bus_call(bus->get(), raw, patience_usec, &fault.error, &answer);
    const Message reply(answer);
    if (status >= 0) status = sd_bus_message_enter_container(answer, 'v', "ay");
    const void* bytes = nullptr;
    std::size_t count = 0;
    if (status >= 0) status = sd_bus_message_read_array(answer, 'y', &bytes, &count);
    if (status < 0) return std::unexpected(-status);
    return from_unit_bytes({static_cast<const char*>(bytes), count});
}

int UnitCpus::write(const std::string& unit, const CpuSet& cpus) const {
    const auto bus = connect_();
    if (!bus) return bus.error();
    Fault fault;
    sd_bus_message* raw = nullptr;
    int status = sd_bus_message_new_method_call(bus->get(), &raw, destination, manager_path,
                                                manager_interface, "SetUnitProperties");
    const Message call(raw);
    const std::string bytes = to_unit_bytes(cpus);
    if (status >= 0) status = sd_bus_message_append(raw, "sb", unit.c_str(), 1);
    if (status >= 0) status = sd_bus_message_open_container(raw, 'a', "(sv)");
    if (status >= 0) status = sd_bus_message_open_container(raw, 'r', "sv");
    if (status >= 0) status = sd_bus_message_append(raw, "s", "AllowedCPUs");
    if (status >= 0) status = sd_bus_message_open_container(raw, 'v', "ay");
    if (status >= 0) status = sd_bus_message_append_array(raw, 'y', bytes.data(), bytes.size());
    for (int level = 0; level < 3 && status >= 0; ++level)
        status = sd_bus_message_close_container(raw);
    sd_bus_message* answer = nullptr;
    if (status >= 0) status = sd_bus_call(bus->get(), raw, patience_usec, &fault.error, &answer);
    const Message reply(answer);
    return status < 0 ? -status : 0;
}

} // namespace affinityd::enforcer
