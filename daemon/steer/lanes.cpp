// SPDX-License-Identifier: Apache-2.0
#include "steer/lanes.hpp"

#include "steer/lanes.h"
#include "steer/loading.hpp"
#include "steer_lanes.skel.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <netinet/in.h>
#include <unistd.h>

namespace affinityd::steer {

namespace {

constexpr std::array own_tables{"lanes", "slots", "places"};

/// The namespace to which a link is attached: its inode; 0: it has ended, or this is none.
std::uint64_t space_of(int link) {
    bpf_link_info info{};
    std::uint32_t size = sizeof info;
    return bpf_obj_get_info_by_fd(link, &info, &size) == 0 && info.type == BPF_LINK_TYPE_NETNS
               ? info.netns.netns_ino
               : 0;
}

/// Ends the program at once: systemd closes what it keeps in its own time, and a program that is still there
/// would pass for another's.
void detach(int link) {
    if (link >= 0) std::ignore = bpf_link_detach(link);
}

steer_address address_of(std::uint64_t space, const Address& at) {
    steer_address key{};
    key.space = static_cast<unsigned>(space);
    key.port = at.port;
    key.protocol = at.protocol == Protocol::tcp ? IPPROTO_TCP : IPPROTO_UDP;
    std::memcpy(key.address, at.local.bytes.data(), sizeof key.address);
    return key;
}

Address address_of(const steer_address& key) {
    Address at{{}, key.port, key.protocol == IPPROTO_TCP ? Protocol::tcp : Protocol::udp};
    std::memcpy(at.local.bytes.data(), key.address, sizeof key.address);
    return at;
}

Listener listener_of(const steer_found& found) {
    const auto at = address_of(found.at);
    return {.at = at,
            .is_dual = found.is_dual != 0 && !at.local.is_ipv4(),
            .has_program = found.has_program != 0,
            .has_device = found.device != 0,
            .inode = found.inode,
            .is_refused = found.refused != 0};
}

/// Removes the entries that `is_meant` says.
template <class Key, class IsMeant>
void clear_table(const bpf_map* map, const IsMeant& is_meant) {
    const int fd = bpf_map__fd(map);
    std::vector<Key> keys;
    for (Key key{}; bpf_map_get_next_key(fd, keys.empty() ? nullptr : &keys.back(), &key) == 0 &&
                    keys.size() < bpf_map__max_entries(map);)
        keys.push_back(key);
    for (const auto& key : keys)
        if (is_meant(key)) bpf_map_delete_elem(fd, &key);
}

/// False: there is no room.
template <class Key, class Value>
bool put(int map, const Key& key, const Value& value) {
    return bpf_map_update_elem(map, &key, &value, BPF_ANY) == 0;
}

/// Runs an iterator to its end, and adds what it found of a namespace, by cookie.
Result<void> iterate(const bpf_program* program, bpf_iter_link_info info, std::uint64_t space,
                     Listeners& into) {
    LIBBPF_OPTS(bpf_iter_attach_opts, options);
    options.link_info = &info;
    options.link_info_len = sizeof info;
    const std::unique_ptr<bpf_link, decltype(&bpf_link__destroy)> iterator(
        bpf_program__attach_iter(program, &options), bpf_link__destroy);
    const auto refused = [] { return fail("the kernel does not list sockets", {}, errno); };
    if (iterator == nullptr) return refused();
    const host::Fd fd(bpf_iter_create(bpf_link__fd(iterator.get())));
    std::vector<steer_found> found(steer_most_listeners);
    const auto room = std::as_writable_bytes(std::span(found));
    std::size_t have = 0;
    while (have < room.size()) {
        const auto got = ::read(fd.get(), room.data() + have, room.size() - have);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return refused();
        if (got == 0) break;
        have += static_cast<std::size_t>(got);
    }
    found.resize(have / sizeof(steer_found));
    for (const auto& one : found)
        if (one.at.space == space) into.insert_or_assign(one.cookie, listener_of(one));
    return {};
}

Result<void> go_through(const bpf_program* program, int process, std::uint64_t space, Listeners& into) {
    bpf_iter_link_info info{};
    info.task.pid = static_cast<unsigned>(process);
    return iterate(program, info, space, into);
}

unsigned share_of(double share) {
    return static_cast<unsigned>(std::clamp(share, 0.0, 1.0) * static_cast<int>(steer_whole));
}

} // namespace

struct Lanes::Program {
    std::unique_ptr<steer_lanes, decltype(&steer_lanes__destroy)> skeleton{nullptr, steer_lanes__destroy};
    std::unique_ptr<bpf_link, decltype(&bpf_link__destroy)> link{nullptr, bpf_link__destroy};
    const Reads* reads = nullptr;
    Kept* kept = nullptr;
    std::uint64_t space = 0;
    unsigned next_id = static_cast<unsigned>(::getpid()) << 16U; ///< of a service: none is used twice
    bool is_adopted = false;
    bool lists_marked = true; ///< the kernel lists sockets by their storage

