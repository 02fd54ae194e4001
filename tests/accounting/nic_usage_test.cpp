// SPDX-License-Identifier: Apache-2.0
// Which NIC serves which process, out of tables of sockets and descriptors.
#include "accounting/nic_usage.hpp"
#include "host/root.hpp"
#include "support/tree.hpp"

#include <algorithm>
#include <csignal>
#include <ctime>
#include <map>
#include <memory>
#include <sstream>

#include <arpa/inet.h>
#include <dirent.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace affinityd::accounting {
namespace {

using Names = std::vector<std::string>;

/// A machine of files with the NICs eth0 (192.0.2.1), eth1 (192.0.2.2) and lo.
class NicUsageTest : public testing::Test {
  protected:
    NicUsageTest() {
        tree_.folder("proc");
        tree_.folder("sys");
        root_.emplace(host::Root::open(tree_.path()).value());
        for (const auto& [name, address] :
             {std::pair{"lo", "127.0.0.1"}, {"eth0", "192.0.2.1"}, {"eth1", "192.0.2.2"}}) {
            auto& nic = nics_.emplace_back();
            nic.name = name;
            nic.up = true;
            nic.device = nic.name == "lo" ? "" : "devices/" + nic.name;
            nic.addresses = {address};
        }
        usage_.emplace(*root_);
    }
    /// A line of proc/net/tcp: "0A" listens, "01" is connected.
    void tcp(const std::string& address, const char* state, unsigned inode) {
        table_ += fmt::format(
            "   0: {}:0050 00000000:0000 {} 00000000:00000000 00:00000000 00000000     0        0 "
            "{} 1 0000000000000000 100 0 0 10 0\n",
            address, state, inode);
        tree_.file("proc/net/tcp", "  sl  local_address rem_address   st\n" + table_);
    }
    UsageProcess process(int pid, std::size_t policy, std::initializer_list<unsigned> sockets) const {
        tree_.file(fmt::format("proc/{}/stat", pid),
                   fmt::format("{0} (p) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 77 0 0\n", pid));
        tree_.folder(fmt::format("proc/{}/fd", pid));
        int descriptor = 3;
        for (const auto inode : sockets)
            tree_.link(fmt::format("proc/{}/fd/{}", pid, descriptor++), fmt::format("socket:[{}]", inode));
        return {{pid, 77}, policy};
    }
    const NicUsageResult& find(std::vector<UsagePolicy> policies, std::vector<UsageProcess> processes,
                               std::chrono::seconds now = {}) {
        usage_->begin({nics_, std::move(policies), std::move(processes), now});
        for (slices_ = 1; !usage_->step([] { return true; }); ++slices_) { // the smallest slices there are
        }
        return usage_->result();
    }
    affinityd::test::Tree tree_;
    std::optional<host::Root> root_;
    std::vector<netdev::Nic> nics_;
    std::optional<NicUsage> usage_;
    std::string table_;
    unsigned slices_ = 0;

