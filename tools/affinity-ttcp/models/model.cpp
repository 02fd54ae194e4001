// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/models/model.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace affinityd::ttcp {

std::optional<Model> parse_model(std::string_view text) {
    for (const Model model : all_models)
        if (to_string(model) == text) return model;
    return std::nullopt;
}

unsigned cpu_of(unsigned index, unsigned count, const CpuSet& cpus) {
    const auto list = cpus.to_vector();
    return list[static_cast<std::size_t>(index) * list.size() / std::max(count, index + 1)];
}

std::vector<std::size_t> interleave(std::size_t cells, unsigned rounds) {
    std::vector<std::size_t> order;
    for (unsigned round = 0; round < rounds; ++round)
        for (std::size_t i = 0; i < cells; ++i)
            order.push_back(round % 2 == 0 ? i : cells - 1 - i);
    return order;
}

std::string_view to_string(Work work) {
    constexpr std::array<std::string_view, 3> names{"receive", "transmit", "answer"};
    return names[static_cast<std::size_t>(work)];
}

Result<std::size_t> parse_size(std::string_view text) {
    const auto refusal = [&] {
        return fail("expected a size from 1 to 64M, as 128, 4K or 1M", std::string(text));
    };
    auto digits = trim_text(text);
    std::size_t unit = 1;
    if (digits.ends_with('K') || digits.ends_with('k')) unit = 1024;
    if (digits.ends_with('M') || digits.ends_with('m')) unit = std::size_t{1024} * 1024;
    if (unit > 1) digits.remove_suffix(1);
    const auto number = parse_number<std::size_t>(digits);
    if (!number || *number == 0 || *number > most_bytes / unit) return refusal();
    return *number * unit;
}

Result<std::vector<std::size_t>> parse_sizes(std::string_view text) {
    std::vector<std::size_t> sizes;
    for (const auto part : split(text == "all" ? paper_sizes : text, ',')) {
        const auto size = parse_size(part);
        if (!size) return std::unexpected(size.error());
        sizes.push_back(*size);
    }
    std::ranges::sort(sizes);
    const auto twice = std::ranges::unique(sizes);
    sizes.erase(twice.begin(), twice.end());
    return sizes;
}

Result<std::vector<LoadPoint>> parse_exchanges(std::string_view text) {
    std::vector<LoadPoint> points;
    for (const auto part : split(text, ',')) {
        const auto ends = split(part, ':');
        if (ends.size() > 2)
            return fail("expected REQUEST[:RESPONSE], as 1, 128 or 128:4K", std::string(part));
        const auto request = parse_size(ends.front());
        if (!request) return std::unexpected(request.error());
        const auto response = parse_size(ends.back());
        if (!response) return std::unexpected(response.error());
        const LoadPoint point{Work::answer, *request, *response};
        if (std::ranges::find(points, point) == points.end()) points.push_back(point);
    }
    return points;
}

std::string size_text(std::size_t bytes) {
    constexpr std::size_t kib = 1024, mib = kib * kib;
    if (bytes >= mib && bytes % mib == 0) return fmt::format("{} MiB", bytes / mib);
    if (bytes >= kib && bytes % kib == 0) return fmt::format("{} KiB", bytes / kib);
    return fmt::format("{} B", bytes);
}

std::string size_text(const LoadPoint& point) {
    if (point.work != Work::answer || point.bytes == point.response_bytes) return size_text(point.bytes);
    return size_text(point.bytes) + " : " + size_text(point.response_bytes);
}

} // namespace affinityd::ttcp