    [[nodiscard]] std::string name(const char* what) const { return fmt::format("{}-{}", space, what); }

    /// 0 or an errno value. `file`: the namespace.
    int begin(int file, bool adopts, bool can_list) {
        lists_marked = can_list, is_adopted = adopts;
        skeleton.reset(steer_lanes__open());
        if (skeleton == nullptr) return errno;
        bpf_program__set_autoload(skeleton->progs.of_marked, can_list);
        bpf_program__set_autoload(skeleton->progs.of_files, !can_list);
        skeleton->rodata->space = static_cast<unsigned>(space);
        skeleton->bss->serves_datagrams = adopts ? 1 : 0; // until set() knows
        for (const auto* shared : {"marked", "origins", "services", "strangers"})
            bpf_map__reuse_fd(bpf_object__find_map_by_name(skeleton->obj, shared), reads->table(shared));
        if (adopts)
            for (const auto* own : own_tables)
                if (const int fd = kept->find(name(own)); fd >= 0)
                    bpf_map__reuse_fd(bpf_object__find_map_by_name(skeleton->obj, own), fd);
        if (const int failed = steer_lanes__load(skeleton.get()); failed != 0) return -failed;
        link.reset(bpf_program__attach_netns(skeleton->progs.steer, file));
        if (link == nullptr) return errno;
        // The former daemon's program is in force until this one is.
        detach(kept->find(name("link")));
        kept->remove(name("link"));
        kept->store(name("link"), bpf_link__fd(link.get()));
        for (const auto* own : own_tables)
            if (!adopts || kept->find(name(own)) < 0)
                kept->store(name(own), bpf_map__fd(bpf_object__find_map_by_name(skeleton->obj, own)));
        return 0;
    }

    /// The entries of this namespace in a table by address.
    template <class Value>
    [[nodiscard]] std::map<Address, Value> in_force(const char* table) const {
        std::map<Address, Value> found;
        std::ignore = read_table<steer_address, Value>(reads->table(table),
                                                       [&](const steer_address& key, const Value& value) {
                                                           if (key.space == space)
                                                               found.emplace(address_of(key), value);
                                                       });
        return found;
    }

    void remove(const char* table, const Address& at) const {
        const auto key = address_of(space, at);
        bpf_map_delete_elem(reads->table(table), &key);
    }

    /// Removes all services but those of these addresses.
    void clear_services(const std::set<Address>& kept_ones = {}) const {
        for (const auto& [at, service] : in_force<steer_service>("services"))
            if (!kept_ones.contains(at)) remove("services", at);
    }

