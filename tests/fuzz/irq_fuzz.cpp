// SPDX-License-Identifier: Apache-2.0
// Any bytes for parse_interrupts, a file of forms of labels, and classify: no crash, and results within their
// contracts.
#include "irq/classify.hpp"
#include "irq/reader.hpp"
#include "machine/labels.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace {

void require(bool promise) {
    if (!promise) std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto match = affinityd::machine::builtin_labels()->match(text.substr(0, text.find('\n')), {});
    require(!match || match->label.is_nic || match->label.kind == affinityd::irq::Kind::none);
    require(!match || match->label.device.size() <= 15);
    (void)affinityd::machine::check_labels("labels.yaml", text);
    auto table = affinityd::irq::parse_interrupts(text);
    table.labels = affinityd::machine::builtin_labels();
    std::size_t actions = 0;
    for (const auto& line : table.irqs) {
        require(line.counts.size() <= table.cpus.size());
        actions += line.actions.size();
    }
    const auto lines = affinityd::irq::classify(table);
    require(lines.size() <= actions);
    for (const auto& line : lines)
        require(line.label.is_nic || line.label.kind == affinityd::irq::Kind::none);
    return 0;
}
