// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/nic_table.hpp"

#include "affinityctl/views/irq_counts.hpp"
#include "affinityctl/views/json_text.hpp"
#include "affinityctl/views/table.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace affinityctl {

using nlohmann::json;

namespace {

/// Packet steering of a vector's queues: RPS of the rx queue, XPS of the tx queue.
std::string steering_of(const json& nic, const json& vector) {
    std::string text;
    const auto add = [&](const char* direction, const char* name, const json& index) {
        if (!index.is_number()) return;
        for (const auto& queue : nic["queues"])
            if (queue["direction"] == direction && queue["index"] == index && queue["steering"].is_string() &&
                !queue["steering"].get_ref<const std::string&>().empty())
                text += fmt::format("{}{}={}", text.empty() ? "" : " ", name,
                                    queue["steering"].get<std::string>());
    };
    const auto kind = cell(vector["kind"]);
    if (kind == "rx" || kind == "txrx") add("rx", "rps", vector["queue"]);
    if (kind == "tx") add("tx", "xps", vector["queue"]);
    if (kind == "txrx") add("tx", "xps", vector.contains("tx_queue") ? vector["tx_queue"] : vector["queue"]);
    return text.empty() ? "-" : text;
}

std::string queue_table(const json& nic, bool color) {
    Table table({"QUEUE", "NAPI", "THREAD", "THREAD'S CPUS", "STEERING", "WANTED", "TASKS", "ERROR"});
    for (const auto& queue : nic["queues"])
        table.add(
            {fmt::format("{}-{}", queue["direction"].get<std::string>(), queue["index"].get<unsigned>()),
             cell(queue["napi_id"]), cell(queue["napi_thread"]), cell(queue["napi_thread_cpus"]),
             cell(queue["steering"]), cell(queue.value("wanted", json())),
             printable(tasks_text(queue.value("tasks", json::array()))),
             printable(cell(queue.value("error", json())))});
    return table.empty() ? "" : table.to_string(color);
}

std::string vector_table(const json& nic, bool color) {
    Table table({"IRQ", "KIND", "QUEUE", "SOURCE", "WANTED", "REQUESTED", "EFFECTIVE", "HINT", "STEERING",
                 "RATE", "LABEL", "TASKS", "ERROR"});
    for (const auto& vector : nic["vectors"]) {
        const bool listed = vector.contains("requested");
        table.add(
            {cell(vector["irq"]), vector["kind"].is_null() ? "data?" : cell(vector["kind"]),
             cell(vector["queue"]), cell(vector["source"]), cell(vector.value("wanted", json())),
             listed ? cell(vector["requested"]) + (vector["writable"].get<bool>() ? "" : " (managed)") : "-",
             listed ? cell(vector["effective"]) : "-", listed ? cell(vector["hint"]) : "-",
             steering_of(nic, vector), listed && vector["rate"].is_object() ? busiest(vector) : "-",
             cell(vector["label"]), printable(tasks_text(vector.value("tasks", json::array()))),
             printable(cell(vector.value("error", json())))});
    }
    return table.to_string(color);
}

/// "combined 8 of 63"; "" where it is not known.
std::string channels_text(const json& nic) {
    const auto channels = nic.value("channels", json());
    if (!channels.is_object()) return {};
    std::string text;
    for (const std::string kind : {"combined", "rx", "tx"})
        if (channels.value(kind, json()).is_number() && channels[kind] != 0)
            text += fmt::format("{}{} {} of {}", text.empty() ? "" : ", ", kind, channels[kind].dump(),
                                cell(channels.value("max_" + kind, json())));
    return text;
}

std::string heading(const json& nic, bool color) {
    std::string text =
        fmt::format("{}  driver {}  {}  node {}  near CPUs {}{}\n",
                    bold(printable(nic["name"].get<std::string>()), color), printable(cell(nic["driver"])),
                    nic["up"].get<bool>() ? printable(cell(nic["operstate"])) : "down",
                    nic["node"].is_null() ? "unknown" : cell(nic["node"]),
                    nic["local_cpus"].is_null() ? "unknown" : cell(nic["local_cpus"]),
                    nic["pci"].is_null() ? "" : "  pci " + printable(cell(nic["pci"])));
    if (!nic["addresses"].empty())
        text += fmt::format("  addresses {}\n", printable(joined(nic["addresses"], " ")));
    if (const auto channels = channels_text(nic); !channels.empty())
        text += fmt::format("  queues {}\n", channels);
    if (!nic["lower"].empty())
        text += fmt::format("  on top of {}; the work is done by {}\n", printable(joined(nic["lower"], " ")),
                            nic["bottom"].empty() ? "no hardware that is visible here"
                                                  : printable(joined(nic["bottom"], " ")));
    return text;
}

} // namespace

std::string nic_text(const json& nic, bool color) {
    return heading(nic, color) +
           (nic["vectors"].empty() ? queue_table(nic, color) : vector_table(nic, color));
}

std::string tasks_text(const json& tasks) {
    constexpr std::size_t shown = 3;
    std::string all;
    for (std::size_t i = 0; i < std::min(tasks.size(), shown); ++i)
        all += fmt::format("{}{} {}", all.empty() ? "" : ", ", tasks[i].value("comm", ""),
                           tasks[i].value("tid", json()).dump());
    if (tasks.size() > shown) all += fmt::format(" and {} more", tasks.size() - shown);
    return all.empty() ? "-" : all;
}

} // namespace affinityctl
