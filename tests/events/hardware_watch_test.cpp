// SPDX-License-Identifier: Apache-2.0
// CPUs and links that change, with the real kernel and in place of udev a program that sends what udev would.
// In a network namespace and with a /run of its own, so that nothing else on the machine hears of it.
#include "events/hardware_watch.hpp"
#include "netdev/own_namespace.hpp"
#include "support/readable_log.hpp"
#include "turning.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <spdlog/logger.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

namespace affinityd::events {
namespace {

using namespace std::string_literals;
using netdev::in_own_namespace;

constexpr std::uint32_t kernel_group = 1, udev_group = 2;

/// Hash of a subsystem's name by which listeners choose in the kernel (MurmurHash2), as udev puts it before
/// its messages.
std::uint32_t subsystem_hash(std::string_view text) {
    constexpr std::uint32_t factor = 0x5bd1e995;
    auto hash = static_cast<std::uint32_t>(text.size());
    const auto byte = [&](std::size_t i) {
        return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i]));
    };
    std::size_t at = 0;
    for (; at + 4 <= text.size(); at += 4) {
        std::uint32_t word = byte(at) | byte(at + 1) << 8 | byte(at + 2) << 16 | byte(at + 3) << 24;
        word *= factor;
        word ^= word >> 24;
        word *= factor;
        hash = (hash * factor) ^ word;
    }
    if (at < text.size()) {
        for (std::size_t i = text.size(); i-- > at;)
            hash ^= byte(i) << (8 * (i - at));
        hash *= factor;
    }
    hash ^= hash >> 13;
    hash *= factor;
    return hash ^ hash >> 15;
}

std::string properties(const std::string& action, const std::string& path, const std::string& subsystem) {
    return "ACTION=" + action + "\0DEVPATH="s + path + "\0SUBSYSTEM="s + subsystem + "\0SEQNUM=4711\0"s;
}

/// What udev sends when it is done with an event. Source: libudev-monitor's netlink header, stable since udev
/// 150.
std::string from_udev(const std::string& action, const std::string& path, const std::string& subsystem) {
    const auto body = properties(action, path, subsystem);
    const std::array<std::uint32_t, 8> header{htonl(0xfeedcafe),
                                              40,
                                              40,
                                              static_cast<std::uint32_t>(body.size()),
                                              htonl(subsystem_hash(subsystem)),
                                              0,
                                              0,
                                              0};
    return "libudev\0"s + std::string(reinterpret_cast<const char*>(header.data()), sizeof header) + body;
}

std::string send(std::uint32_t group, const std::string& message) {
    const int fd = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT);
    if (fd < 0) return "no socket: "s + std::strerror(errno);
    sockaddr_nl to{};
    to.nl_family = AF_NETLINK;
    to.nl_groups = group;
    const auto sent =
        ::sendto(fd, message.data(), message.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
    const int fault = errno;
    ::close(fd);
    return sent == static_cast<ssize_t>(message.size()) ? "" : "cannot send: "s + std::strerror(fault);
}

/// An empty /run, with a udev in it if told to.
std::string make_run(bool with_udev) {
    if (::mount("tmpfs", "/run", "tmpfs", 0, nullptr) != 0) return "mount /run: "s + std::strerror(errno);
    if (!with_udev) return {};
    std::filesystem::create_directories("/run/udev");
    return std::ofstream("/run/udev/control") ? "" : "no /run/udev/control";
}

constexpr unsigned patience = 5000, silence = 200;

