// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/irq_table.hpp"

#include "affinityctl/views/irq_counts.hpp"
#include "affinityctl/views/json_text.hpp"
#include "affinityctl/views/table.hpp"

namespace affinityctl {

std::string irq_table(const nlohmann::json& lines, bool color) {
    Table table({"IRQ", "DEVICE", "QUEUE", "KIND", "SOURCE", "REQUESTED", "EFFECTIVE", "LABEL", "COUNT"});
    for (const auto& line : lines) {
        const auto kind = line["kind"].is_null() ? std::string("data?") : line["kind"].get<std::string>();
        table.add({cell(line["irq"]), cell(line["device"]), cell(line["queue"]), kind == "none" ? "-" : kind,
                   cell(line["source"]), cell(line["requested"]), cell(line["effective"]),
                   cell(line["label"]), busiest(line)});
    }
    return table.to_string(color);
}

} // namespace affinityctl
