// SPDX-License-Identifier: Apache-2.0
#include "topology/caches.hpp"

#include "base/text.hpp"
#include "host/root.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>

namespace affinityd::topology {

namespace {

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

} // namespace

std::uint64_t cache_size(const std::optional<std::string>& text) {
    if (!text) return 0;
    const auto digits = std::string_view(*text).substr(0, text->find_first_not_of("0123456789"));
    const auto number = parse_number<std::uint64_t>(digits);
    if (!number || *number > (std::uint64_t{1} << 40)) return 0;
    return text->find('M') != std::string::npos ? *number << 20 : *number << 10;
}

void CacheReader::read(unsigned cpu) {
    const std::string folder = "cpu" + std::to_string(cpu) + "/cache/";
    if (!read_like_last(folder, cpu)) read_whole(folder, cpu);
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
    const auto size = sizes_ ? cache_size(cpus_.text(leaf_folder + "/size")) : 0;
    caches_.push_back({leaf.level, leaf.type, size, std::move(group)});
}

/// False, without an addition, if this CPU's caches are of another form than those of the CPU read last.
bool CacheReader::read_like_last(const std::string& folder, unsigned cpu) {
    if (form_.empty()) return false;
    std::vector<std::pair<const Leaf*, CpuSet>> found;
    for (const Leaf& leaf : form_) {
        if (covered(leaf).contains(cpu)) continue; // read at a sibling
        const auto name = leaf_name(folder, leaf.index);
        auto cpus = sharing(name);
        if (!cpus) return false;
        // A new last level may be the border between unlike cores: look closely.
        if (&leaf == &form_.back() && (cpus_.number(name + "/level") != leaf.level ||
                                       cache_type(cpus_.text(name + "/type")) != leaf.type))
            return false;
        found.emplace_back(&leaf, std::move(*cpus));
    }
    if (cpus_.exists(leaf_name(folder, static_cast<unsigned>(form_.size())))) return false;
    for (const auto& [leaf, cpus] : found)
        add(*leaf, leaf_name(folder, leaf->index), cpu, cpus);
    return true;
}

void CacheReader::read_whole(const std::string& folder, unsigned cpu) {
    constexpr unsigned most_caches = 16;
    constexpr unsigned usual_caches = 6; // s390 has the most: two of each in two levels, L3, L4
    form_.clear();
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
        const Leaf leaf{index, static_cast<unsigned>(*level), *type};
        form_.push_back(leaf);
        if (!covered(leaf).contains(cpu)) add(leaf, name, cpu, sharing(name).value_or(CpuSet{}));
    }
    if (!form_.empty() && form_.back().index + 1 != form_.size()) form_.clear();
}

std::vector<Cache> CacheReader::take() {
    std::ranges::sort(caches_, [](const Cache& a, const Cache& b) {
        return std::tuple(a.level, a.type, a.cpus.first()) < std::tuple(b.level, b.type, b.cpus.first());
    });
    return std::move(caches_);
}

} // namespace affinityd::topology
