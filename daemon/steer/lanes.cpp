// SPDX-License-Identifier: Apache-2.0
#include "steer/lanes.hpp"

#include "steer/lanes.h"
#include "steer/loading.hpp"
#include "steer_lanes.skel.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

namespace affinityd::steer {

namespace {

constexpr std::array own_tables{"services", "lanes", "slots", "places"};

steer_address address_of(const Address& at) {
    steer_address key{};
    key.port = at.port;
    const bool is_ipv4 = at.local.is_ipv4();
    key.family = is_ipv4 ? AF_INET : AF_INET6;
    if (is_ipv4)
        std::memcpy(key.address, &at.local.bytes[12], 4);
    else
        std::memcpy(key.address, at.local.bytes.data(), 16);
    return key;
}

Listener listener_of(const steer_found& found) {
    Listener listener{.cookie = found.cookie,
                      .at = {{}, found.port},
                      .is_dual = found.is_dual != 0,
                      .has_program = found.has_program != 0,
                      .has_device = found.device != 0};
    if (found.family == AF_INET) {
        std::array<std::uint8_t, 4> bytes{};
        std::memcpy(bytes.data(), found.address, 4);
        listener.at.local = inventory::IpAddress::from_ipv4(bytes);
    } else {
        std::memcpy(listener.at.local.bytes.data(), found.address, 16);
    }
    return listener;
}

/// Removes all entries.
template <class Key>
void clear_table(const bpf_map* map) {
    const int fd = bpf_map__fd(map);
    for (Key key{}; bpf_map_get_next_key(fd, nullptr, &key) == 0;)
        if (bpf_map_delete_elem(fd, &key) != 0) return;
}

unsigned share_of(double share) {
    return static_cast<unsigned>(std::clamp(share, 0.0, 1.0) * static_cast<int>(steer_whole));
}

} // namespace

struct Lanes::Program {
    steer_lanes* skeleton = nullptr;
    bpf_link* link = nullptr;
    const Reads* reads = nullptr;
    Kept* kept = nullptr;
    std::uint64_t space = 0;
    std::set<std::uint16_t> ports;
    std::vector<int> processes; ///< whose listeners matter
    bool has_marked = true;     ///< the kernel lists sockets by their storage

    Program() = default;
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;
    ~Program() { end(); }

    void end() {
        if (link != nullptr) bpf_link__destroy(std::exchange(link, nullptr));
        if (skeleton != nullptr) steer_lanes__destroy(std::exchange(skeleton, nullptr));
    }

    [[nodiscard]] std::string name(const char* what) const { return fmt::format("{}-{}", space, what); }

    /// 0 or an errno value. `file`: the namespace.
    int begin(int file, bool adopts, bool has_storage_iterator) {
        end();
        has_marked = has_storage_iterator;
        skeleton = steer_lanes__open();
        if (skeleton == nullptr) return errno;
        bpf_program__set_autoload(skeleton->progs.of_marked, has_marked);
        skeleton->rodata->space = static_cast<unsigned>(space);
        for (const auto* shared : {"marked", "origins", "ports"})
            bpf_map__reuse_fd(bpf_object__find_map_by_name(skeleton->obj, shared), reads->table(shared));
        if (adopts)
            for (const auto* own : own_tables)
                if (const int fd = kept->find(name(own)); fd >= 0)
                    bpf_map__reuse_fd(bpf_object__find_map_by_name(skeleton->obj, own), fd);
        if (const int failed = steer_lanes__load(skeleton); failed != 0) return -failed;
        link = bpf_program__attach_netns(skeleton->progs.steer, file);
        if (link == nullptr) return errno;
        // The former daemon's program is in force until this one is.
        kept->remove(name("link"));
        kept->store(name("link"), bpf_link__fd(link));
        for (const auto* own : own_tables)
            if (!adopts || kept->find(name(own)) < 0)
                kept->store(name(own), bpf_map__fd(bpf_object__find_map_by_name(skeleton->obj, own)));
        return 0;
    }

    /// Reads what an iterator finds.
    std::vector<steer_found> iterate(const bpf_program* program, bpf_iter_link_info info) const {
        std::vector<steer_found> found(steer_most_listeners);
        LIBBPF_OPTS(bpf_iter_attach_opts, options);
        options.link_info = &info;
        options.link_info_len = sizeof info;
        auto* iterator = bpf_program__attach_iter(program, &options);
        if (iterator == nullptr) return {};
        std::size_t have = 0;
        if (const host::Fd fd(bpf_iter_create(bpf_link__fd(iterator))); fd) {
            const auto room = std::as_writable_bytes(std::span(found));
            while (have < room.size()) {
                const auto got = ::read(fd.get(), room.data() + have, room.size() - have);
                if (got < 0 && errno == EINTR) continue;
                if (got <= 0) break;
                have += static_cast<std::size_t>(got);
            }
        }
        bpf_link__destroy(iterator);
        found.resize(have / sizeof(steer_found));
        return found;
    }

