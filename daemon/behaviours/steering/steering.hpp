// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "behaviours/list.hpp"
#include "host/fd.hpp"
#include "inventory/waits.hpp"
#include "planner/arrivals.hpp"
#include "state/history.hpp"
#include "status/status.hpp"
#include "steer/lanes.hpp"
#include "steer/reads.hpp"

#include <chrono>
#include <cstdint>
#include <future>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace affinityd::behaviours {

/// Brings packets and those who read them together: the kernel gives new connections to the listener of the
/// worker on whose lane they arrive, and tasks under `steer: tasks` change over to the lane where their
/// packets arrive, each at most once a minute. The same programs count who reads where, only while a policy
/// asks for it.
class Steering final : public Behaviour {
  public:
    explicit Steering(Daemon& daemon);

    void placed(const KnownProcess& process) override;
    void begin_pass() override;
    Slices after_tasks() override;
    Slices end_pass() override;
    /// When the next look at listeners is due.
    Clock::time_point due() const override { return next_look_; }
    /// Takes what was counted, and puts listeners where their workers are now: works for a slice, and is
    /// called again for the rest.
    void tick() override;
    /// Readable when a listener that matters begins to listen.
    int fd() const override { return events_.get(); }
    void readable() override;
    /// The task is where its packets arrive, and they would not follow it; or it has just followed them.
    bool holds(const TaskId& task) const override;
    void count(const std::string& policy, Counters& into) override;
    void report(status::Overview& into) const override;
    void explain(const inventory::ProcessScan& scan, status::ProcessExplanation& into) const override;
    std::vector<status::Finding> problems() const override;

  private:
    /// Reads of the policy's sockets that were counted since the daemon began, of which the packets arrived
    /// on the core that read them.
    struct ReadSum {
        std::uint64_t reads = 0, local = 0;
    };
    /// Where packets of a process came in, and where it read them. See locality::ReadCount.
    struct Flow {
        std::uint64_t network_space = 0;
        unsigned device = 0, napi = 0;
        std::optional<unsigned> arrival{};
        unsigned reader = 0;
        friend auto operator<=>(const Flow&, const Flow&) = default;
    };
    /// Reads of one process. Older ones count less and less.
    struct Reader {
        TaskId id{};
        std::string policy, comm;
        std::map<Flow, std::uint64_t> reads;
        std::uint64_t all = 0;
    };
    struct Record {
        Clock::time_point when = Clock::now(); ///< it was made, or would have been
        double core = -1; ///< the part of reads on the core of arrival; -1: there is none
    };
    /// A task under `steer: tasks`.
    struct Mover {
        TaskId process{};
        planner::Arrivals arrivals{};
        std::uint64_t reads = 0;
        planner::AtArrivals state = planner::AtArrivals::unknown;
        Clock::time_point movable{}; ///< it stays before that
    };
    /// A listener or a socket of UDP, as it was seen last.
    struct Seen {
        std::string policy{}; ///< "": none, or not known yet
        steer::Address at;
        bool is_dual = false; ///< IPv6 that takes IPv4, too
        TaskId worker{};      ///< thread or process that takes its connections
        int process = 0;
        std::optional<unsigned> cpu{}; ///< where its packets arrive; no value: it is left alone
        planner::NotSteered why = planner::NotSteered::not_seen;
        void leave_alone(planner::NotSteered because) { cpu.reset(), why = because; }
        [[nodiscard]] bool is_datagram() const { return at.protocol == steer::Protocol::udp; }
    };
    using Group = std::vector<std::pair<const std::uint64_t, Seen>*>; ///< of one address
    using Port = std::pair<steer::Protocol, std::uint16_t>;
    struct Taken {
        std::uint64_t before = 0; ///< connections, at the begin of this minute
        std::uint64_t now = 0;
        double pass_on = 0; ///< 0..1: what exceeds twice its share
    };
    struct Scans {
        std::size_t number = 0;       ///< how often a process's descriptors were gone through
        bool is_due = true;           ///< by this look
        steer::Listeners datagrams{}; ///< sockets of UDP that it has open
        bool has_listeners = false;
        inventory::ListenerUse use{};
    };
    /// A thread that takes connections.
    struct Server {
        int process = 0, thread = 0;
    };
    /// A network namespace with processes whose policies steer.
    struct Space {
        std::optional<steer::Lanes> lanes;
        std::string trouble;              ///< that it is not steered, or as before, and why; ""
        std::set<std::string> policies{}; ///< of its processes
        Clock::time_point retry{};
        std::optional<unsigned> owner{}; ///< user of a process, whose namespaces are bounded
        bool is_left_out = false;        ///< others are steered, and there is no room for this one
        std::size_t looks = 0;           ///< after processes were placed, that are still to come
        std::size_t addresses = 0;       ///< that are steered, or of others; the larger number
        std::map<TaskId, Scans> scans;   ///< of processes
        std::multimap<std::uint64_t, Server> waiting;  ///< on listeners, by inode
        std::map<steer::Address, std::size_t> numbers; ///< of listeners, or sockets of UDP
        std::size_t turn = 0;  ///< of the process whose descriptors are gone through next
        std::string no_room;   ///< why listeners are the kernel's choice; "" if there is room for all
        std::set<Port> listed; ///< of which others' listeners are known
        std::map<steer::Address, std::size_t> others; ///< these, and those that are steered: how many of each
        std::vector<steer::Service> in_force;
        std::map<std::uint64_t, Seen> seen; ///< by cookie
        std::map<std::uint64_t, Taken> taken;
        Clock::time_point minute{};
    };
    using Takers = std::multimap<std::uint64_t, steer::Taker>;
    using Processes = std::vector<const KnownProcess*>;
    /// A look at all namespaces, one after the other.
    struct Round {
        Takers takers;
        steer::Reads::Opened opened;
        bool is_whole = false;                               ///< also those without news
        std::map<std::uint64_t, std::vector<TaskId>> spaces; ///< that are still to come, and their processes
    };

