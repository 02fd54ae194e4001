// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/testbed/nics.hpp"

#include "affinity-ttcp/testbed/network_space.hpp"
#include "base/clock.hpp"
#include "host/root.hpp"
#include "machine/reader.hpp"
#include "machine/vectors.hpp"

#include <array>
#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace affinityd::ttcp {

namespace {

/// The kernel removes a namespace in the background, and returns interfaces meanwhile.
constexpr double return_seconds = 15;
constexpr int most_wait_ms = 30'000;

std::string mask_file(unsigned irq) { return fmt::format("irq/{}/smp_affinity_list", irq); }
std::string threaded_file(const std::string& nic) { return "class/net/" + nic + "/threaded"; }

/// Neither the terminal's nor a pipe's reader waits for this process.
void let_go_of_output() {
    ::setsid();
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE})
        ::signal(number, SIG_IGN);
    const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        ::dup2(nothing, file);
}

NapiSwitches switches_of(const host::Root& root, const netdev::Nic& nic) {
    if (!nic.device.empty()) return {};
    const auto gro = has_offload(nic.name, Offload::receive),
               tso = has_offload(nic.name, Offload::segmentation);
    return {gro ? std::optional(*gro) : std::nullopt, tso ? std::optional(*tso) : std::nullopt,
            root.sys().text(threaded_file(nic.name))};
}

void put_switches_back(const NetworkSpace& space, const std::string& name, const NapiSwitches& switches) {
    const auto& threaded = switches.threaded;
    if (threaded && space.sys().text(threaded_file(name)) != *threaded)
        static_cast<void>(space.sys().write(threaded_file(name), *threaded));
    static_cast<void>(space.within([&]() -> Result<void> {
        if (switches.gro) static_cast<void>(set_offload(name, Offload::receive, *switches.gro));
        if (switches.tso) static_cast<void>(set_offload(name, Offload::segmentation, *switches.tso));
        return {};
    }));
}

/// From whichever space each is in. An interface that cannot be brought back is left to the kernel, which
/// waits until no descriptor refers to the space.
void bring_all_back(const std::vector<KeptNic>& nics, const std::vector<NetworkSpace>& spaces) {
    for (const auto& nic : nics)
        for (const auto& space : spaces)
            if (bring_back(space, nic.name, nic.switches)) break;
    for (const auto& space : spaces)
        ::close(space.fd());
}

[[noreturn]] void keep(const host::Root& root, const std::vector<KeptNic>& nics,
                       const std::vector<NetworkSpace>& spaces, int line) {
    let_go_of_output();
    char byte = 0;
    while (::read(line, &byte, 1) < 0 && errno == EINTR) {
    }
    bring_all_back(nics, spaces);
    const double until = monotonic_seconds() + return_seconds;
    for (const auto& nic : nics) {
        while (!root.sys().exists("class/net/" + nic.name) && monotonic_seconds() < until)
            ::usleep(20'000);
        put_back(root, nic);
    }
    ::_exit(0);
}

} // namespace

std::vector<std::pair<unsigned, std::string>> movable_interrupts(const host::Root& root,
                                                                 const netdev::Nic& nic) {
    std::vector<std::pair<unsigned, std::string>> movable;
    const auto table = machine::read_irqs(root);
    if (!table) return movable;
    for (const auto& vector : machine::nic_vectors(nic, *table)) {
        if (vector.kind == irq::Kind::control || vector.kind == irq::Kind::none || vector.label.empty() ||
            vector.shared)
            continue;
        const auto cpus = root.proc().text(mask_file(vector.irq));
        if (!cpus || root.proc().write(mask_file(vector.irq), *cpus) != 0)
            continue; // managed by the kernel: cannot be moved
        movable.emplace_back(vector.irq, *cpus);
    }
    return movable;
}

Result<void> bring_back(const NetworkSpace& space, const std::string& name, const NapiSwitches& switches) {
    put_switches_back(space, name, switches); // a veth that is down has no NAPI that could be switched
    return space.within([&]() -> Result<void> {
        static_cast<void>(set_up(name, false));
        return move_link(name, space.outside());
    });
}

void put_back(const host::Root& root, const KeptNic& nic) {
    if (nic.was_up)
        static_cast<void>(set_up(nic.name, true)); // first: some drivers have no interrupts while down
    for (const auto& [irq, cpus] : nic.interrupts)
        if (root.proc().text(mask_file(irq)) != cpus)
            static_cast<void>(root.proc().write(mask_file(irq), cpus));
}

Result<NicKeeper> NicKeeper::start(const host::Root& root, const std::vector<netdev::Nic>& nics,
                                   const std::vector<NetworkSpace>& spaces) {
    std::vector<KeptNic> kept;
    for (const auto& nic : nics)
        kept.push_back({nic.name, nic.up, movable_interrupts(root, nic), switches_of(root, nic)});
    std::array<int, 2> line{}, done{};
    if (::pipe2(line.data(), O_CLOEXEC) != 0) return fail("cannot make a pipe", {}, errno);
    host::Fd reader(line[0]), writer(line[1]);
    if (::pipe2(done.data(), O_CLOEXEC) != 0) return fail("cannot make a pipe", {}, errno);
    host::Fd end(done[0]);
    const host::Fd ended(done[1]); // of the keeper, once this one is closed here
    const pid_t child = ::fork();
    if (child < 0) return fail("cannot fork", {}, errno);
    if (child == 0) {
        writer.reset();
        const pid_t keeper = ::fork(); // no child of the experiment's, which counts and ends its children
        if (keeper == 0) keep(root, kept, spaces, reader.get());
        ::_exit(keeper > 0 ? 0 : 1);
    }
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return fail("cannot fork", {}, EAGAIN);
    return NicKeeper(std::move(writer), std::move(end));
}

NicKeeper::~NicKeeper() {
    if (!line_) return; // moved from
    line_.reset();
    pollfd item{done_.get(), POLLIN, 0};
    while (::poll(&item, 1, most_wait_ms) < 0 && errno == EINTR) {
    }
}

std::string why_in_use(const host::Root& root, const netdev::Nic& nic) {
    if (nic.name == "lo") return "the loopback interface cannot be borrowed";
    for (const auto& address : nic.addresses)
        if (!address.starts_with("fe80:")) return "it is in use: it has the address " + address;
    for (const auto& entry : root.sys().list("class/net/" + nic.name).value_or(std::vector<std::string>{}))
        if (entry == "master" || entry.starts_with("upper_"))
            return "it is in use: another device is stacked on it (" + entry + ")";
    return {};
}

Result<std::vector<int>> borrow(const host::Root& root, const netdev::Nic& nic, const NetworkSpace& space,
                                const std::string& address) {
    if (auto moved = move_link(nic.name, space.fd()); !moved) return std::unexpected(moved.error());
    std::vector<int> tids;
    const auto done = space.within([&]() -> Result<void> {
        if (!nic.device.empty()) return bring_up(nic.name, address, 24);
        if (auto ready = receive_by_napi(nic.name); !ready) return ready;
        if (auto up = set_up(nic.name, true); !up) return up; // a veth has NAPI threads once it is up
        auto threads = start_napi_threads(root, space, nic.name);
        if (!threads) return std::unexpected(threads.error());
        tids = std::move(*threads);
        return bring_up(nic.name, address, 24);
    });
    if (!done) return std::unexpected(done.error());
    return tids;
}

} // namespace affinityd::ttcp