    static constexpr const char* eth0 = "010200C0";
    static constexpr const char* eth1 = "020200C0";
    static constexpr const char* any = "00000000";
    static constexpr const char* loopback = "0100007F";
    const UsagePolicy by_itself{"auto", true, {}, false};
};

TEST_F(NicUsageTest, ConnectionsSayMoreThanTheListener) {
    tcp(any, "0A", 70);
    tcp(eth1, "01", 71);
    const auto& found = find({by_itself}, {process(10, 0, {70}), process(11, 0, {70, 71})});
    EXPECT_EQ(found.processes.at({10, 77}).nics, (Names{"eth0", "eth1"}))
        << "a wildcard listener alone: every real NIC";
    EXPECT_EQ(found.processes.at({11, 77}).nics, Names{"eth1"});
    EXPECT_FALSE(found.fault);
}

TEST_F(NicUsageTest, WhoTakesNoneOfTheConnectionsOfItsListenersCountsOnlyForThoseThatItHas) {
    tcp(eth1, "0A", 70);
    tcp(eth1, "01", 71);
    auto master = process(10, 0, {70});
    auto helper = process(11, 0, {70, 71});
    const auto worker = process(12, 0, {70});
    master.takes_none = helper.takes_none = true;
    const auto& found = find({by_itself}, {master, helper, worker});
    for (const auto& [pid, is_served] : std::map<int, bool>{{10, false}, {11, true}, {12, true}})
        EXPECT_EQ(found.processes.at({pid, 77}).is_served, is_served) << pid;
    EXPECT_EQ(found.processes.at({10, 77}).nics, Names{"eth1"}) << "it is near its workers all the same";
    auto named = by_itself;
    named.is_auto = false;
    named.named = {"eth0"};
    EXPECT_FALSE(find({named}, {master, helper, worker}).processes.at({10, 77}).is_served);
}

TEST_F(NicUsageTest, LoopbackAndSocketsOfOthersServeNoTask) {
    tcp(loopback, "0A", 70);
    tcp(eth0, "01", 71);
    const auto& found = find({by_itself}, {process(10, 0, {70}), process(11, 0, {})});
    EXPECT_FALSE(found.processes.at({10, 77}).is_known);
    EXPECT_TRUE(found.processes.at({10, 77}).nics.empty());
    EXPECT_TRUE(found.processes.at({11, 77}).nics.empty());
}

TEST_F(NicUsageTest, NamedNicsAreNarrowedByTheSockets) {
    tcp(eth1, "01", 71);
    const UsagePolicy both{"both", false, {"eth0", "eth1"}, false};
    const UsagePolicy one{"one", false, {"eth0"}, false};
    const UsagePolicy none{"none", false, {}, false};
    const auto& found = find({both, one, none}, {process(10, 0, {71}), process(11, 0, {}),
                                                 process(12, 1, {71}), process(13, 2, {71})});
    EXPECT_EQ(found.processes.at({10, 77}).nics, Names{"eth1"});
    EXPECT_EQ(found.processes.at({11, 77}).nics, (Names{"eth0", "eth1"})) << "no socket says which";
    EXPECT_EQ(found.processes.at({12, 77}).nics, Names{"eth0"});
    EXPECT_TRUE(found.processes.at({13, 77}).nics.empty());
}

TEST_F(NicUsageTest, WithoutNeedNothingIsRead) {
    tcp(eth0, "01", 71);
    const auto& found = find({{"one", false, {"eth0"}, false}}, {{{10, 77}, 0}});
    EXPECT_EQ(found.processes.at({10, 77}).nics, Names{"eth0"});
    EXPECT_TRUE(found.processes.at({10, 77}).is_known);
    EXPECT_EQ(slices_, 2U) << "no table, no descriptors";
}

TEST_F(NicUsageTest, ARecycledProcessIdHasNoSockets) {
    tcp(eth0, "01", 71);
    auto recycled = process(10, 0, {71});
    recycled.id.start_time = 5;
    EXPECT_TRUE(find({by_itself}, {recycled}).processes.at(recycled.id).nics.empty());
}

TEST_F(NicUsageTest, OnlyAFewProcessesOfASampledPolicyAreAsked) {
    tcp(eth0, "01", 71);
    const UsagePolicy sampled{"shown", true, {}, true};
    std::vector<UsageProcess> processes;
    for (int pid = 100; pid < 148; ++pid)
        processes.push_back(process(pid, 0, {71U}));
    const auto& found = find({sampled}, processes);
    EXPECT_EQ(found.sampled, (NicCounts{{"shown", {{{"eth0"}, 16}}}}));
    EXPECT_TRUE(found.processes.empty());
    EXPECT_TRUE(found.processes.empty());
}

TEST_F(NicUsageTest, AnotherSearchReplacesOneUnderWay) {
    tcp(eth0, "01", 71);
    usage_->begin({nics_, {by_itself}, {process(10, 0, {71}), process(11, 0, {71})}});
    EXPECT_FALSE(usage_->step([] { return true; }));
    EXPECT_EQ(find({by_itself}, {process(12, 0, {71})}).processes.at({12, 77}).nics, Names{"eth0"});
}

TEST_F(NicUsageTest, AClientThatIsSilentForAWhileTakesNoInterfaceAway) {
    using std::chrono::minutes;
    const auto server = process(10, 0, {70, 71, 72});
    const UsagePolicy named{"named", false, {"eth0", "lo"}, false};
    const auto nics = [&](minutes now, const std::vector<std::pair<const char*, unsigned>>& connections,
                          const UsagePolicy& policy) {
        table_.clear();
        tcp(any, "0A", 70);
        for (const auto& [address, inode] : connections)
            tcp(address, "01", inode);
        return find({policy}, {server}, now).processes.at({10, 77}).nics;
    };
    EXPECT_EQ(nics(minutes(0), {}, by_itself), (Names{"eth0", "eth1"})) << "nobody has come yet";
    EXPECT_EQ(nics(minutes(1), {{eth1, 71}}, by_itself), Names{"eth1"});
    EXPECT_EQ(nics(minutes(2), {}, by_itself), Names{"eth1"}) << "the client has gone for now";
    EXPECT_EQ(nics(minutes(3), {{eth0, 72}}, by_itself), (Names{"eth0", "eth1"}));
    EXPECT_EQ(usage_->result().processes.at({10, 77}).nics, (Names{"eth0", "eth1"}));
    EXPECT_EQ(nics(minutes(4), {}, named), Names{"eth0"}) << "only what the policy is about";
    EXPECT_EQ(nics(minutes(60), {}, by_itself), (Names{"eth0", "eth1"})) << "silence says nothing";
    for (int i = 0; i < 12; ++i)
        (void)nics(minutes(61 + i), {{eth0, 72}}, by_itself);
    EXPECT_EQ(nics(minutes(73), {}, by_itself), Names{"eth0"}) << "eth1 has not served it for long";
    usage_->begin({nics_, {by_itself}, {server, process(11, 0, {})}, minutes(75)}); // abandoned
    EXPECT_FALSE(usage_->step([] { return true; }));
    EXPECT_EQ(nics(minutes(76), {}, by_itself), Names{"eth0"});
    nics_[1].name = "lan0";
    EXPECT_EQ(nics(minutes(76), {}, by_itself), (Names{"eth1", "lan0"})) << "eth0 is gone";
    nics_[1].name = "eth0";
    EXPECT_EQ(nics(minutes(77), {}, by_itself), Names{"eth0"}) << "it is back";
    EXPECT_TRUE(find({by_itself}, {}, minutes(79)).processes.empty());
    EXPECT_EQ(nics(minutes(80), {}, by_itself), (Names{"eth0", "eth1"})) << "it was not asked for meanwhile";
}

TEST_F(NicUsageTest, NicsByTheHundredAreFoundByAddress) {
    for (int i = 0; i < 500; ++i) {
        auto& nic = nics_.emplace_back();
        nic.name = fmt::format("veth{}", i);
        nic.up = true;
        nic.addresses = {fmt::format("198.51.{}.{}", 100 + i / 250, 1 + i % 250)};
    }
    tcp("FA6533C6", "01", 71); // 198.51.101.250
    EXPECT_EQ(find({by_itself}, {process(10, 0, {71})}).processes.at({10, 77}).nics, Names{"veth499"});
}

/// Children that hold very many sockets, as a busy server does: UDP ones bound to an address of this machine.
class Holder {
  public:
    /// `network`: the third byte of its addresses 127.0.N.x, so that none runs out of ports.
    Holder(unsigned sockets, unsigned network) {
        int ready[2];
        if (::pipe(ready) != 0) throw std::runtime_error("no pipe");
        pid_ = ::fork();
        if (pid_ == 0) hold(sockets, network, ready[1]);
        ::close(ready[1]);
        if (::read(ready[0], &held_, sizeof held_) != sizeof held_) held_ = 0;
        ::close(ready[0]);
    }
    Holder(const Holder&) = delete;
    Holder& operator=(const Holder&) = delete;
    ~Holder() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    [[nodiscard]] int pid() const { return pid_; }
    [[nodiscard]] unsigned held() const { return held_; }