    [[nodiscard]] const planner::ResolvedPolicy* resolved(const KnownProcess& process) const;
    [[nodiscard]] const KnownProcess* find(const TaskId& process) const;
    [[nodiscard]] bool wants_counts() const;
    [[nodiscard]] Result<steer::Reads> load();
    [[nodiscard]] bool is_loading() const;
    [[nodiscard]] bool begin_counting();
    void end_all();

    void note_reads(const locality::ReadCounts& found);
    [[nodiscard]] locality::ReadCounts counts_of(const std::string& policy) const;
    [[nodiscard]] std::optional<status::LocalStatus> local(const locality::ReadCounts& counts,
                                                           int only) const;

    /// How local the reads of a policy are, for the history: once an hour if that has changed by five percent
    /// of all packets, else once a day. No value: there is nothing to be kept now.
    [[nodiscard]] std::optional<state::MeasurementRecord> take_record();
    [[nodiscard]] std::set<int> without_connections() const;
    [[nodiscard]] status::PolicyStatus::Packets packets(const std::string& policy) const;

    [[nodiscard]] bool moves(const KnownProcess& process) const;
    void add_news(const TaskId& task);
    [[nodiscard]] Slices decide_news();
    void decide(const TaskId& task, Mover& mover);

    [[nodiscard]] bool steers(const KnownProcess& process) const;
    [[nodiscard]] std::map<std::uint64_t, std::vector<TaskId>> steered_processes();
    void begin_round();
    [[nodiscard]] bool look_at_next();
    void end_round();
    [[nodiscard]] bool has_room(std::uint64_t name, Space& space, int process) const;
    [[nodiscard]] bool is_in_share(const Space& space) const;
    void tell(Space& space, std::string trouble);
    [[nodiscard]] bool begin(std::uint64_t name, Space& space, int process);
    void look_at(std::uint64_t name, Space& space, const Processes& processes, const Takers& takers);
    void mark(std::uint64_t name, Space& space, const Processes& processes);
    void find_waiting(Space& space, const steer::Listeners& listeners) const;
    [[nodiscard]] bool still_holds(const Space& space, int pid, std::uint64_t inode) const;
    [[nodiscard]] std::vector<Server> servers(const Space& space, std::uint64_t cookie,
                                              const steer::Listener& listener, const Takers& takers) const;
    [[nodiscard]] Seen judge(const Space& space, std::uint64_t cookie, const steer::Listener& listener,
                             const Takers& takers) const;
    void note_started(const Space& space);
    void hurry();
    void judge_all(Space& space, const steer::Listeners& listeners, const Takers& takers);
    static void weigh(Space& space, const Takers& takers);
    [[nodiscard]] std::optional<std::uint64_t> list_others(int process, Space& space,
                                                           const std::set<Port>& ports) const;
    static steer::Service deal_out(const Group& group, Space& space);
    [[nodiscard]] std::vector<steer::Service> choose(int process, Space& space, std::size_t listeners);
    [[nodiscard]] bool spread_workers(const Space& space);
    [[nodiscard]] std::optional<planner::ListenerPlan> plan_of(std::string_view policy) const;

    Shared& shared_;
    Tasks& tasks_;
    host::Fd events_;
    steer::Kept kept_;                          ///< by systemd
    std::future<Result<steer::Reads>> loading_; ///< has kept_ to itself until its end
    std::optional<steer::Reads> reads_;
    std::string why_not_; ///< nothing is counted; "": it is, or need not be
    Clock::time_point next_look_{}, last_look_{};
    Clock::time_point hurried_{}; ///< up to then, events have used up their looks at once
    steer::Reads::Opened opened_; ///< since the last round began
    std::optional<Round> round_;
    std::optional<Clock::time_point> paused_{}; ///< when there was last no room to note a listener
    Clock::time_point whole_{};                 ///< when the last round over all namespaces began
    std::set<int> started_;                     ///< processes that need not settle any longer
    std::size_t looks_ = 0;                     ///< after processes were placed, that are still to come
    std::map<std::uint64_t, Space> spaces_;     ///< by inode
    std::map<TaskId, std::uint64_t> space_of_;  ///< of processes whose policies steer
    std::map<std::pair<int, int>, std::uint64_t> accepts_; ///< taken, by process and thread
    std::map<int, Reader> readers_;                        ///< by pid
    std::map<std::string, Record> records_;                ///< by policy
    std::map<std::string, ReadSum> read_sums_;             ///< by policy
    std::unordered_map<TaskId, Mover> movers_;             ///< those of which packets were seen
    std::unordered_set<TaskId> news_;
    bool is_deciding_ = false; ///< about those
};

} // namespace affinityd::behaviours
