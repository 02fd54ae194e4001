// SPDX-License-Identifier: Apache-2.0
#include "topology/cpu_model.hpp"

#include "base/text.hpp"
#include "host/root.hpp"

#include <optional>
#include <string_view>

namespace affinityd::topology {

namespace {

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

} // namespace affinityd::topology
