// SPDX-License-Identifier: Apache-2.0
// The conversation with systemd, against a stand-in at the other end of a socket pair that speaks the same
// D-Bus.
#include "enforcer/unit_cpus.hpp"

#include <atomic>
#include <cerrno>
#include <map>
#include <thread>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <systemd/sd-bus.h>

namespace affinityd::enforcer {
namespace {

TEST(UnitBytes, AreLittleEndianBits) {
    EXPECT_EQ(to_unit_bytes({}), "");
    EXPECT_EQ(to_unit_bytes(*CpuSet::parse_list("0,2")), std::string("\x05", 1));
    EXPECT_EQ(to_unit_bytes(*CpuSet::parse_list("9")), std::string("\x00\x02", 2));
    EXPECT_EQ(from_unit_bytes(std::string("\x05\x80", 2)).to_list(), "0,2,15");
    EXPECT_TRUE(from_unit_bytes(std::string(100000, '\0')).empty());
    EXPECT_LE(from_unit_bytes(std::string(100000, '\xff')).count(), CpuSet::max_cpu)
        << "a hostile answer is cut";
    const auto many = *CpuSet::parse_list("0-2047");
    EXPECT_EQ(from_unit_bytes(to_unit_bytes(many)), many);
}

/// Answers as systemd would, for units that are in its map; one connection after the other.
class Systemd {
  public:
    std::map<std::string, std::string> units; ///< object path -> bytes
    std::string last_unit;
    int last_runtime = -1;
    bool refuses = false;

    UnitCpus::Connect connect() {
        return [this]() -> std::expected<BusHandle, int> {
            int ends[2];
            if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
                return std::unexpected(errno);
            serve(ends[1]);
            sd_bus* bus = nullptr;
            sd_bus_new(&bus);
            sd_bus_set_fd(bus, ends[0], ends[0]);
            sd_bus_start(bus);
            return BusHandle(bus);
        };
    }
    ~Systemd() { finish(); }

  private:
    void serve(int fd) {
        finish();
        stop_ = false;
        server_ = std::thread([this, fd] {
            sd_bus* bus = nullptr;
            sd_id128_t id{};
            sd_bus_new(&bus);
            sd_bus_set_fd(bus, fd, fd);
            sd_bus_set_server(bus, 1, id);
            sd_bus_add_filter(bus, nullptr, on_message, this);
            sd_bus_start(bus);
            while (!stop_) {
                const int status = sd_bus_process(bus, nullptr);
                if (status < 0) break;
                if (status == 0) sd_bus_wait(bus, 20'000);
            }
            sd_bus_flush_close_unref(bus);
        });
    }
    void finish() {
        stop_ = true;
        if (server_.joinable()) server_.join();
    }

    static int on_message(sd_bus_message* message, void* userdata, sd_bus_error*) {
        auto& self = *static_cast<Systemd*>(userdata);
        if (sd_bus_message_is_method_call(message, "org.freedesktop.DBus.Properties", "Get") > 0)
            return self.get(message);
        if (sd_bus_message_is_method_call(message, "org.freedesktop.systemd1.Manager", "SetUnitProperties") >
            0)
            return self.set(message);
        return 0;
    }
    int get(sd_bus_message* message) {
        const char* interface = nullptr;
        const char* name = nullptr;
        sd_bus_message_read(message, "ss", &interface, &name);
        const auto unit = units.find(sd_bus_message_get_path(message));
        if (unit == units.end() || std::string(interface) != "org.freedesktop.systemd1.Service" ||
            std::string(name) != "AllowedCPUs")
            return sd_bus_reply_method_errorf(message, SD_BUS_ERROR_UNKNOWN_OBJECT, "no such unit") < 0 ? -1
                                                                                                        : 1;
        sd_bus_message* answer = nullptr;
        sd_bus_message_new_method_return(message, &answer);
        sd_bus_message_open_container(answer, 'v', "ay");
        sd_bus_message_append_array(answer, 'y', unit->second.data(), unit->second.size());
        sd_bus_message_close_container(answer);
        sd_bus_send(nullptr, answer, nullptr);
        sd_bus_message_unref(answer);
        return 1;
    }
    int set(sd_bus_message* message) {
        const char* unit = nullptr;
        const char* property = nullptr;
        const void* bytes = nullptr;
        std::size_t count = 0;
        if (refuses)
            return sd_bus_reply_method_errorf(message, SD_BUS_ERROR_ACCESS_DENIED, "no") < 0 ? -1 : 1;
        sd_bus_message_read(message, "sb", &unit, &last_runtime);
        sd_bus_message_enter_container(message, 'a', "(sv)");
        sd_bus_message_enter_container(message, 'r', "sv");
        sd_bus_message_read(message, "s", &property);
        sd_bus_message_enter_container(message, 'v', "ay");
        sd_bus_message_read_array(message, 'y', &bytes, &count);
        last_unit = unit;
        if (std::string(property) == "AllowedCPUs")
            units["/org/freedesktop/systemd1/unit/server_2eservice"].assign(static_cast<const char*>(bytes),
                                                                            count);
        return sd_bus_reply_method_return(message, "") < 0 ? -1 : 1;
    }

    std::thread server_;
    std::atomic<bool> stop_ = false;
};

TEST(UnitCpus, AreReadSetAndTakenAway) {
    Systemd systemd;
    systemd.units["/org/freedesktop/systemd1/unit/server_2eservice"] = "";
    const UnitCpus units(systemd.connect());
    ASSERT_TRUE(units.read("server.service"));
    EXPECT_TRUE(units.read("server.service")->empty());
    EXPECT_EQ(units.write("server.service", *CpuSet::parse_list("1,8")), 0);
    EXPECT_EQ(systemd.last_unit, "server.service");
    EXPECT_EQ(systemd.last_runtime, 1) << "only until the next boot";
    EXPECT_EQ(units.read("server.service")->to_list(), "1,8");
    EXPECT_EQ(units.write("server.service", {}), 0);
    EXPECT_TRUE(units.read("server.service")->empty());
}

TEST(UnitCpus, FaultsAreErrnoValues) {
    Systemd systemd;
    systemd.refuses = true;
    const UnitCpus units(systemd.connect());
    EXPECT_FALSE(units.read("absent.service"));
    EXPECT_EQ(units.read("some.mount").error(), EINVAL) << "has no processes";
    EXPECT_EQ(units.write("server.service", *CpuSet::parse_list("1")), EACCES);
    const UnitCpus unreachable([]() -> std::expected<BusHandle, int> { return std::unexpected(ENOENT); });
    EXPECT_EQ(unreachable.read("server.service").error(), ENOENT);
    EXPECT_EQ(unreachable.write("server.service", {}), ENOENT);
}

} // namespace
} // namespace affinityd::enforcer