/// A watch and a loop that turns until it told something, or for `patience`.
class Watched {
  public:
    Watched() : log_(std::make_shared<spdlog::logger>("test")) {
        sd_event* raw = nullptr;
        if (sd_event_new(&raw) >= 0) event_.reset(raw);
        watch_ = HardwareWatch::start(event_.get(), log_,
                                      {[this] { ++changes_; },
                                       [this](const auto& nic) {
                                           ++changes_;
                                           nic_ = nic;
                                       }});
    }
    unsigned turn(unsigned patience_ms) {
        for (unsigned waited = 0; waited < patience_ms && changes_ == 0; waited += 10)
            sd_event_run(event_.get(), 10'000);
        return std::exchange(changes_, 0U);
    }

    /// It tells nothing after the action. Another test may make the kernel send what all namespaces hear:
    /// then once more.
    template <class Action>
    bool is_silent_after(Action action) {
        for (int round = 0; round < 10; ++round) {
            action();
            if (turn(silence) == 0) return true;
        }
        return false;
    }

    /// The interface that was named last.
    [[nodiscard]] const std::string& nic() const { return nic_; }

  private:
    app::Log log_;
    LoopHandle event_;
    unsigned changes_ = 0;
    std::string nic_;
    std::unique_ptr<HardwareWatch> watch_;
};

TEST(CpuUevent, IsRecognizedAmongOthersAndAnyBytes) {
    const std::pair<std::string, bool> cases[] = {
        {"online@/devices/system/cpu/cpu3\0"s + properties("online", "/devices/system/cpu/cpu3", "cpu"),
         true},
        {"add@/devices/x\0SUBSYSTEM=cpuid\0"s, false},
        {"add@/devices/x\0XSUBSYSTEM=cpu\0"s, false},
        {"SUBSYSTEM=cpu\0"s, false},
        {"a\0SUBSYSTEM=cpu"s, false},
        {"\0SUBSYSTEM=cpu\0"s, true},
        {"", false},
        {"\0\0\0"s, false},
    };
    for (const auto& [message, expected] : cases)
        EXPECT_EQ(is_cpu_uevent(message), expected) << message;
}

TEST(HardwareWatch, WithUdevItReportsCpusAndNothingElse) {
    EXPECT_EQ(in_own_namespace([]() -> std::string {
                  if (auto fault = make_run(true); !fault.empty()) return fault;
                  Watched watched;
                  if (auto fault =
                          send(udev_group, from_udev("add", "/devices/virtual/block/loop0", "block"));
                      !fault.empty())
                      return fault;
                  if (watched.turn(silence) != 0) return "it heard of a block device";
                  for (const auto* action : {"offline", "online"}) {
                      if (auto fault = send(udev_group, from_udev(action, "/devices/system/cpu/cpu0", "cpu"));
                          !fault.empty())
                          return fault;
                      if (watched.turn(patience) == 0) return "it did not hear that a CPU went "s + action;
                  }
                  return {};
              }),
              "");
}

TEST(HardwareWatch, WithoutUdevTheKernelsOwnEventsAreReported) {
    EXPECT_EQ(
        in_own_namespace([]() -> std::string {
            if (auto fault = make_run(false); !fault.empty()) return fault;
            Watched watched;
            const auto forged = "online@/devices/system/cpu/cpu0\0"s +
                                properties("online", "/devices/system/cpu/cpu0", "cpu");
            std::string fault;
            if (!watched.is_silent_after([&] { fault = send(kernel_group, forged); }))
                return "it believed a program";
            if (!fault.empty()) return fault;
            std::ofstream file(
                "/sys/devices/system/cpu/cpu0/uevent"); // the kernel sends what it would if the CPU changed
            file << "change" << std::flush;
            if (!file) return "the kernel takes no request for an event (this needs root)";
            return watched.turn(patience) > 0 ? "" : "it did not hear of the CPU";
        }),
        "");
}

TEST(HardwareWatch, EachChangeOfALinkIsReported) {
    EXPECT_EQ(in_own_namespace([]() -> std::string {
                  if (auto fault = make_run(false); !fault.empty()) return fault;
                  Watched watched;
                  if (!watched.is_silent_after([] {})) return "nothing happened, and it heard of something";
                  if (auto fault = netdev::add_veth("left", "right", 4); !fault.empty()) return fault;
                  if (watched.turn(patience) == 0) return "not of new ones";
                  watched.turn(silence);
                  if (auto fault = netdev::add_address("left", "10.99.0.1"); !fault.empty()) return fault;
                  if (watched.turn(patience) == 0) return "not of an address";
                  if (watched.nic() != "left") return "of an address at " + watched.nic();
                  watched.turn(silence);
                  if (auto fault = netdev::set_up("left", true); !fault.empty()) return fault;
                  if (watched.turn(patience) == 0) return "not of one that came up";
                  watched.turn(silence);
                  if (auto fault = netdev::set_channels("left", 2, 2); !fault.empty()) return fault;
                  if (watched.turn(patience) == 0) return "not of other channels";
                  watched.turn(silence);
                  if (auto fault = netdev::remove_link("left"); !fault.empty()) return fault;
                  return watched.turn(patience) > 0 ? "" : "not of removed ones";
              }),
              "");
}

/// What a test makes of a source: a broken one is readable all the time, and cannot be read.
struct LinkPlay {
    unsigned opened = 0;
    unsigned drained = 0;
    unsigned works_from = 1; ///< the source opened for the nth time works
    int open_error = 0;      ///< of openings before that one, but the first; 0: they open a broken one
    /// True: the next is opened; else errno has the reason.
    bool opens() {
        const bool works = ++opened >= works_from;
        errno = open_error;
        return works || opened == 1 || open_error == 0;
    }
    [[nodiscard]] host::Fd descriptor() const {
        return host::Fd(::eventfd(opened >= works_from ? 0 : 1, EFD_CLOEXEC | EFD_NONBLOCK));
    }
};

class PlayedLinks final : public netdev::LinkSource {
  public:
    explicit PlayedLinks(LinkPlay& play) : play_(play), fd_(play.descriptor()) {}
    [[nodiscard]] int fd() const override { return fd_.get(); }
    [[nodiscard]] Result<Drained> drain() override {
        ++play_.drained;
        return fail("cannot receive link events", {}, ENOTCONN);
    }

