// SPDX-License-Identifier: Apache-2.0
#include "steer/reads.hpp"

#include "steer/lanes.h"
#include "steer/loading.hpp"
#include "steer/reads.h"
#include "steer_reads.skel.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <malloc.h>
#include <sys/mman.h>

namespace affinityd::steer {

namespace {

constexpr std::array shared_tables{"marked", "origins", "services", "strangers", "takers"};

} // namespace

struct Reads::Program {
    std::unique_ptr<steer_reads, decltype(&steer_reads__destroy)> skeleton{nullptr, steer_reads__destroy};
    std::unique_ptr<ring_buffer, decltype(&ring_buffer__free)> events{nullptr, ring_buffer__free};
    std::unique_ptr<locality_place, std::function<void(locality_place*)>> places{nullptr, {}}; ///< mapped
    std::vector<std::uint64_t> taken;                                                          ///< of each
    bool has_others = false;
    Opened opened{}; ///< see take_events()

    /// 0 or an errno value. `others`: the kernel has an event for reads that are not TCP; `has_fentry`: it
    /// lets a program stand at the beginning of a function.
    int begin(const Options& options, bool others, bool has_fentry) {
        has_others = others;
        skeleton.reset(steer_reads__open());
        if (skeleton == nullptr) return errno;
        bpf_program__set_autoload(skeleton->progs.on_other_read, others);
        bpf_program__set_autoattach(skeleton->progs.on_other_read, options.with_others);
        bpf_program__set_autoload(skeleton->progs.of_process, options.with_takers);
        bpf_program__set_autoattach(skeleton->progs.of_process, false);
        for (auto* at_function :
             {skeleton->progs.on_listen, skeleton->progs.on_listen_end, skeleton->progs.on_stop})
            bpf_program__set_autoload(at_function, options.with_takers && has_fentry);
        bpf_program__set_autoload(skeleton->progs.on_state, options.with_takers && !has_fentry);
        auto* settings = skeleton->rodata;
        settings->possible_cpus = static_cast<unsigned>(libbpf_num_possible_cpus());
        settings->counts_takers = options.with_takers ? 1 : 0;
        taken.assign(settings->possible_cpus * std::size_t{locality_quick_places}, 0);
        bpf_map__set_max_entries(skeleton->maps.places, static_cast<unsigned>(taken.size()));
        if (options.kept != nullptr)
            for (const auto* name : shared_tables)
                if (const int fd = options.kept->find(name); fd >= 0)
                    bpf_map__reuse_fd(bpf_object__find_map_by_name(skeleton->obj, name), fd);
        if (const int failed = steer_reads__load(skeleton.get()); failed != 0) return -failed;
        const auto bytes = taken.size() * sizeof(locality_place);
        void* mapped =
            ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(skeleton->maps.places), 0);
        if (mapped == MAP_FAILED) return errno;
        places = {static_cast<locality_place*>(mapped), [bytes](auto* all) { ::munmap(all, bytes); }};
        if (const int failed = steer_reads__attach(skeleton.get()); failed != 0) return -failed;
        if (!options.with_takers) return 0;
        events.reset(ring_buffer__new(
            bpf_map__fd(skeleton->maps.events),
            [](void* self, void* event, std::size_t) {
                auto& all = static_cast<Program*>(self)->opened;
                const auto* one = static_cast<const steer_opened*>(event);
                all.processes.insert(static_cast<int>(one->process));
                all.is_paused |= one->is_paused != 0;
                return 0;
            },
            this, nullptr));
        return events == nullptr ? errno : 0;
    }

    void keep(Kept& kept) const {
        for (const auto* name : shared_tables)
            if (kept.find(name) < 0)
                kept.store(name, bpf_map__fd(bpf_object__find_map_by_name(skeleton->obj, name)));
        const auto* link =
            skeleton->links.on_listen != nullptr ? skeleton->links.on_listen : skeleton->links.on_state;
        kept.remove("listen"); // that of the former daemon ends now, where the new one is in force
        if (link != nullptr) kept.store("listen", bpf_link__fd(link));
        kept.remove("stop");
        if (const auto* stop = skeleton->links.on_stop; stop != nullptr)
            kept.store("stop", bpf_link__fd(stop));
    }
};

