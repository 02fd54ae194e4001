// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/queue_words.hpp"

#include "affinityctl/views/json_text.hpp"
#include "affinityctl/views/table.hpp"

namespace affinityctl {

using nlohmann::json;

std::string queue_why(const json& queue) {
    auto why = text_of(queue, queue.contains("note") ? "note" : "reason");
    if (queue.contains("shared_with"))
        why += " (shared with " + printable(text_of(queue, "shared_with")) + ")";
    return why;
}

std::string queue_name(const json& queue) {
    return text_of(queue, "kind") == "irq" ? "IRQ " + text_of(queue, "irq") + " " + text_of(queue, "label")
                                           : text_of(queue, "queue");
}

} // namespace affinityctl
