// SPDX-License-Identifier: Apache-2.0
// AllowedCPUs of units, against a stand-in for systemd at the other end of a socket pair.
#include "behaviours/fences/unit_cpus.hpp"

#include <array>
#include <cerrno>
#include <map>
#include <optional>
#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

namespace affinityd::behaviours {
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

constexpr const char* server_path = "/org/freedesktop/systemd1/unit/server_2eservice";

/// Answers as systemd would, for units that are in its map, or not at all. Both ends of the connection work
/// from one loop.
class Systemd {
  public:
    Systemd() {
        std::array<int, 2> ends{};
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
        EXPECT_GE(sd_event_new(&event_), 0);
        sd_bus_new(&server_);
        sd_bus_set_fd(server_, ends[1], ends[1]);
        sd_bus_set_server(server_, 1, sd_id128_t{});
        sd_bus_add_filter(server_, nullptr, on_message, this);
        EXPECT_GE(sd_bus_start(server_), 0);
        sd_bus_attach_event(server_, event_, SD_EVENT_PRIORITY_NORMAL);
        sd_bus_new(&client_);
        sd_bus_set_fd(client_, ends[0], ends[0]);
        EXPECT_GE(sd_bus_start(client_), 0);
        sd_bus_attach_event(client_, event_, SD_EVENT_PRIORITY_NORMAL);
    }
    Systemd(const Systemd&) = delete;
    Systemd& operator=(const Systemd&) = delete;
    ~Systemd() {
        end();
        sd_bus_close_unref(client_);
        sd_event_unref(event_);
    }