  private:
    LinkPlay& play_;
    host::Fd fd_;
};

/// A watch of sources that a test plays.
class Broken {
  public:
    explicit Broken(const LinkPlay& of_links, const LinkPlay& of_uevents = {})
        : links(of_links), uevents(of_uevents) {
        watch_ = HardwareWatch::start(turning.event(), log.log(),
                                      {[this] { ++cpus; }, [this](const auto& nic) { nics.push_back(nic); }},
                                      {.open_links = [this]() -> Result<std::unique_ptr<netdev::LinkSource>> {
                                           if (!links.opens()) return fail("no", {}, errno);
                                           return std::make_unique<PlayedLinks>(links);
                                       },
                                       .open_uevents = [this]() -> Result<host::Fd> {
                                           if (!uevents.opens()) return fail("no", {}, errno);
                                           return uevents.descriptor();
                                       },
                                       .first_pause = test::milliseconds(40)});
    }
    /// How often the loop turns in a second.
    [[nodiscard]] std::uint64_t turns_of_a_second() const {
        std::uint64_t before = 0, after = 0;
        sd_event_get_iteration(turning.event(), &before);
        turning.turn_for(test::milliseconds(1000));
        sd_event_get_iteration(turning.event(), &after);
        return after - before;
    }
    LinkPlay links, uevents;
    app::test::ReadableLog log;
    test::Turning turning;
    unsigned cpus = 0;
    std::vector<std::string> nics;

  private:
    std::unique_ptr<HardwareWatch> watch_;
};

constexpr unsigned never = 1000;
constexpr std::uint64_t many_turns = 1500; // a loop that waits turns a hundred times a second here

TEST(BrokenLinks, AreSubscribedToAgainAndEveryInterfaceCountsAsChanged) {
    Broken broken({.works_from = 3});
    EXPECT_TRUE(broken.turning.until([&] { return broken.links.opened == 3; }));
    EXPECT_EQ(broken.links.drained, 2U) << "each broken one is read once";
    ASSERT_FALSE(broken.nics.empty());
    EXPECT_EQ(broken.nics.back(), "") << "any of them";
    EXPECT_GE(broken.log.times("changes of interfaces broke off"), 1U) << broken.log.text();
    EXPECT_GE(broken.log.times("changes of interfaces are subscribed to again"), 1U) << broken.log.text();
    broken.turning.turn_for(test::milliseconds(300));
    EXPECT_EQ(broken.links.opened, 3U) << "one that works stays";
}

TEST(BrokenLinks, DoNotSpinTheLoopAndThePauseGrows) {
    Broken broken({.works_from = never});
    EXPECT_LT(broken.turns_of_a_second(), many_turns);
    EXPECT_GE(broken.links.opened, 2U);
    EXPECT_LE(broken.links.opened, 6U) << "after 40, 80, 160, 320 ms";
    EXPECT_LE(broken.links.drained, broken.links.opened);
}

TEST(BrokenLinks, AreTriedAgainWhileTheyCannotBeSubscribedTo) {
    Broken broken({.works_from = 4, .open_error = EMFILE});
    EXPECT_TRUE(broken.turning.until([&] { return broken.links.opened == 4; }));
    EXPECT_EQ(broken.nics, std::vector<std::string>{""}) << "told once it works";
    EXPECT_GE(broken.log.times("changes of interfaces cannot be subscribed to"), 1U) << broken.log.text();
}

TEST(BrokenUevents, AreSubscribedToAgainAndTheCpusCountAsChanged) {
    EXPECT_EQ(in_own_namespace([]() -> std::string {
                  if (auto fault = make_run(false); !fault.empty()) return fault;
                  Broken broken({}, {.works_from = 3});
                  if (!broken.turning.until([&] { return broken.uevents.opened == 3; }))
                      return "not opened again: " + broken.log.text();
                  if (broken.cpus != 2) return "told " + std::to_string(broken.cpus) + " times";
                  return broken.log.times("changes of CPUs broke off") > 0 ? "" : broken.log.text();
              }),
              "");
}

TEST(BrokenUevents, DoNotSpinTheLoop) {
    EXPECT_EQ(in_own_namespace([]() -> std::string {
                  if (auto fault = make_run(false); !fault.empty()) return fault;
                  const Broken broken({}, {.works_from = never});
                  const auto turns = broken.turns_of_a_second();
                  if (turns >= many_turns) return std::to_string(turns) + " turns in a second";
                  return broken.uevents.opened >= 2 ? "" : "not opened again";
              }),
              "");
}

} // namespace
} // namespace affinityd::events