    /// Removes also all lanes and slots of services before `first_id`.
    void clear(unsigned first_id, const std::set<Address>& kept_ones) const {
        clear_services(kept_ones);
        const auto is_former = [&](const auto& key) { return key.service - first_id >= next_id - first_id; };
        clear_table<steer_lane_key>(skeleton->maps.lanes, is_former);
        clear_table<steer_slot>(skeleton->maps.slots, is_former);
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
    // The number may be of a namespace that has ended.
    const bool adopts = space_of(kept.find(program->name("link"))) == space;
    if (!adopts) drop(space, reads, kept);
    std::uint32_t others = 0;
    std::ignore = bpf_prog_query(file->get(), BPF_SK_LOOKUP, 0, nullptr, nullptr, &others);
    if (others > (adopts ? 1U : 0U))
        return fail("another sk_lookup program serves the network namespace", {}, EBUSY);
    int code = program->begin(file->get(), adopts, true);
    if (code != 0) code = program->begin(file->get(), adopts, false);
    if (code != 0)
        return std::unexpected(refused_bpf(code, "sk_lookup and iterators over sockets (Linux 5.11)"));
    ::malloc_trim(0); // as in Reads::open()
    return Lanes(std::move(program));
}

bool Lanes::is_attached() const { return space_of(bpf_link__fd(program_->link.get())) != 0; }

bool Lanes::is_adopted() const { return program_->is_adopted; }

Result<Listeners> Lanes::mark(const Reads& reads, int process, std::uint64_t space, bool datagrams) {
    Listeners found;
    const auto done = go_through(reads.walk(datagrams), process, space, found);
    return done ? Result<Listeners>(std::move(found)) : std::unexpected(done.error());
}

Result<Listeners> Lanes::put_listeners(const std::vector<int>& processes) {
    Listeners found;
    if (!program_->lists_marked) {
        for (const int process : processes)
            std::ignore = go_through(program_->skeleton->progs.of_files, process, program_->space,
                                     found); // it may have ended
        return found;
    }
    bpf_iter_link_info info{};
    info.map.map_fd = static_cast<unsigned>(program_->reads->table("marked"));
    const auto done = iterate(program_->skeleton->progs.of_marked, info, program_->space, found);
    return done ? Result<Listeners>(std::move(found)) : std::unexpected(done.error());
}

Result<Listeners> Lanes::set(const std::vector<Service>& services, const std::vector<int>& processes) {
    auto& own = *program_;
    own.is_adopted = false;
    // The former entries are in force until all of the new ones are, where there is room for both.
    auto found = replace(services, processes);
    if (!found || std::ranges::any_of(*found, [](const auto& one) { return one.second.is_refused; })) {
        own.clear(own.next_id, {});
        found = replace(services, processes);
    }
    if (!found) own.clear(own.next_id, {});
    return found;
}

Result<Listeners> Lanes::replace(const std::vector<Service>& services, const std::vector<int>& processes) {
    auto& own = *program_;
    const auto& maps = own.skeleton->maps;
    bool has_room = true, serves_datagrams = false;
    std::map<std::uint64_t, steer_places> places;
    std::set<Address> addresses;
    const unsigned first_id = own.next_id;
    for (const auto& service : services) {
        const unsigned id = own.next_id++;
        addresses.insert(service.at);
        serves_datagrams |= service.at.protocol == Protocol::udp;
        for (unsigned i = 0; i < service.slots.size(); ++i) {
            auto& its = places[service.slots[i]];
            if (its.count < steer_most_places) its.at[its.count++] = {id, i};
        }
        for (const auto& [cpu, lane] : service.lanes)
            has_room &= put(bpf_map__fd(maps.lanes), steer_lane_key{id, cpu},
                            steer_lane{lane.first, lane.count, share_of(lane.pass_on)});
    }
    clear_table<std::uint64_t>(maps.places, [](std::uint64_t) { return true; });
    for (const auto& [cookie, its] : places)
        has_room &= put(bpf_map__fd(maps.places), cookie, its);
    const auto no_room = [] { return fail("there is no room for all services, lanes and slots"); };
    if (!has_room) return no_room();
    auto listeners = put_listeners(processes);
    if (!listeners) return listeners;
    for (unsigned i = 0; i < services.size(); ++i) {
        const auto& service = services[i];
        const steer_service value{first_id + i, static_cast<unsigned>(service.slots.size()),
                                  share_of(service.pass_on), service.is_dual ? 1U : 0U};
        if (!put(own.reads->table("services"), address_of(own.space, service.at), value)) return no_room();
    }
    own.skeleton->bss->serves_datagrams = serves_datagrams ? 1 : 0;
    own.clear(first_id, addresses);
    return listeners;
}

bool Lanes::leave(const std::set<Address>& others, std::uint64_t listed) {
    const auto& own = *program_;
    const auto noted = own.in_force<steer_stranger>("strangers");
    for (const auto& [at, its] : noted)
        if (!others.contains(at) && its.opened < listed) own.remove("strangers", at);
    for (const auto& at : others) {
        if (noted.contains(at) ||
            put(own.reads->table("strangers"), address_of(own.space, at), steer_stranger{listed, 1}))
            continue;
        std::ignore = leave({}, ~0ULL);
        return false;
    }
    return true;
}

Handed Lanes::handed(Protocol protocol) const {
    std::array<std::uint64_t, steer_notes> sums{};
    std::vector<std::uint64_t> of_cpus(static_cast<std::size_t>(std::max(1, libbpf_num_possible_cpus())));
    for (std::uint32_t which = 0; which < steer_notes; ++which) {
        const std::uint32_t index = which + (protocol == Protocol::tcp ? 0 : steer_notes);
        if (bpf_map_lookup_elem(bpf_map__fd(program_->skeleton->maps.notes), &index, of_cpus.data()) == 0)
            for (const auto count : of_cpus)
                sums.at(which) += count;
    }
    return {sums[steer_to_lane], sums[steer_to_next], sums[steer_to_kernel], sums[steer_full]};
}

void Lanes::end() { drop(program_->space, *program_->reads, *program_->kept); }

void Lanes::drop(std::uint64_t space, const Reads& reads, Kept& kept) {
    Program its;
    its.reads = &reads, its.space = space;
    detach(kept.find(its.name("link")));
    kept.remove(its.name("link"));
    for (const auto* own : own_tables)
        kept.remove(its.name(own));
    its.clear_services();
    for (const auto& [at, opened] : its.in_force<steer_stranger>("strangers"))
        its.remove("strangers", at);
}

} // namespace affinityd::steer