    [[nodiscard]] sd_bus* connection() const { return client_; }
    /// systemd ends, and the connection with it.
    void end() {
        if (server_ != nullptr) sd_bus_close_unref(server_);
        server_ = nullptr;
    }
    template <class Done>
    bool run_until(Done done) {
        for (int turn = 0; turn < 6000 && !done(); ++turn)
            sd_event_run(event_, 10'000);
        return done();
    }
    void run_once() { sd_event_run(event_, 10'000); }
    std::optional<std::expected<CpuSet, int>> read(UnitCpus& from, const std::string& unit) {
        std::optional<std::expected<CpuSet, int>> result;
        from.read(unit, [&](auto cpus) { result = std::move(cpus); });
        run_until([&] { return result.has_value(); });
        return result;
    }
    std::optional<int> write(UnitCpus& from, const std::string& unit, const CpuSet& cpus) {
        std::optional<int> result;
        from.write(unit, cpus, [&](int code) { result = code; });
        run_until([&] { return result.has_value(); });
        return result;
    }

    std::map<std::string, std::string> units; ///< object path -> bytes
    std::string last_unit;
    std::string error; ///< D-Bus error instead of an answer to a write
    int last_runtime = -1;
    bool is_silent = false;
    unsigned calls = 0;

  private:
    static int on_message(sd_bus_message* message, void* userdata, sd_bus_error*) {
        auto& self = *static_cast<Systemd*>(userdata);
        ++self.calls;
        if (self.is_silent) return 1;
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
        if (!error.empty()) return sd_bus_reply_method_errorf(message, error.c_str(), "no") < 0 ? -1 : 1;
        sd_bus_message_read(message, "sb", &unit, &last_runtime);
        sd_bus_message_enter_container(message, 'a', "(sv)");
        sd_bus_message_enter_container(message, 'r', "sv");
        sd_bus_message_read(message, "s", &property);
        sd_bus_message_enter_container(message, 'v', "ay");
        sd_bus_message_read_array(message, 'y', &bytes, &count);
        last_unit = unit;
        if (std::string(property) == "AllowedCPUs")
            units[server_path].assign(static_cast<const char*>(bytes), count);
        return sd_bus_reply_method_return(message, "") < 0 ? -1 : 1;
    }

    sd_event* event_ = nullptr;
    sd_bus* server_ = nullptr;
    sd_bus* client_ = nullptr;
};

TEST(UnitCpus, AreReadSetAndTakenAway) {
    Systemd systemd;
    systemd.units[server_path] = "";
    UnitCpus units([&] { return systemd.connection(); });
    EXPECT_TRUE(systemd.read(units, "server.service")->value().empty());
    EXPECT_EQ(systemd.write(units, "server.service", *CpuSet::parse_list("1,8")), 0);
    EXPECT_EQ(systemd.last_unit, "server.service");
    EXPECT_EQ(systemd.last_runtime, 1) << "only until the next boot";
    EXPECT_EQ(systemd.read(units, "server.service")->value().to_list(), "1,8");
    EXPECT_EQ(systemd.write(units, "server.service", {}), 0);
    EXPECT_TRUE(systemd.read(units, "server.service")->value().empty());
    EXPECT_EQ(units.calls_under_way(), 0U);
}

TEST(UnitCpus, FaultsAreErrnoValues) {
    Systemd systemd;
    UnitCpus units([&] { return systemd.connection(); });
    EXPECT_FALSE(systemd.read(units, "absent.service")->has_value());
    EXPECT_EQ(systemd.read(units, "some.mount")->error(), EINVAL) << "has no processes";
    systemd.error = SD_BUS_ERROR_ACCESS_DENIED;
    EXPECT_EQ(systemd.write(units, "server.service", *CpuSet::parse_list("1")), EACCES);
    systemd.error = "org.freedesktop.systemd1.NoSuchUnit";
    EXPECT_EQ(systemd.write(units, "server.service", *CpuSet::parse_list("1")), ENOENT);
    UnitCpus unreachable([] { return nullptr; });
    EXPECT_EQ(systemd.read(unreachable, "server.service")->error(), ENOTCONN);
    EXPECT_EQ(systemd.write(unreachable, "server.service", {}), ENOTCONN);
    EXPECT_TRUE(is_without_answer(ENOTCONN));
    EXPECT_FALSE(is_without_answer(EACCES));
}

TEST(UnitCpus, ASilentSystemdIsAnErrorAfterItsTime) {
    Systemd systemd;
    systemd.is_silent = true;
    UnitCpus units([&] { return systemd.connection(); }, std::chrono::milliseconds(500));
    std::vector<int> ended;
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 3; ++i)
        units.read("server.service", [&](auto cpus) { ended.push_back(cpus ? 0 : cpus.error()); });
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1)) << "the calls do not wait";
    EXPECT_TRUE(ended.empty());
    EXPECT_EQ(units.calls_under_way(), 3U);
    ASSERT_TRUE(systemd.run_until([&] { return ended.size() == 3; }));
    EXPECT_EQ(ended, (std::vector{ETIMEDOUT, ETIMEDOUT, ETIMEDOUT}));
    EXPECT_TRUE(is_without_answer(ended[0]));
    systemd.is_silent = false;
    systemd.units[server_path] = "\x01";
    EXPECT_EQ(systemd.read(units, "server.service")->value().to_list(), "0");
}

TEST(UnitCpus, ABrokenConnectionEndsTheCallsThatAreUnderWay) {
    Systemd systemd;
    systemd.is_silent = true;
    UnitCpus units([&] { return systemd.connection(); }, std::chrono::minutes(10));
    std::optional<int> ended;
    units.write("server.service", {}, [&](int code) { ended = code; });
    ASSERT_TRUE(systemd.run_until([&] { return systemd.calls > 0; }));
    systemd.end();
    ASSERT_TRUE(systemd.run_until([&] { return ended.has_value(); }));
    EXPECT_TRUE(is_without_answer(*ended)) << *ended;
}

TEST(UnitCpus, ADestroyedOneCallsNoCallback) {
    Systemd systemd;
    systemd.units[server_path] = "";
    bool called = false;
    {
        UnitCpus units([&] { return systemd.connection(); });
        units.read("server.service", [&](auto) { called = true; });
    }
    systemd.run_until([&] { return systemd.calls > 0; });
    for (int turn = 0; turn < 10; ++turn)
        systemd.run_once();
    EXPECT_FALSE(called);
}

TEST(UnitCpus, AnAnswerMayMakeTheNextCall) {
    Systemd systemd;
    systemd.units[server_path] = "\x02";
    UnitCpus units([&] { return systemd.connection(); });
    std::string seen;
    units.read("server.service", [&](auto first) {
        seen = first->to_list();
        units.read("server.service", [&](auto second) { seen += "," + second->to_list(); });
    });
    EXPECT_TRUE(systemd.run_until([&] { return seen == "1,1"; }));
}

} // namespace
} // namespace affinityd::behaviours