  private:
    [[noreturn]] static void hold(unsigned sockets, unsigned network, int ready) {
        rlimit limit{};
        ::getrlimit(RLIMIT_NOFILE, &limit);
        limit.rlim_cur = limit.rlim_max;
        ::setrlimit(RLIMIT_NOFILE, &limit);
        unsigned held = 0;
        for (unsigned i = 0; i < sockets; ++i) {
            const int fd = ::socket(AF_INET, SOCK_DGRAM, 0);
            sockaddr_in address{};
            address.sin_family = AF_INET;
            address.sin_addr.s_addr = htonl(0x7f000000U + (network << 8U) + 1 + i / 500);
            if (fd < 0 || ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) break;
            ++held;
        }
        if (::write(ready, &held, sizeof held) != sizeof held) ::_exit(1);
        for (;;)
            ::pause();
    }
    int pid_ = -1;
    unsigned held_ = 0;
};

std::uint64_t start_time_of(const host::Root& root, int pid) {
    const auto text = root.proc().text(fmt::format("{}/stat", pid)).value_or("");
    std::istringstream words(text.substr(text.rfind(')') + 1));
    std::string word;
    for (int field = 3; field <= 22; ++field)
        words >> word;
    return std::stoull(word);
}

double cpu_milliseconds() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

TEST(LiveNicUsage, ManySocketsOfManyProcessesAreLookedAtInSlicesAndOnlyOnce) {
    const auto root = host::Root::open("/").value();
    constexpr unsigned sockets = 20'000;
    std::vector<std::unique_ptr<Holder>> holders;
    for (unsigned i = 0; i < 4; ++i)
        holders.push_back(std::make_unique<Holder>(sockets, 77 + i));
    std::vector<netdev::Nic> nics(1);
    nics[0].name = "test0";
    nics[0].up = true;
    for (unsigned i = 0; i < 4; ++i)
        nics[0].addresses.push_back(fmt::format("127.0.{}.2", 77 + i));
    std::vector<UsageProcess> processes;
    for (const auto& holder : holders) {
        ASSERT_GT(holder->held(), 1000U) << "as many as the limit of descriptors allows";
        processes.push_back({{holder->pid(), start_time_of(root, holder->pid())}, 0});
    }
    NicUsage usage(root);
    usage.begin({nics, {{"auto", true, {}, false}}, processes});
    double longest = 0;
    double all = 0;
    for (bool is_through = false; !is_through;) {
        const double began = cpu_milliseconds();
        is_through = usage.step([&] { return cpu_milliseconds() - began >= 1; });
        longest = std::max(longest, cpu_milliseconds() - began);
        all += cpu_milliseconds() - began;
    }
    for (const auto& process : processes)
        EXPECT_EQ(usage.result().processes.at(process.id).nics, std::vector<std::string>{"test0"});
    EXPECT_FALSE(usage.result().fault);
    EXPECT_LT(longest, 50) << "a slice of 1 ms, with much room for a busy machine";
    RecordProperty("longest_slice_us", static_cast<int>(longest * 1000));
    RecordProperty("all_ms", static_cast<int>(all));
}

} // namespace
} // namespace affinityd::accounting