    /// Also puts listeners where they are wanted.
    std::vector<steer_found> marked() const {
        if (!has_marked) {
            std::vector<steer_found> found;
            for (const int process : processes)
                std::ranges::copy(files(process), std::back_inserter(found));
            return found;
        }
        bpf_iter_link_info info{};
        info.map.map_fd = static_cast<unsigned>(reads->table("marked"));
        return iterate(skeleton->progs.of_marked, info);
    }

    std::vector<steer_found> files(int process) const {
        bpf_iter_link_info info{};
        info.task.pid = static_cast<unsigned>(process);
        return iterate(skeleton->progs.of_files, info);
    }

    template <class Key, class Value>
    void put(const bpf_map* map, const Key& key, const Value& value) const {
        bpf_map_update_elem(bpf_map__fd(map), &key, &value, BPF_ANY);
    }
};

Result<Lanes> Lanes::open(const host::Root& root, int process, std::uint64_t space, const Reads& reads,
                          Kept& kept) {
    const auto file = root.proc().open_file(fmt::format("{}/ns/net", process), O_RDONLY);
    if (!file) return std::unexpected(file.error());
    auto program = std::make_shared<Program>();
    program->reads = &reads;
    program->kept = &kept;
    program->space = space;
    const bool adopts = kept.find(program->name("link")) >= 0;
    std::uint32_t others = 0;
    std::ignore = bpf_prog_query(file->get(), BPF_SK_LOOKUP, 0, nullptr, nullptr, &others);
    if (others > (adopts ? 1U : 0U))
        return fail("another sk_lookup program serves the network namespace", {}, EBUSY);
    int code = program->begin(file->get(), adopts, true);
    if (code != 0) code = program->begin(file->get(), adopts, false);
    if (code != 0)
        return std::unexpected(refused_bpf(code, "sk_lookup and iterators over sockets (Linux 5.11)"));
    return Lanes(std::move(program));
}

std::size_t Lanes::mark(int process) {
    return static_cast<std::size_t>(std::ranges::count_if(
        program_->files(process), [](const auto& found) { return found.is_datagram != 0; }));
}

std::vector<Listener> Lanes::listeners(std::vector<int> processes) {
    program_->processes = std::move(processes);
    std::vector<Listener> found;
    for (const auto& one : program_->marked())
        if (one.is_datagram == 0) found.push_back(listener_of(one));
    std::ranges::sort(found, {}, &Listener::cookie);
    const auto same = std::ranges::unique(found, {}, &Listener::cookie);
    found.erase(same.begin(), same.end());
    return found;
}

std::map<std::uint64_t, int> Lanes::set(const std::vector<Service>& services) {
    auto& own = *program_;
    const auto& maps = own.skeleton->maps;
    std::set<std::uint16_t> ports;
    for (const auto& service : services)
        ports.insert(service.at.port);
    for (const auto port : own.ports)
        if (!ports.contains(port)) own.reads->forget_port(own.space, port);
    for (const auto port : ports) // the kernel chooses meanwhile
        own.reads->set_port(own.space, port, PortState::paused);
    own.ports = ports;
    clear_table<steer_address>(maps.services);
    clear_table<steer_lane_key>(maps.lanes);
    clear_table<steer_slot>(maps.slots);
    clear_table<std::uint64_t>(maps.places);
    std::map<std::uint64_t, steer_places> places;
    unsigned id = 0;
    for (const auto& service : services) {
        const auto slots = static_cast<unsigned>(service.slots.size());
        for (unsigned i = 0; i < slots; ++i) {
            auto& its = places[service.slots[i]];
            if (its.count < steer_most_places) its.at[its.count++] = {id, i};
        }
        for (const auto& [cpu, lane] : service.lanes)
            own.put(maps.lanes, steer_lane_key{id, cpu},
                    steer_lane{lane.first, lane.count, share_of(lane.pass_on)});
        own.put(maps.services, address_of(service.at), steer_service{id, slots, share_of(service.pass_on)});
        ++id;
    }
    for (auto& [cookie, its] : places) {
        its.result = -ENOENT;
        own.put(maps.places, cookie, its);
    }
    std::ignore = own.marked();
    std::map<std::uint64_t, int> refused;
    for (const auto& [cookie, its] : places) {
        steer_places now{};
        if (bpf_map_lookup_elem(bpf_map__fd(maps.places), &cookie, &now) != 0 || now.result != 0)
            refused[cookie] = -now.result;
    }
    for (const auto port : ports)
        own.reads->set_port(own.space, port, PortState::on);
    return refused;
}

Handed Lanes::handed() const {
    std::array<std::uint64_t, steer_notes> sums{};
    std::vector<std::uint64_t> of_cpus(static_cast<std::size_t>(std::max(1, libbpf_num_possible_cpus())));
    for (std::uint32_t which = 0; which < steer_notes; ++which)
        if (bpf_map_lookup_elem(bpf_map__fd(program_->skeleton->maps.notes), &which, of_cpus.data()) == 0)
            for (const auto count : of_cpus)
                sums.at(which) += count;
    return {sums[steer_to_lane], sums[steer_to_next], sums[steer_to_kernel], sums[steer_full]};
}

void Lanes::end() {
    std::ignore = set({});
    program_->kept->remove(program_->name("link"));
    for (const auto* own : own_tables)
        program_->kept->remove(program_->name(own));
}

} // namespace affinityd::steer
