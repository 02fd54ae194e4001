// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/client/metrics.hpp"

#include "affinityctl/client/answers.hpp"
#include "affinityctl/client/call.hpp"
#include "base/escape.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace affinityctl {

using nlohmann::json;

namespace {

constexpr std::size_t most_policies = 128, most_nics = 64, longest_label = 64;
constexpr std::string_view total_suffix = "_total";

// clang-format off
namespace fields {
constexpr Field samples[] = {
    {"name", "", "text", "the metric's name, or that with _bucket, _count or _sum"},
    {"labels", "", "text{}", "its labels"},
    {"value", "", "number", "its value"},
};
constexpr Field metrics[] = {
    {"name", "", "text", "its name"},
    {"type", "", "text", "gauge, counter or histogram"},
    {"help", "", "text", "its meaning"},
    {"samples", "", "object[]", "its samples", samples},
};
// Figures that are counted here.
constexpr Field machine_figures[] = {
    {"up", "", "flag", "the daemon answers", {}, nullptr, "up"},
    {"files_with_errors", "", "count", "policy and settings files that are not in force as they stand", {}, nullptr, "files_with_errors"},
    {"left_out", "", "count", "policies and interfaces that have no metrics, as there are too many, or as their names begin like those of others", {}, nullptr, "left_out"},
};
constexpr Field build_figures[] = {
    {"build_info", "", "count", "the version of the daemon", {}, nullptr, "build_info"},
};
constexpr Field thread_figures[] = {
    {"refused", "", "count", "threads whose change was refused", {}, nullptr, "threads_refused"},
    {"contended", "", "count", "threads that another program keeps changing", {}, nullptr, "threads_contended"},
    {"immovable", "", "count", "threads that the kernel never moves", {}, nullptr, "threads_immovable"},
};
constexpr Field queue_figures[] = {
    {"wanted", "", "count", "queues under policy", {}, nullptr, "queues_wanted"},
    {"in_place", "", "count", "queues that are in their place, with all interrupts and steering", {}, nullptr, "queues_in_place"},
    {"refused", "", "count", "queues whose change was refused", {}, nullptr, "queues_refused"},
    {"drifting", "", "count", "queues that the next pass puts right", {}, nullptr, "queues_drifting"},
    {"contended", "", "count", "queues that another program keeps changing", {}, nullptr, "queues_contended"},
    {"immovable", "", "count", "queues that the kernel never moves", {}, nullptr, "queues_immovable"},
};
constexpr Field nic_figures[] = {
    {"cpus", "", "count", "distinct CPUs where the interrupts of its queues go", {}, nullptr, "interrupt_cpus"},
};
constexpr Field local_figures[] = {
    {"same", "", "number", "the part of packets that is read on the core where they arrive, 0 to 1", {}, nullptr, "local_ratio"},
    {"chance", "", "number", "the part that chance would give", {}, nullptr, "local_ratio_by_chance"},
};
constexpr Field health_figures[] = {
    {"health", "", "flag", "the verdict of affinityctl status: ok, settling or attention", {}, nullptr, "health"},
};
constexpr Field problem_figures[] = {
    {"problems", "", "count", "problems that affinityctl status shows", {}, nullptr, "problems"},
};
constexpr Field throughput_figures[] = {
    {"bytes_per_second", "", "number", "throughput of the last measurement", {}, nullptr, "bytes_per_second"},
};
constexpr Field verdict_figures[] = {
    {"verdict", "", "flag", "the last measurement against those before: down, up, steady or unknown", {}, nullptr, "verdict"},
};
} // namespace fields
// clang-format on

/// The metrics so far, in the order in which they were first met.
class Metrics {
  public:
    /// Adds a sample for each field that is a metric and has a number or flag. `prefix`: "policy_".
    void add(Fields fields, const json& values, const std::string& prefix = {},
             const json& labels = json::object()) {
        for (const auto& field : fields) {
            const auto value = member(values, field.key);
            if (*field.metric == '\0' || !(value.is_number() || value.is_boolean())) continue;
            const std::string name = "affinityd_" + prefix + field.metric;
            samples(name, name.ends_with(total_suffix) ? "counter" : "gauge", field.help)
                .push_back(
                    sample(name, labels, value.is_boolean() ? json(value.get<bool>() ? 1 : 0) : value));
        }
    }
    void add_histogram(const std::string& name, const char* help, const json& latencies) {
        if (!latencies.is_object()) return;
        auto& into = samples(name, "histogram", help);
        for (const auto& bucket : list(latencies, "buckets")) {
            const auto bound = member(bucket, "up_to_seconds");
            const auto text = bound.is_number() ? fmt::format("{:#}", bound.get<double>()) : "+Inf";
            into.push_back(sample(name + "_bucket", {{"le", text}}, count(bucket, "count")));
        }
        into.push_back(sample(name + "_count", json::object(), count(latencies, "count")));
        const auto seconds = member(latencies, "seconds");
        into.push_back(sample(name + "_sum", json::object(), seconds.is_number() ? seconds : json(0)));
    }
    [[nodiscard]] json take() { return std::move(all_); }

