// SPDX-License-Identifier: Apache-2.0
#include "topology/groups.hpp"

#include "host/root.hpp"

#include <algorithm>
#include <utility>

namespace affinityd::topology {

namespace {

/// A file that so many CPUs do not have is one that this kernel does not make: it is asked for no more.
constexpr unsigned enough_absent = 4;

std::string folder_of(unsigned cpu) { return "cpu" + std::to_string(cpu); }

} // namespace

std::optional<std::size_t> GroupReader::find(unsigned cpu) const {
    return cpu < place_of_.size() ? place_of_[cpu] : std::nullopt;
}

std::optional<std::size_t> GroupReader::read(unsigned cpu) {
    if (const auto known = find(cpu)) return known;
    if (groups_.empty() && absent_ >= enough_absent) return std::nullopt;
    CpuSet group = siblings(folder_of(cpu) + "/topology/") & online_;
    if (!group.contains(cpu)) return std::nullopt;
    return add(group -= covered_);
}

std::size_t GroupReader::add(CpuSet group) {
    covered_ |= group;
    if (place_of_.size() <= group.last()) place_of_.resize(group.last() + 1);
    for (const unsigned cpu : group)
        place_of_[cpu] = groups_.size();
    groups_.push_back(std::move(group));
    return groups_.size() - 1;
}

CpuSet GroupReader::siblings(const std::string& folder) {
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

std::vector<CpuSet> GroupReader::take() {
    std::ranges::sort(groups_, {}, &CpuSet::first);
    return std::move(groups_);
}

std::optional<int> IdReader::read(unsigned cpu) {
    if (!present_ && absent_ >= enough_absent) return std::nullopt;
    const auto value = cpus_.number(folder_of(cpu) + file_);
    if (value)
        present_ = true;
    else
        ++absent_;
    return value && *value >= 0 && *value <= CpuSet::max_cpu ? std::optional(static_cast<int>(*value))
                                                             : std::nullopt;
}

} // namespace affinityd::topology
