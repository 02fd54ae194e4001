// SPDX-License-Identifier: Apache-2.0
#include "topology/reader.hpp"

#include "base/text.hpp"
#include "host/root.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

namespace affinityd::topology {

namespace {

using host::Dir;
using host::Root;

/// A file that so many CPUs do not have is one that this kernel does not make: it is asked for no more.
constexpr unsigned enough_absent = 4;

std::string folder_of(unsigned cpu) { return "cpu" + std::to_string(cpu); }

/// A level of a machine (packages, dies, cores, ...), read CPU by CPU in ascending order from the folders
/// cpuN/topology below `cpus`. A set is read at the first CPU of each group only: the kernel gives every
/// member of a group the same one. Source: Documentation/admin-guide/cputopology.rst.
class GroupReader {
  public:
    /// `files`: what the set is called, the newer name first; one that ends in "_list" is a list, else a
    /// mask.
    GroupReader(const host::Dir& cpus, const CpuSet& online, std::vector<std::string_view> files)
        : cpus_(cpus), online_(online), files_(std::move(files)) {}

    /// Place of the CPU's group; no value if the machine does not say. Cut to the online CPUs; no CPU is in
    /// two.
    std::optional<std::size_t> read(unsigned cpu) {
        if (const auto known = find(cpu)) return known;
        if (groups_.empty() && absent_ >= enough_absent) return std::nullopt;
        CpuSet group = siblings(folder_of(cpu) + "/topology/") & online_;
        if (!group.contains(cpu)) return std::nullopt;
        return add(group -= covered_);
    }
    /// Place of the CPU's group if a member of it was read.
    [[nodiscard]] std::optional<std::size_t> find(unsigned cpu) const {
        return cpu < place_of_.size() ? place_of_[cpu] : std::nullopt;
    }
    /// A group of one, for a CPU without a group in `read`.
    std::size_t add_alone(unsigned cpu) { return add(CpuSet{cpu}); }
    [[nodiscard]] const CpuSet& operator[](std::size_t place) const { return groups_[place]; }
    /// All groups by first CPU.
    [[nodiscard]] std::vector<CpuSet> take() {
        std::ranges::sort(groups_, {}, &CpuSet::first);
        return std::move(groups_);
    }

  private:
    std::size_t add(CpuSet group) {
        covered_ |= group;
        if (place_of_.size() <= group.last()) place_of_.resize(group.last() + 1);
        for (const unsigned cpu : group)
            place_of_[cpu] = groups_.size();
        groups_.push_back(std::move(group));
        return groups_.size() - 1;
    }
    CpuSet siblings(const std::string& folder) {
        for (auto& file : files_) {
            const std::string path = folder + std::string(file);
            auto set = file.ends_with("_list") ? cpus_.cpu_list(path) : cpus_.cpu_mask(path);
            if (!set || set->empty()) continue;
            std::swap(files_.front(), file); // the other CPUs have it under this name too
            return *std::move(set);
        }
        ++absent_;
        return {};
    }

    const host::Dir& cpus_;
    const CpuSet& online_;
    std::vector<std::string_view> files_;
    std::vector<CpuSet> groups_;
    std::vector<std::optional<std::size_t>> place_of_; ///< by CPU
    CpuSet covered_;
    unsigned absent_ = 0;
};

/// A number at each CPU.
class IdReader {
  public:
    /// `file` is below cpuN/.
    IdReader(const host::Dir& cpus, std::string file) : cpus_(cpus), file_("/" + std::move(file)) {}
    /// No value: no such file, or a negative number, which is how the kernel says "not known".
    std::optional<int> read(unsigned cpu) {
        if (!present_ && absent_ >= enough_absent) return std::nullopt;
        const auto value = cpus_.number(folder_of(cpu) + file_);
        present_ = present_ || value;
        if (!value) ++absent_;
        return value && *value >= 0 && *value <= CpuSet::max_cpu ? std::optional(static_cast<int>(*value))
                                                                 : std::nullopt;
    }