  private:
    static json sample(const std::string& name, const json& labels, json value) {
        return record(fields::samples, {name, labels, std::move(value)});
    }
    json& samples(const std::string& name, const char* type, const char* help) {
        const auto [found, is_new] = places_.try_emplace(name, all_.size());
        if (is_new) all_.push_back(record(fields::metrics, {name, type, help, json::array()}));
        return all_[found->second]["samples"];
    }

    json all_ = json::array();
    std::map<std::string, std::size_t> places_;
};

/// Names that have labels of their own.
class Labels {
  public:
    explicit Labels(std::size_t most) : most_(most) {}
    /// A line of UTF-8 for a name; "": it has no metrics.
    std::string of(const std::string& name) {
        auto label = affinityd::escaped(name);
        auto length = std::min(label.size(), longest_label);
        while (length < label.size() && affinityd::is_utf8_continuation(label[length]))
            --length;
        label.resize(length);
        if (label.empty() || known_.size() >= most_ || !known_.insert(label).second) {
            ++left_out;
            return {};
        }
        return label;
    }
    std::size_t left_out = 0;

  private:
    std::size_t most_;
    std::set<std::string> known_;
};

using States = std::map<std::string, std::size_t, std::less<>>;

std::size_t number_of(const States& states, std::string_view state) {
    const auto found = states.find(state);
    return found == states.end() ? 0 : found->second;
}

/// Threads of each policy, by their state.
std::map<std::string, States> thread_states(const json& status) {
    std::map<std::string, States> found;
    for (const auto& process : list(status, "processes"))
        for (const auto& thread : list(process, "threads"))
            ++found[text(process, "policy")][text(thread, "state")];
    return found;
}

void add_queues(const QueueCount& queues, const std::string& prefix, const json& labels, Metrics& into) {
    const auto in = [&](const char* state) { return number_of(queues.elsewhere, state); };
    into.add(fields::queue_figures,
             record(fields::queue_figures, {queues.wanted, queues.held, in("refused"), in("not in place"),
                                            in("fought over"), in("immovable")}),
             prefix, labels);
}

/// None where too few reads were seen, as on the screen of `status`.
void add_local(const json& local, const json& labels, Metrics& into) {
    if (count(local, "samples") < fewest_samples) return;
    into.add(fields::local_figures,
             record(fields::local_figures,
                    {member(member(local, "same"), "core"), member(member(local, "chance"), "core")}),
             "policy_", labels);
}

/// The number of policies that have none.
std::size_t add_policies(const json& status, Metrics& into) {
    Labels known(most_policies);
    auto threads = thread_states(status);
    auto queues = queues_by(status, "policy");
    for (const auto& policy : list(status, "policies")) {
        const auto name = text(policy, "name");
        const auto label = known.of(name);
        if (label.empty()) continue;
        const json labels{{"policy", label}};
        const auto in = [&](const char* state) { return number_of(threads[name], state); };
        into.add(policy_fields, policy, "policy_", labels);
        into.add(fields::thread_figures,
                 record(fields::thread_figures, {in("refused"), in("fought over"), in("immovable")}),
                 "policy_", labels);
        add_queues(queues[name], "policy_", labels, into);
        add_local(member(policy, "local"), labels, into);
        into.add(accept_fields, member(policy, "accepts"), "policy_", labels);
        into.add(interruption_fields, member(policy, "interruptions"), "policy_", labels);
        for (const auto& cost : list(status, "costs"))
            if (text(cost, "policy") == name) into.add(cost_fields, cost, "policy_", labels);
    }
    return known.left_out;
}

std::size_t add_nics(const json& status, Metrics& into) {
    Labels known(most_nics);
    for (const auto& [name, queues] : queues_by(status, "nic")) {
        if (name.empty()) continue; // interrupts of other devices
        const auto label = known.of(name);
        if (label.empty()) continue;
        const json labels{{"nic", label}};
        add_queues(queues, "nic_", labels, into);
        into.add(fields::nic_figures, record(fields::nic_figures, {queues.cpus.count()}), "nic_", labels);
    }
    return known.left_out;
}

void add_health(const json& status, Metrics& into) {
    for (const char* health : {"ok", "settling", "attention"})
        into.add(fields::health_figures, record(fields::health_figures, {text(status, "health") == health}),
                 {}, {{"health", health}});
    std::map<std::pair<std::string, std::string>, std::size_t> problems; // by kind and severity
    for (const auto& problem : list(status, "problems"))
        ++problems[{text(problem, "kind"), text(problem, "severity")}];
    for (const auto& [its, number] : problems)
        into.add(fields::problem_figures, record(fields::problem_figures, {number}), {},
                 {{"kind", affinityd::escaped(its.first)}, {"severity", its.second}});
}

void add_measurement(const json& measurement, Metrics& into) {
    if (!measurement.is_object()) return;
    const auto last = member(measurement, "last");
    const json labels{{"model", affinityd::escaped(text(last, "model")).substr(0, longest_label)}};
    into.add(record_fields, last, "measurement_", labels);
    if (const auto bits = member(last, "bits_per_second"); bits.is_number())
        into.add(fields::throughput_figures, record(fields::throughput_figures, {bits.get<double>() / 8}),
                 "measurement_", labels);
    const auto direction = text(member(measurement, "trend"), "direction");
    for (const char* verdict : {"down", "up", "steady", "unknown"}) {
        auto its = labels;
        its["verdict"] = verdict;
        into.add(fields::verdict_figures, record(fields::verdict_figures, {direction == verdict}),
                 "measurement_", its);
    }
}

std::string label_value(std::string_view text) {
    std::string value = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') value += '\\';
        value += c;
    }
    return value + '"';
}