Result<Reads> Reads::open(const host::Root& root, const Options& options) {
    if (const auto ready = prepare_bpf(root); !ready) return std::unexpected(ready.error());
    auto program = std::make_shared<Program>();
    int code = -1;
    for (const bool others : {options.with_others || options.with_takers, false})
        for (const bool has_fentry : {options.with_takers, false})
            if (code != 0) code = program->begin(options, others, has_fentry);
    if (code != 0) return std::unexpected(refused_bpf(code, "the tracepoint tcp:tcp_rcv_space_adjust"));
    if (options.kept != nullptr) program->keep(*options.kept);
    ::malloc_trim(0); // libbpf has read the kernel's types, which are large
    return Reads(std::move(program));
}

bool Reads::has_other_protocols() const { return program_->has_others; }

Result<std::map<int, std::string>> Reads::readers() const {
    std::map<int, std::string> found;
    using Name = std::array<char, locality_name_bytes>;
    const auto done = read_table<std::uint32_t, Name>(
        bpf_map__fd(program_->skeleton->maps.readers), [&](std::uint32_t process, const Name& name) {
            found[static_cast<int>(process)] = std::string(name.data(), ::strnlen(name.data(), name.size()));
        });
    return done ? Result<std::map<int, std::string>>(std::move(found)) : std::unexpected(done.error());
}

Result<void> Reads::take(locality::ReadCounts& seen) const {
    seen.lost = program_->skeleton->bss->lost;
    seen.in_softirq = program_->skeleton->bss->in_softirq;
    const auto add = [&](const locality_key& key, const std::uint64_t& reads) {
        seen.counts.push_back(
            {.pid = static_cast<int>(key.process),
             .network_space = key.network_space,
             .device = key.device,
             .napi = key.napi,
             .arrival = key.arrival < 0 ? std::nullopt : std::optional(static_cast<unsigned>(key.arrival)),
             .reader = key.reader,
             .thread = static_cast<int>(key.thread),
             .protocol = key.protocol,
             .reads = reads});
    };
    // The kernel goes on counting: no count is set back, only what is new is taken. A place that another key
    // takes meanwhile gives it the last reads of the former.
    auto& own = *program_;
    for (std::size_t i = 0; i < own.taken.size(); ++i) {
        volatile auto& place = own.places.get()[i];
        const std::uint64_t reads = place.reads;
        if (reads == own.taken[i]) {
            if (reads > 0) place.is_idle = 1;
            continue;
        }
        locality_key key{};
        std::memcpy(&key, const_cast<const locality_key*>(&place.key), sizeof(key));
        add(key, reads - std::exchange(own.taken[i], reads));
    }
    return read_table<locality_key, std::uint64_t>(bpf_map__fd(program_->skeleton->maps.pairs), add, true);
}

std::vector<Taker> Reads::takers() const {
    std::vector<Taker> found;
    const auto add = [&](const steer_taker& key, std::uint64_t taken) {
        found.push_back({key.listener, static_cast<int>(key.process), static_cast<int>(key.thread), taken});
    };
    std::ignore = read_table<steer_taker, std::uint64_t>(bpf_map__fd(program_->skeleton->maps.takers), add);
    return found;
}

int Reads::event_fd() const {
    return program_->events == nullptr ? -1 : ring_buffer__epoll_fd(program_->events.get());
}

Reads::Opened Reads::take_events() {
    if (program_->events != nullptr) ring_buffer__consume(program_->events.get());
    return std::exchange(program_->opened, {});
}

void Reads::note_readers(bool wanted) {
    auto*& link = program_->skeleton->links.on_other_read;
    if (!wanted)
        bpf_link__destroy(std::exchange(link, nullptr));
    else if (link == nullptr)
        link = bpf_program__attach(program_->skeleton->progs.on_other_read);
}

void Reads::mark_listeners_of(const std::set<int>& processes) const {
    const int map = bpf_map__fd(program_->skeleton->maps.followed);
    std::set<int> gone;
    std::ignore = read_table<std::uint32_t, std::uint64_t>(map, [&](std::uint32_t process, std::uint64_t) {
        if (!processes.contains(static_cast<int>(process))) gone.insert(static_cast<int>(process));
    });
    const std::uint64_t one = 1;
    for (const int process : gone)
        bpf_map_delete_elem(map, &process);
    for (const int process : processes)
        bpf_map_update_elem(map, &process, &one, BPF_ANY);
}

bpf_program* Reads::walk(bool marks_datagrams) const {
    program_->skeleton->bss->marks_datagrams = marks_datagrams ? 1 : 0;
    return program_->skeleton->progs.of_process;
}

int Reads::table(const std::string& name) const {
    return bpf_object__find_map_fd_by_name(program_->skeleton->obj, name.c_str());
}

} // namespace affinityd::steer
