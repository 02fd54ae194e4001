// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/locality/event_reads.hpp"

#include "affinityctl/kernel/loading.hpp"
#include "affinityctl/kernel/table.hpp"
#include "affinityctl/locality/bpf/reads.h"
#include "reads.skel.h"

#include <cerrno>
#include <cstring>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

namespace affinityctl {

namespace locality = affinityd::locality;

using affinityd::fail;
using affinityd::Result;
namespace host = affinityd::host;

struct EventReads::Program {
    locality_reads* skeleton = nullptr;
    bool has_others = false;

    Program() = default;
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;
    ~Program() { end(); }

    void end() {
        if (skeleton != nullptr) locality_reads__destroy(skeleton);
        skeleton = nullptr;
    }

    /// 0 or an errno value.
    int begin(const DeviceFilter& filter, bool others) {
        end();
        has_others = others;
        skeleton = locality_reads__open();
        if (skeleton == nullptr) return errno;
        bpf_program__set_autoload(skeleton->progs.on_other_read, others);
        auto* settings = skeleton->rodata;
        settings->only_space = static_cast<unsigned>(filter.network_space);
        settings->possible_cpus = static_cast<unsigned>(libbpf_num_possible_cpus());
        settings->only_count = static_cast<unsigned>(filter.devices.size());
        for (std::size_t i = 0; i < filter.devices.size(); ++i)
            settings->only_devices[i] = filter.devices[i];
        if (const int failed = locality_reads__load(skeleton); failed != 0) return -failed;
        return -locality_reads__attach(skeleton);
    }

    [[nodiscard]] std::uint64_t note(std::uint32_t which) const {
        std::uint64_t count = 0;
        bpf_map_lookup_elem(bpf_map__fd(skeleton->maps.notes), &which, &count);
        return count;
    }
};

EventReads::EventReads(std::unique_ptr<Program> program) : program_(std::move(program)) {}
EventReads::EventReads(EventReads&&) noexcept = default;
EventReads& EventReads::operator=(EventReads&&) noexcept = default;
EventReads::~EventReads() = default;

Result<EventReads> EventReads::open(const host::Root& root, const DeviceFilter& filter, bool with_others) {
    if (const auto ready = prepare_bpf(root); !ready) return std::unexpected(ready.error());
    if (filter.devices.size() > locality_most_devices)
        return fail("too many interfaces are stacked on this one for the BPF program");
    auto program = std::make_unique<Program>();
    int code = program->begin(filter, with_others);
    if (code != 0 && with_others) code = program->begin(filter, false); // a kernel before 6.3 has TCP only
    if (code == 0) return EventReads(std::move(program));
    return std::unexpected(refused_bpf(code, "the tracepoint tcp:tcp_rcv_space_adjust"));
}

bool EventReads::has_other_protocols() const { return program_->has_others; }

Result<std::map<int, std::string>> EventReads::readers() const {
    std::map<int, std::string> found;
    const auto done = read_table<std::uint32_t, locality_reader>(
        program_->skeleton->maps.readers, [&](const std::uint32_t& process, const locality_reader& reader) {
            found[static_cast<int>(process)] =
                std::string(reader.name, ::strnlen(reader.name, sizeof(reader.name)));
        });
    if (!done) return std::unexpected(done.error());
    return found;
}

Result<void> EventReads::take(locality::ReadCounts& seen) const {
    seen.lost = program_->note(locality_lost);
    seen.in_softirq = program_->note(locality_softirq);
    const auto add = [&](const locality_key& key, const std::uint64_t& reads) {
        seen.counts.push_back(
            {.pid = static_cast<int>(key.process),
             .network_space = key.network_space,
             .device = key.device,
             .napi = key.napi,
             .arrival = key.arrival < 0 ? std::nullopt : std::optional(static_cast<unsigned>(key.arrival)),
             .reader = key.reader,
             .protocol = key.protocol,
             .reads = reads});
    };
    // The memory of `places` is shared with the kernel, which goes on counting.
    for (const volatile auto& place : program_->skeleton->bss->places) {
        const std::uint64_t reads = place.reads;
        if (reads == 0) continue;
        locality_key key{};
        std::memcpy(&key, const_cast<const locality_key*>(&place.key),
                    sizeof(key)); // set once, before the count
        add(key, reads);
    }
    return read_table<locality_key, std::uint64_t>(program_->skeleton->maps.pairs, add);
}

} // namespace affinityctl