std::string sample_line(const json& sample) {
    std::string labels;
    const auto its = member(sample, "labels");
    for (const auto& [key, value] : its.items())
        labels += (labels.empty() ? "{" : ",") + key + "=" + label_value(value.get<std::string>());
    return text(sample, "name") + labels + (labels.empty() ? " " : "} ") + sample.at("value").dump() + "\n";
}

} // namespace

const Fields metric_fields = fields::metrics;

std::expected<json, CallError> status_for_metrics(const Globals& globals) {
    constexpr std::chrono::seconds patience{8}; // scrapes give up after ten
    const auto answer = call_daemon(globals, "GetStatus", {}, {.time = patience, .may_ask = false});
    if (!answer) return std::unexpected(answer.error());
    auto status = json::parse(*answer, nullptr, false);
    if (status.is_object()) return status;
    return std::unexpected(
        CallError{exit_failure, "the daemon's answer cannot be read: is it of another version?"});
}

json metrics_of(const json& status) {
    Metrics metrics;
    const bool is_up = status.is_object();
    if (!is_up) {
        const json none(json::value_t::discarded);
        metrics.add(fields::machine_figures, record(fields::machine_figures, {false, none, none}));
        return metrics.take();
    }
    metrics.add(fields::build_figures, record(fields::build_figures, {1}), {},
                {{"version", affinityd::escaped(text(status, "version")).substr(0, longest_label)}});
    metrics.add(status_answer, status);
    metrics.add_histogram("affinityd_event_to_pinned_seconds",
                          "times from an event of the kernel until its change is made",
                          member(status, "event_to_pinned"));
    add_health(status, metrics);
    auto left_out = add_policies(status, metrics);
    left_out += add_nics(status, metrics);
    add_measurement(member(status, "measurement"), metrics);
    const auto load = member(status, "load");
    metrics.add(
        fields::machine_figures,
        record(fields::machine_figures,
               {true, list(load, "faults").size() + (text(load, "refused").empty() ? 0U : 1U), left_out}));
    return metrics.take();
}

std::string metrics_text(const json& metrics, MetricsFormat format) {
    const bool is_open = format == MetricsFormat::open_metrics;
    std::string lines;
    for (const auto& metric : metrics) {
        auto name = text(metric, "name");
        const auto type = text(metric, "type");
        if (is_open && type == "counter") name.resize(name.size() - total_suffix.size());
        lines += fmt::format("# TYPE {} {}\n# HELP {} {}\n", name, type, name, text(metric, "help"));
        for (const auto& sample : list(metric, "samples"))
            lines += sample_line(sample);
    }
    return is_open ? lines + "# EOF\n" : lines;
}

} // namespace affinityctl
