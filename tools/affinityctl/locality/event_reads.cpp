// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/locality/event_reads.hpp"

#include "affinityctl/locality/bpf/reads.h"
#include "inventory/name_space.hpp"
#include "reads.skel.h"

#include <cerrno>
#include <cstring>
#include <functional>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

namespace affinityctl {

namespace locality = affinityd::locality;

using affinityd::fail;
using affinityd::Result;
namespace host = affinityd::host;

namespace {

constexpr std::uint64_t initial_pid_space = 0xEFFFFFFC; // PROC_PID_INIT_INO, include/linux/proc_ns.h

/// libbpf explains a failure in warnings; nothing of them is for users.
int be_silent(libbpf_print_level /*level*/, const char* /*format*/, va_list /*arguments*/) { return 0; }

const char* why_refused(int code) {
    switch (code) {
    case EPERM:
    case EACCES:
        return "the kernel does not allow BPF here (it needs CAP_BPF and CAP_PERFMON, and no lockdown)";
    case ENOENT:
    case ESRCH:
        return "the kernel has no BTF, or not the tracepoint tcp:tcp_rcv_space_adjust";
    case ENOSYS:
        return "the kernel is built without BPF";
    default:
        return "the kernel refuses the BPF program";
    }
}

/// All entries of a table of the kernel; those that come meanwhile may be left out.
template <class Key, class Value>
Result<void> read_table(const bpf_map* map, const std::function<void(const Key&, const Value&)>& use) {
    constexpr std::uint32_t at_once = 4096;
    std::vector<Key> keys(at_once);
    std::vector<Value> values(at_once);
    std::uint32_t place = 0;
    for (bool is_first = true, has_more = true; has_more; is_first = false) {
        std::uint32_t count = at_once;
        const int failed = bpf_map_lookup_batch(bpf_map__fd(map), is_first ? nullptr : &place, &place,
                                                keys.data(), values.data(), &count, nullptr);
        if (failed != 0 && failed != -ENOENT) return fail("cannot read a BPF table", {}, -failed);
        has_more = failed == 0;
        for (std::uint32_t i = 0; i < count; ++i)
            use(keys[i], values[i]);
    }
    return {};
}

} // namespace

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
    if (const auto space = affinityd::inventory::name_space(root, "self", "pid");
        space != 0 && space != initial_pid_space)
        return fail(
            "this is a PID namespace of its own (a container), and BPF tells the host's process numbers");
    if (filter.devices.size() > locality_most_devices)
        return fail("too many interfaces are stacked on this one for the BPF program");
    auto program = std::make_unique<Program>();
    libbpf_set_print(be_silent);
    int code = program->begin(filter, with_others);
    if (code != 0 && with_others) code = program->begin(filter, false); // a kernel before 6.3 has TCP only
    if (code == 0) return EventReads(std::move(program));
    return fail(why_refused(code), {}, code);
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