  private:
    const host::Dir& cpus_;
    std::string file_;
    unsigned absent_ = 0;
    bool present_ = false;
};

/// Collects the caches of a machine CPU by CPU, each once, from the folders cpuN/cache below `cpus`. Source:
/// Documentation/ABI/testing/sysfs-devices-system-cpu, "cache/index*".
class CacheReader {
  public:
    CacheReader(const host::Dir& cpus, const CpuSet& online) : cpus_(cpus), online_(online) {}
    void read(unsigned cpu);
    /// By level, then type, then first CPU.
    [[nodiscard]] std::vector<Cache> take();

  private:
    struct Leaf {
        unsigned level = 0;
        Cache::Type type = Cache::Type::unified;
    };
    [[nodiscard]] std::optional<CpuSet> sharing(const std::string& leaf_folder) const;
    [[nodiscard]] CpuSet& covered(const Leaf& leaf) { return covered_[{leaf.level, leaf.type}]; }
    void add(const Leaf& leaf, const std::string& leaf_folder, unsigned cpu, const CpuSet& sharing);

    const host::Dir& cpus_;
    const CpuSet& online_;
    std::vector<Cache> caches_;
    std::map<std::pair<unsigned, Cache::Type>, CpuSet>
        covered_;             ///< CPUs whose cache of that level and type is known
    unsigned last_index_ = 0; ///< highest index seen at any CPU
};

std::optional<Cache::Type> cache_type(const std::optional<std::string>& text) {
    if (!text) return std::nullopt;
    if (*text == "Data") return Cache::Type::data;
    if (*text == "Instruction") return Cache::Type::instruction;
    if (*text == "Unified") return Cache::Type::unified;
    return std::nullopt;
}

std::string leaf_name(const std::string& folder, unsigned index) {
    return folder + "index" + std::to_string(index);
}

/// Bytes of what the kernel prints as "32K", and old ones as "1024 KB"; 0 if it is not known.
std::uint64_t cache_size(const std::optional<std::string>& text) {
    if (!text) return 0;
    const auto digits = std::string_view(*text).substr(0, text->find_first_not_of("0123456789"));
    const auto number = parse_number<std::uint64_t>(digits);
    if (!number || *number > (std::uint64_t{1} << 40)) return 0;
    return text->find('M') != std::string::npos ? *number << 20 : *number << 10;
}

std::optional<CpuSet> CacheReader::sharing(const std::string& leaf_folder) const {
    // The mask first: kernels around 2.6.38 to 3.x listed only the CPU itself for caches of modules.
    auto cpus = cpus_.cpu_mask(leaf_folder + "/shared_cpu_map");
    return cpus ? cpus : cpus_.cpu_list(leaf_folder + "/shared_cpu_list");
}

void CacheReader::add(const Leaf& leaf, const std::string& leaf_folder, unsigned cpu, const CpuSet& sharing) {
    CpuSet group = sharing & online_;
    if (!group.contains(cpu)) group.insert(cpu);
    covered(leaf) |= group;
    const auto size = cache_size(cpus_.text(leaf_folder + "/size"));
    caches_.push_back({leaf.level, leaf.type, size, std::move(group)});
}

void CacheReader::read(unsigned cpu) {
    const std::string folder = folder_of(cpu) + "/cache/";
    constexpr unsigned most_caches = 16;
    constexpr unsigned usual_caches = 6; // s390 has the most: two of each in two levels, L3, L4
    if (!cpus_.exists(folder)) return;
    for (unsigned index = 0; index < most_caches; ++index) {
        const std::string name = leaf_name(folder, index);
        const auto level = cpus_.number(name + "/level");
        if (!level) {
            if (index >= usual_caches && index > last_index_) break;
            continue; // recordings may lack one in between
        }
        last_index_ = std::max(last_index_, index);
        const auto type = cache_type(cpus_.text(name + "/type"));
        if (!type || *level < 1 || *level > 8) continue;
        const Leaf leaf{static_cast<unsigned>(*level), *type};
        if (!covered(leaf).contains(cpu)) add(leaf, name, cpu, sharing(name).value_or(CpuSet{}));
    }
}

std::vector<Cache> CacheReader::take() {
    std::ranges::sort(caches_, [](const Cache& a, const Cache& b) {
        return std::tuple(a.level, a.type, a.cpus.first()) < std::tuple(b.level, b.type, b.cpus.first());
    });
    return std::move(caches_);
}

std::vector<Kind> by_core_type(const host::Root& root, const Topology& topology) {
    const CpuSet performance =
        root.sys().cpu_list("devices/cpu_core/cpus").value_or(CpuSet{}) & topology.online;
    const CpuSet efficiency =
        root.sys().cpu_list("devices/cpu_atom/cpus").value_or(CpuSet{}) & topology.online;
    if (performance.empty() || efficiency.empty()) return {};
    std::vector<Kind> kinds{{"performance", 0, performance}, {"efficiency", 1, efficiency}};
    // Arrow Lake-H and later, since Linux 6.13; earlier kernels have these among the atoms.
    CpuSet lowpower = root.sys().cpu_list("devices/cpu_lowpower/cpus").value_or(CpuSet{}) & topology.online;
    if (!lowpower.empty()) kinds.push_back({"lowpower", 2, std::move(lowpower)});
    return kinds;
}

/// From the strongest to the weakest; none if there is only one.
std::vector<Kind> by_capacity(const Topology& topology) {
    std::map<unsigned, CpuSet, std::greater<>> groups;
    for (const auto& cpu : topology.cpus)
        if (cpu.capacity) groups[*cpu.capacity].insert(cpu.id);
    if (groups.size() < 2) return {};
    std::vector<Kind> kinds;
    for (auto& [capacity, cpus] : groups) {
        const auto rank = static_cast<unsigned>(kinds.size());
        std::string name = "middle";
        if (rank == 0) name = "performance";
        if (rank + 1 == groups.size()) name = "efficiency";
        kinds.push_back({std::move(name), rank, std::move(cpus)});
    }
    return kinds;
}

/// Groups of unlike cores: by the kernel's own lists of core types (hybrid x86), else by cpu_capacity (arm64,
/// riscv). Never by frequency: favoured cores of one kind differ in it. Empty: all alike, or not known.
std::vector<Kind> read_kinds(const host::Root& root, const Topology& topology) {
    auto kinds = by_core_type(root, topology);
    return kinds.empty() ? by_capacity(topology) : kinds;
}

constexpr std::size_t most_nodes = 1024; // 1 << NODES_SHIFT is at most this, arch/*/Kconfig

/// Bytes of a line such as "Node 0 MemTotal:  65536 kB"; no value: there is none of this name.
std::optional<std::uint64_t> node_memory(std::string_view meminfo, std::string_view name) {
    for (const auto line : split(meminfo, '\n')) {
        const auto words = split_words(line);
        if (words.size() >= 4 && words[2] == name)
            if (const auto kib = parse_number<std::uint64_t>(words[3]);
                kib && *kib < (std::uint64_t{1} << 50))
                return *kib * 1024;
    }
    return std::nullopt;
}

/// At most one for each node: a recording may say more, and the matrix grows with the square.
std::vector<unsigned> distances(const host::Dir& node, std::size_t nodes) {
    constexpr std::size_t longest = 11; // ten digits and a space
    const auto text = node.text("distance").value_or("");
    std::vector<unsigned> values;
    for (const auto word : split_words(std::string_view(text).substr(0, nodes * longest)))
        if (const auto value = parse_number<unsigned>(word); value && values.size() < nodes)
            values.push_back(*value);
    return values;
}

/// Adds the online NUMA nodes below `dir` (the folder of nodes) to a topology whose CPUs are read, and tells
/// those CPUs their node. Nodes without memory or without CPUs are nodes; numbers may have holes. An Error:
/// they cannot be listed. Source: Documentation/ABI/stable/sysfs-devices-node.
Result<void> read_nodes(const host::Dir& dir, Topology& topology) {
    const auto online = dir.cpu_list("online");
    const auto ids = numbered(dir, "node");
    if (!ids) return std::unexpected(ids.error());
    for (const unsigned id : *ids) {
        if (online && !online->contains(id)) continue;
        if (topology.nodes.size() == most_nodes) break;
        const auto folder = dir.dir("node" + std::to_string(id));
        if (!folder) continue;
        Node node{.id = id,
                  .cpus = {},
                  .memory_bytes = node_memory(folder->text("meminfo").value_or(""), "MemTotal:"),
                  .distance = {}};
        auto cpus = folder->cpu_list("cpulist");
        if (!cpus) cpus = folder->cpu_mask("cpumap");
        node.cpus = cpus.value_or(CpuSet{}) & topology.online;
        node.distance = distances(*folder, std::min(ids->size(), most_nodes));
        for (auto& cpu : topology.cpus)
            if (node.cpus.contains(cpu.id) && !cpu.node) cpu.node = id;
        topology.nodes.push_back(std::move(node));
    }
    return {};
}

/// Drops a level that has the same groups as the one above it.
void drop_if_same(std::vector<CpuSet>& groups, const std::vector<CpuSet>& above) {
    if (groups == above) groups.clear();
}

struct Masks {
    CpuSet online, present, possible;
};

Result<Masks> read_masks(const Dir& dir) {
    const auto numbers = numbered(dir, "cpu");
    if (!numbers) return std::unexpected(numbers.error());
    CpuSet folders;
    for (const unsigned cpu : *numbers)
        folders.insert(cpu);
    Masks masks;
    const CpuSet readable = CpuSet::range(0, greatest_number);
    masks.present = dir.cpu_list("present").value_or(folders) & readable;
    masks.possible = dir.cpu_list("possible").value_or(masks.present) & readable;
    if (auto online = dir.cpu_list("online")) {
        // A CPU that has no folder although others do is a slip of the recording, or an attempt to fill
        // memory with a million of them.
        masks.online = folders.empty() ? *online & CpuSet::range(0, greatest_number / 8) : *online & folders;
        return masks;
    }
    for (const unsigned cpu : folders)
        if (dir.number(folder_of(cpu) + "/online").value_or(1) != 0) masks.online.insert(cpu);
    return masks;
}

/// The levels of cpuN/topology; the names before Linux 5.3 and after.
struct Levels {
    Levels(const Dir& dir, const CpuSet& online)
        : drawers(dir, online, {"drawer_siblings_list", "drawer_siblings"}),
          books(dir, online, {"book_siblings_list", "book_siblings"}),
          packages(dir, online, {"package_cpus_list", "core_siblings_list", "package_cpus", "core_siblings"}),
          dies(dir, online, {"die_cpus_list", "die_cpus"}),
          clusters(dir, online, {"cluster_cpus_list", "cluster_cpus"}),
          cores(dir, online, {"core_cpus_list", "thread_siblings_list", "core_cpus", "thread_siblings"}),
          package_id(dir, "topology/physical_package_id"), die_id(dir, "topology/die_id"),
          cluster_id(dir, "topology/cluster_id"), core_id(dir, "topology/core_id"),
          capacity(dir, "cpu_capacity") {}
    GroupReader drawers, books, packages, dies, clusters, cores;
    IdReader package_id, die_id, cluster_id, core_id, capacity;
};

/// The id of a CPU's group: members share it by definition (core ids are not like that: AMD's modules are
/// cores that have two).
std::optional<int> group_id(const Topology& topology, unsigned cpu, const GroupReader& groups,
                            std::optional<std::size_t> place, IdReader& ids, std::optional<int> Cpu::*field) {
    if (place && groups[*place].first() < cpu)
        if (const Cpu* first = topology.find(groups[*place].first())) return first->*field;
    return ids.read(cpu);
}

Cpu read_cpu(unsigned id, Levels& levels, const Topology& topology) {
    Cpu cpu{
        .id = id, .package = {}, .die = {}, .cluster = {}, .core = {}, .node = {}, .capacity = {}, .smt = {}};
    levels.drawers.read(id);
    levels.books.read(id);
    cpu.package =
        group_id(topology, id, levels.packages, levels.packages.read(id), levels.package_id, &Cpu::package);
    cpu.cluster =
        group_id(topology, id, levels.clusters, levels.clusters.read(id), levels.cluster_id, &Cpu::cluster);
    // Without a die id (-1) the kernel gives each CPU as its own die, which means none.
    cpu.die = group_id(topology, id, levels.dies, levels.dies.find(id), levels.die_id, &Cpu::die);
    if (cpu.die) levels.dies.read(id);
    cpu.core = levels.core_id.read(id);
    if (const auto capacity = levels.capacity.read(id)) cpu.capacity = static_cast<unsigned>(*capacity);
    auto core = levels.cores.read(id);
    if (!core) core = levels.cores.add_alone(id);
    cpu.smt = levels.cores[*core];
    return cpu;
}

void read_cpus(const Dir& dir, Topology& topology) {
    Levels levels(dir, topology.online);
    CacheReader caches(dir, topology.online);
    for (const unsigned id : topology.online) {
        topology.cpus.push_back(read_cpu(id, levels, topology));
        caches.read(id);
    }
    topology.drawers = levels.drawers.take();
    topology.books = levels.books.take();
    topology.packages = levels.packages.take();
    topology.dies = levels.dies.take();
    topology.clusters = levels.clusters.take();
    topology.cores = levels.cores.take();
    topology.caches = caches.take();
}

/// Drops the levels that add no information.
void drop_levels(Topology& topology) {
    drop_if_same(topology.books, topology.packages);
    drop_if_same(topology.drawers, topology.books.empty() ? topology.packages : topology.books);
    drop_if_same(topology.dies, topology.packages);
    drop_if_same(topology.clusters, topology.cores);
    drop_if_same(topology.clusters, topology.packages);
    if (topology.dies.empty())
        for (auto& each : topology.cpus)
            each.die.reset();
    // The kernel derives clusters from a shared cache where the firmware names none: no level of its own.
    for (const unsigned level : {2U, 3U})
        drop_if_same(topology.clusters, topology.cache_groups(level));
}

struct ClassName {
    unsigned code; ///< 16 bits: class and subclass; subclass ff: any that is not named
    std::string_view name;
};

// Classes of include/linux/pci_ids.h that move data for programs.
constexpr std::array class_names{ClassName{0x0104, "RAID"},       ClassName{0x0106, "SATA"},
                                 ClassName{0x0107, "SAS"},        ClassName{0x0108, "NVMe"},
                                 ClassName{0x01ff, "storage"},    ClassName{0x0200, "Ethernet"},
                                 ClassName{0x0207, "InfiniBand"}, ClassName{0x02ff, "network"},
                                 ClassName{0x03ff, "GPU"},        ClassName{0x12ff, "accelerator"}};

unsigned class_of(const host::Dir& device) {
    const auto text = device.text("class");
    if (!text || !text->starts_with("0x")) return 0;
    unsigned code = 0;
    const auto [end, status] = std::from_chars(text->data() + 2, text->data() + text->size(), code, 16);
    return status == std::errc{} && end == text->data() + text->size() && code <= 0xffffff ? code : 0;
}

std::string driver_of(const host::Dir& device) {
    const auto target = device.link("driver");
    return target ? target->substr(target->rfind('/') + 1) : std::string();
}

constexpr std::size_t enough = 16U << 10; ///< the first CPU's lines; one has some 2 KiB

std::optional<std::string_view> value_of(const std::vector<std::string_view>& lines, std::string_view name) {
    for (const auto line : lines) {
        const auto colon = line.find(':');
        if (colon == std::string_view::npos || trim_text(line.substr(0, colon)) != name) continue;
        if (const auto value = trim_text(line.substr(colon + 1)); !value.empty()) return value;
    }
    return std::nullopt;
}

} // namespace

Result<Topology> read_topology(const Root& root) {
    const auto cpu = root.sys().dir("devices/system/cpu");
    if (!cpu) return fail("there are no CPUs to be seen", "devices/system/cpu", cpu.error().code);
    Topology topology;
    const auto read = read_masks(*cpu);
    if (!read) return std::unexpected(read.error());
    const auto& masks = *read;
    topology.online = masks.online;
    topology.present = masks.present;
    topology.possible = masks.possible | masks.online;
    topology.offline = masks.present - masks.online;
    if (topology.online.empty()) return fail("no CPU is online there", "devices/system/cpu");
    topology.isolated = read_isolated(root) & topology.online;
    topology.nohz_full = cpu->cpu_list("nohz_full").value_or(CpuSet{}) & topology.online;
    topology.housekeeping = topology.online - topology.isolated - topology.nohz_full;
    if (topology.housekeeping.empty()) topology.housekeeping = topology.online;
    read_cpus(*cpu, topology);
    drop_levels(topology);
    if (const auto node = root.sys().dir("devices/system/node")) {
        if (auto nodes = read_nodes(*node, topology); !nodes) return std::unexpected(nodes.error());
    } else if (!host::means_absent(node.error().code)) {
        return std::unexpected(node.error());
    }
    topology.kinds = read_kinds(root, topology);
    return topology;
}

CpuSet read_isolated(const host::Root& root) {
    const auto at_boot = root.sys().cpu_list("devices/system/cpu/isolated");
    const auto by_partitions = root.sys().cpu_list("fs/cgroup/cpuset.cpus.isolated");
    return at_boot.value_or(CpuSet{}) | by_partitions.value_or(CpuSet{});
}

std::optional<CpuSet> read_online(const host::Root& root) {
    const auto dir = root.sys().dir("devices/system/cpu");
    if (!dir) return std::nullopt;
    auto online = dir->cpu_list("online");
    if (!online) return std::nullopt;
    return std::move(*online);
}

std::string read_cpu_model(const host::Root& root) {
    const auto text = root.proc().read("cpuinfo", enough);
    if (!text || !*text) return {};
    const auto lines = split(**text, '\n');
    // x86 and some arm; powerpc, sparc; riscv.
    for (const auto* name : {"model name", "cpu", "uarch"})
        if (const auto value = value_of(lines, name)) return std::string(*value);
    const auto implementer = value_of(lines, "CPU implementer"), part = value_of(lines, "CPU part");
    if (implementer && part)
        return "arm implementer " + std::string(*implementer) + " part " + std::string(*part);
    return {};
}

Result<std::vector<unsigned>> numbered(const host::Dir& dir, std::string_view prefix) {
    std::vector<unsigned> numbers;
    const auto names = dir.list("");
    if (!names) return std::unexpected(names.error());
    for (const auto& name : *names) {
        if (!name.starts_with(prefix)) continue;
        const auto number = parse_number<unsigned>(std::string_view(name).substr(prefix.size()));
        // No kernel makes "cpu007"; it would be a second cpu7.
        if (number && *number <= greatest_number && name == std::string(prefix) + std::to_string(*number))
            numbers.push_back(*number);
    }
    std::ranges::sort(numbers);
    return numbers;
}

std::string_view pci_class_name(unsigned class_code) {
    const unsigned code = class_code >> 8;
    const auto found = std::ranges::find_if(class_names, [&](const ClassName& each) {
        return each.code == code || ((each.code & 0xff) == 0xff && each.code >> 8 == code >> 8);
    });
    return found == class_names.end() ? std::string_view() : found->name;
}

Result<std::vector<PciDevice>> read_pci_devices(const host::Root& root) {
    const auto addresses = root.sys().list("bus/pci/devices");
    if (!addresses) return std::unexpected(addresses.error());
    std::vector<PciDevice> devices;
    if (addresses->empty()) return devices;
    const auto all = root.sys().dir("bus/pci/devices");
    if (!all) return std::unexpected(all.error());
    // CPUs beyond these would only take memory, in each of thousands of devices of a hostile recording.
    const CpuSet possible =
        root.sys().cpu_list("devices/system/cpu/possible").value_or(CpuSet::range(0, greatest_number / 8));
    for (const auto& address : *addresses) {
        const auto folder = all->dir(address);
        if (!folder) continue;
        PciDevice device{
            .address = address, .driver = {}, .class_code = class_of(*folder), .node = {}, .local_cpus = {}};
        if (pci_class_name(device.class_code).empty()) continue;
        device.driver = driver_of(*folder);
        if (const auto node = folder->number("numa_node"); node && *node >= 0 && *node <= greatest_number)
            device.node = static_cast<unsigned>(*node);
        auto near = folder->cpu_list("local_cpulist");
        if (!near) near = folder->cpu_mask("local_cpus");
        device.local_cpus = near.value_or(CpuSet{}) & possible;
        devices.push_back(std::move(device));
    }
    return devices;
}

std::vector<std::optional<std::uint64_t>> read_room(const host::Root& root, const Topology& topology) {
    std::vector<std::optional<std::uint64_t>> room;
    for (const auto& node : topology.nodes) {
        const auto text =
            root.sys().text("devices/system/node/node" + std::to_string(node.id) + "/meminfo").value_or("");
        auto& bytes = room.emplace_back(node_memory(text, "MemFree:"));
        const auto files = node_memory(text, "FilePages:").value_or(0);
        if (bytes) *bytes += files - std::min(files, node_memory(text, "Shmem:").value_or(0));
    }
    return room;
}

} // namespace affinityd::topology
