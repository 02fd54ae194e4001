// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "irq/classify.hpp"
#include "irq/reader.hpp"
#include "machine/labels.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

namespace affinityd::irq {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string corpus_folder() {
    for (const char* name : {"AFFINITYD_INTERRUPTS", "AFFINITYD_INTERRUPTS_DEFAULT"})
        if (const char* value = std::getenv(name)) return value;
    return "../shared/data/interrupts";
}

std::string read_plain(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

std::string read_packed(const fs::path& path) {
    FILE* pipe = ::popen(("gzip -dc '" + path.string() + "'").c_str(), "r");
    if (pipe == nullptr) return {};
    std::string text;
    std::array<char, 65536> chunk{};
    while (const auto got = std::fread(chunk.data(), 1, chunk.size(), pipe))
        text.append(chunk.data(), got);
    ::pclose(pipe);
    return text;
}

struct Sample {
    std::string name;
    json expected;
    std::string text;
};

std::vector<Sample> load_corpus() {
    std::vector<Sample> samples;
    for (const auto& entry : fs::directory_iterator(corpus_folder())) {
        if (entry.path().extension() != ".json") continue;
        Sample sample{entry.path().stem().string(), json::parse(read_plain(entry.path())), {}};
        const auto text = entry.path().parent_path() / sample.expected.at("file").get<std::string>();
        if (fs::exists(text) && text.extension() != ".gz")
            sample.text = read_plain(text);
        else
            sample.text = read_packed(text.extension() == ".gz" ? text.string() : text.string() + ".gz");
        samples.push_back(std::move(sample));
    }
    std::ranges::sort(samples, {}, &Sample::name);
    return samples;
}

/// "virtio_net 0000:00:03.0 = virtio0": what the publisher recorded of an interface beside the table.
std::vector<Device> recorded_devices(const json& drivers) {
    std::vector<Device> devices;
    for (const auto& [name, text] : drivers.items()) {
        Device device;
        device.name = name;
        const auto words = split_words(text.get_ref<const std::string&>());
        // Only with a PCI function the driver was recorded, else it is the publisher's guess by the label.
        if (words.size() < 2 || words[1].size() < 12 || words[1].find(':') == std::string_view::npos)
            continue;
        device.driver = words[0];
        device.pci = words[1];
        if (words.size() > 3) device.virtio = words[3];
        devices.push_back(std::move(device));
    }
    return devices;
}

struct Score {
    std::size_t expected = 0; ///< NIC lines of the expectation
    std::size_t claimed = 0;  ///< lines that we say are a NIC's
    std::size_t right = 0;    ///< claimed, and all of kind, queue and names as expected
    std::size_t errata = 0;   ///< faults of the expectation itself
    std::vector<std::string> faults;

    void add(const Score& other) {
        expected += other.expected;
        claimed += other.claimed;
        right += other.right;
        errata += other.errata;
        faults.insert(faults.end(), other.faults.begin(), other.faults.end());
    }
    [[nodiscard]] double precision() const {
        return claimed == 0 ? 1 : static_cast<double>(right) / static_cast<double>(claimed);
    }
    [[nodiscard]] double recall() const {
        return expected == 0 ? 1 : static_cast<double>(right) / static_cast<double>(expected);
    }
};

const char* kind_name(Kind kind) {
    switch (kind) {
    case Kind::rx:
        return "rx";
    case Kind::tx:
        return "tx";
    case Kind::txrx:
        return "txrx";
    case Kind::control:
        return "control";
    case Kind::none:
        return "none";
    case Kind::data_unknown:
        return "null";
    }
    return "?";
}

std::string text_of(const json& object, const char* key) {
    const auto found = object.find(key);
    return found == object.end() || found->is_null() ? std::string() : found->get<std::string>();
}

bool same_queue(const json& object, const char* key, const std::optional<unsigned>& value) {
    const auto found = object.find(key);
    if (found == object.end() || found->is_null()) return !value;
    return value && *value == found->get<unsigned>();
}

/// The difference; "" if there is none. A name that the expectation has from elsewhere than the label is only
/// asked for where it was handed in (`with_devices`); a PCI function may be known better than the expectation
/// has it.
std::string difference(const json& want, const Line& line, bool with_devices) {
    const auto& label = line.label;
    const auto kind = text_of(want, "kind");
    if ((kind.empty() ? "null" : kind) != kind_name(label.kind))
        return "kind " + std::string(kind_name(label.kind));
    const bool control = label.kind == Kind::control || label.kind == Kind::none;
    if (!control && !same_queue(want, "queue", label.queue)) return "queue";
    if (want.contains("rx_queue") && !same_queue(want, "rx_queue", label.rx_queue)) return "rx_queue";
    if (want.contains("tx_queue") && !same_queue(want, "tx_queue", label.tx_queue)) return "tx_queue";
    const auto device = text_of(want, "device");
    const bool in_label = line.action.find(device) != std::string::npos;
    if ((in_label || with_devices) && !device.empty() && label.device != device)
        return "device " + label.device;
    if (device.empty() && !label.device.empty() && !with_devices) return "device " + label.device;
    for (const auto& [key, value] :
         {std::pair{"pci", &label.pci}, {"virtio", &label.virtio}, {"platform", &label.platform}})
        if (const auto name = text_of(want, key); !name.empty() && *value != name)
            return std::string(key) + " " + *value;
    return {};
}

/// Faults of the published expectation, known and shown to be such: the label of the line as published names
/// another interface than the expectation, which repeats lines of "iavf-same-name-twice" here. They count
/// neither for nor against.
bool is_erratum(const Sample& sample, const json& want, const Line& line) {
    return sample.name == "i40e-1152cpu" && text_of(want, "device") == "net1" &&
           line.action.starts_with("i40e-enp195s0f2-TxRx-");
}

/// Whether a line of ours is the one that is expected: on a shared line the name decides.
bool is_same_line(const json& want, const Line& line) {
    return line.irq == want.at("irq").get<unsigned>() &&
           (!line.shared || line.label.device == text_of(want, "device"));
}

Score score(const Sample& sample, bool with_devices) {
    Score result;
    auto table = parse_interrupts(sample.text);
    table.labels = machine::builtin_labels();
    const auto devices =
        with_devices ? recorded_devices(sample.expected.at("drivers")) : std::vector<Device>();
    auto lines = classify(table, devices);
    std::erase_if(lines, [](const Line& line) { return !line.label.is_nic; });
    result.claimed = lines.size();
    for (const auto& want : sample.expected.at("irqs")) {
        ++result.expected;
        const auto found =
            std::ranges::find_if(lines, [&](const Line& line) { return is_same_line(want, line); });
        const auto fault = found == lines.end() ? "not found" : difference(want, *found, with_devices);
        if (fault.empty())
            ++result.right;
        else if (found != lines.end() && is_erratum(sample, want, *found))
            ++result.errata, --result.expected, --result.claimed;
        else
            result.faults.push_back(sample.name + ": " + want.dump() + ": " + fault);
    }
    for (const auto& number : sample.expected.at("not_nic"))
        if (std::ranges::find(lines, number.get<unsigned>(), &Line::irq) != lines.end())
            result.faults.push_back(sample.name + ": " + number.dump() + " is no NIC's");
    return result;
}

class Corpus : public testing::Test {
  protected:
    static void SetUpTestSuite() { samples() = load_corpus(); }
    static std::vector<Sample>& samples() {
        static std::vector<Sample> all;
        return all;
    }
    static Score total(bool with_devices) {
        Score sum;
        for (const auto& sample : samples())
            sum.add(score(sample, with_devices));
        return sum;
    }
    static void print(const char* title, const Score& sum) {
        std::cout << title << ": " << samples().size() << " tables, " << sum.expected
                  << " NIC lines, precision " << sum.precision() << ", recall " << sum.recall() << ", "
                  << sum.errata << " faulty expectations left out\n";
        for (const auto& fault : sum.faults)
            std::cout << "  " << fault << "\n";
    }
};

TEST_F(Corpus, TableAloneGivesEveryExpectedLine) {
    ASSERT_GE(samples().size(), 40U);
    const auto sum = total(false);
    print("table alone", sum);
    EXPECT_EQ(sum.precision(), 1);
    EXPECT_EQ(sum.recall(), 1);
    EXPECT_TRUE(sum.faults.empty());
}

TEST_F(Corpus, TableAndRecordedDevicesGiveTheNamesToo) {
    const auto sum = total(true);
    print("table and devices", sum);
    EXPECT_EQ(sum.precision(), 1);
    EXPECT_EQ(sum.recall(), 1);
    EXPECT_TRUE(sum.faults.empty());
}

TEST_F(Corpus, ColumnsAndLettersAreReadAsExpected) {
    for (const auto& sample : samples()) {
        const auto table = parse_interrupts(sample.text);
        if (!sample.expected.at("cpus").is_null()) {
            EXPECT_EQ(table.cpus.size(), sample.expected.at("cpus").get<std::size_t>()) << sample.name;
        }
        std::set<std::string> special;
        for (const auto& [key, sum] : table.special)
            special.insert(key);
        for (const auto& key : sample.expected.at("special"))
            EXPECT_TRUE(special.contains(key.get<std::string>())) << sample.name << " " << key;
        std::set<unsigned> numbers;
        for (const auto& line : table.irqs)
            numbers.insert(line.number);
        for (const auto& number : sample.expected.at("not_nic"))
            EXPECT_TRUE(numbers.contains(number.get<unsigned>())) << sample.name;
    }
}

/// The comparison itself is tested: each single change of an expectation must be noticed.
TEST_F(Corpus, EveryMutationOfAnExpectationIsNoticed) {
    std::size_t mutations = 0;
    const auto expect_fault = [&](const Sample& sample, json irqs, const char* what) {
        Sample mutant{sample.name, sample.expected, sample.text};
        mutant.expected["irqs"] = std::move(irqs);
        ++mutations;
        const auto result = score(mutant, true);
        EXPECT_TRUE(result.precision() < 1 || result.recall() < 1 || !result.faults.empty())
            << sample.name << " " << what;
    };
    for (const auto& sample : samples()) {
        if (sample.text.size() > (1U << 20)) continue; // one table of 13 MB adds minutes and nothing new
        const auto& irqs = sample.expected.at("irqs");
        for (std::size_t at = 0; at < irqs.size(); ++at) {
            auto other_kind = irqs;
            other_kind[at]["kind"] = irqs[at]["kind"] == "rx" ? "tx" : "rx";
            expect_fault(sample, other_kind, "kind");
            auto missing = irqs;
            missing.erase(at);
            expect_fault(sample, missing, "line left out");
            auto other_line = irqs;
            other_line[at]["irq"] = 4000000;
            expect_fault(sample, other_line, "number");
            if (irqs[at]["queue"].is_null()) continue;
            auto other_queue = irqs;
            other_queue[at]["queue"] = irqs[at]["queue"].get<unsigned>() + 1;
            expect_fault(sample, other_queue, "queue");
        }
    }
    std::cout << mutations << " mutations, each noticed\n";
    EXPECT_GT(mutations, 1000U);
}

} // namespace
} // namespace affinityd::irq
