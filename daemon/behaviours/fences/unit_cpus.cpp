// SPDX-License-Identifier: Apache-2.0
#include "behaviours/fences/unit_cpus.hpp"

#include "base/clock.hpp"
#include "base/release.hpp"

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <utility>
#include <variant>

#include <systemd/sd-bus.h>

namespace affinityd::behaviours {

namespace {

constexpr const char* destination = "org.freedesktop.systemd1";
constexpr const char* manager_path = "/org/freedesktop/systemd1";
constexpr const char* manager_interface = "org.freedesktop.systemd1.Manager";
constexpr const char* property = "AllowedCPUs";

using Message = std::unique_ptr<sd_bus_message, Release<sd_bus_message_unref>>;
using Slot = std::unique_ptr<sd_bus_slot, Release<sd_bus_slot_unref>>;

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

/// Both: 0 or more, or a negative errno value.
int make_read(sd_bus* bus, const std::string& unit, Message& into) {
    const auto interface = interface_of(unit);
    if (interface.empty()) return -EINVAL;
    sd_bus_message* raw = nullptr;
    const int status = sd_bus_message_new_method_call(bus, &raw, destination, object_of(unit).c_str(),
                                                      "org.freedesktop.DBus.Properties", "Get");
    into.reset(raw);
    return status < 0 ? status : sd_bus_message_append(raw, "ss", interface.c_str(), property);
}

int make_write(sd_bus* bus, const std::string& unit, const CpuSet& cpus, Message& into) {
    sd_bus_message* raw = nullptr;
    int status = sd_bus_message_new_method_call(bus, &raw, destination, manager_path, manager_interface,
                                                "SetUnitProperties");
    into.reset(raw);
    const std::string bytes = to_unit_bytes(cpus);
    if (status >= 0) status = sd_bus_message_append(raw, "sb", unit.c_str(), 1);
    if (status >= 0) status = sd_bus_message_open_container(raw, 'a', "(sv)");
    if (status >= 0) status = sd_bus_message_open_container(raw, 'r', "sv");
    if (status >= 0) status = sd_bus_message_append(raw, "s", property);
    if (status >= 0) status = sd_bus_message_open_container(raw, 'v', "ay");
    if (status >= 0) status = sd_bus_message_append_array(raw, 'y', bytes.data(), bytes.size());
    for (int level = 0; level < 3 && status >= 0; ++level)
        status = sd_bus_message_close_container(raw);
    return status;
}

std::expected<CpuSet, int> read_cpus(sd_bus_message* reply) {
    const void* bytes = nullptr;
    std::size_t count = 0;
    int status = sd_bus_message_enter_container(reply, 'v', "ay");
    if (status >= 0) status = sd_bus_message_read_array(reply, 'y', &bytes, &count);
    if (status < 0) return std::unexpected(-status);
    return from_unit_bytes({static_cast<const char*>(bytes), count});
}

/// sd-bus gives a call that it has waited for too long the error NoReply, and so does a bus whose service
/// went away.
int error_of(sd_bus_message* reply) {
    if (sd_bus_message_is_method_error(reply, SD_BUS_ERROR_NO_REPLY) > 0) return ETIMEDOUT;
    if (sd_bus_message_is_method_error(reply, "org.freedesktop.systemd1.NoSuchUnit") > 0) return ENOENT;
    return sd_bus_message_is_method_error(reply, nullptr) > 0 ? sd_bus_message_get_errno(reply) : 0;
}

} // namespace

bool is_without_answer(int code) {
    return code == ETIMEDOUT || code == ENOTCONN || code == ECONNRESET || code == EHOSTUNREACH;
}

struct UnitCpus::Call {
    UnitCpus& owner;
    std::variant<Read, Written> done;
    Message message{};
    Slot slot{};
    std::list<Call>::iterator self{};

    void fail(int code) {
        if (auto* read = std::get_if<Read>(&done))
            (*read)(std::unexpected(code));
        else
            std::get<Written>(done)(code);
    }
    static int on_reply(sd_bus_message* reply, void* userdata, sd_bus_error*) {
        auto& waiting = *static_cast<Call*>(userdata);
        std::list<Call> ended; // takes it off the list before `done`, which may make the next call
        ended.splice(ended.end(), waiting.owner.calls_, waiting.self);
        auto& call = ended.front();
        if (const int code = error_of(reply); code != 0)
            call.fail(code);
        else if (auto* read = std::get_if<Read>(&call.done))
            (*read)(read_cpus(reply));
        else
            std::get<Written>(call.done)(0);
        return 0;
    }
};

UnitCpus::UnitCpus(Connection connection, std::chrono::milliseconds patience)
    : connection_(std::move(connection)), patience_(patience) {}

UnitCpus::~UnitCpus() = default;

std::size_t UnitCpus::calls_under_way() const { return calls_.size(); }

void UnitCpus::read(const std::string& unit, Read done) {
    Call call{*this, std::move(done)};
    sd_bus* bus = connection_();
    const int status = bus == nullptr ? -ENOTCONN : make_read(bus, unit, call.message);
    if (status < 0) return call.fail(-status);
    send(std::move(call));
}

void UnitCpus::write(const std::string& unit, const CpuSet& cpus, Written done) {
    Call call{*this, std::move(done)};
    sd_bus* bus = connection_();
    const int status = bus == nullptr ? -ENOTCONN : make_write(bus, unit, cpus, call.message);
    if (status < 0) return call.fail(-status);
    send(std::move(call));
}

void UnitCpus::send(Call call) {
    auto& waiting = calls_.emplace_back(std::move(call));
    waiting.self = std::prev(calls_.end());
    sd_bus_slot* slot = nullptr;
    const int status = sd_bus_call_async(sd_bus_message_get_bus(waiting.message.get()), &slot,
                                         waiting.message.get(), Call::on_reply, &waiting, usec_of(patience_));
    waiting.slot.reset(slot);
    if (status >= 0) return;
    auto failed = std::move(waiting);
    calls_.pop_back();
    failed.fail(-status);
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

} // namespace affinityd::behaviours
