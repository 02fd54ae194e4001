// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "irq/irq.hpp"

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::irq {

/// A form of label: a row of labels.yaml, or of a file in labels.d.
struct LabelPattern {
    /// Matched over the whole label, without regard to the case of letters. {IF}: an interface's name; {NIC}:
    /// the same, but only if it looks like one or is known to be one; {PCI}: "0000:41:00.0"; {VIRTIO}:
    /// "virtio3"; {PLATFORM}: "15100000.ethernet"; {N}: queue; {T}: transmit queue; {X}: any other number.
    std::string label;
    Kind kind = Kind::none;
    std::optional<Kind> alone{}; ///< the kind where no line of another form carries the device's data
    std::string driver{};        ///< "": several drivers use the form
    unsigned first = 0;          ///< number in the label of the kernel's queue 0
    bool only = false;           ///< counts for interfaces of this driver only
    bool is_sure = true;         ///< false: other lines or the device tree must say that it is a NIC's
    bool is_halves = false;    ///< of the numbers the lower half are transmit queues, the upper half receive
    bool sub_function = false; ///< a line of sub-functions of the PCI function, not of itself

    friend bool operator==(const LabelPattern&, const LabelPattern&) = default;
};

/// Why a pattern is none, and where: bytes of its text.
struct PatternFault {
    std::size_t offset = 0, length = 1;
    std::string message;
};

/// The first pattern that fits a label, and what it read.
struct LabelMatch {
    const LabelPattern* pattern = nullptr;
    Label label;
};

/// All forms, special ones before general ones: the first that fits counts.
class LabelTable {
  public:
    static constexpr std::size_t max_pattern = 128; ///< bytes; kernel labels are shorter

    /// No value: it is a pattern.
    [[nodiscard]] static std::optional<PatternFault> check(std::string_view label);
    /// `patterns` have been checked.
    explicit LabelTable(std::vector<LabelPattern> patterns) : patterns_(std::move(patterns)) {}

    /// `known`: names of interfaces and platform devices. `driver`: of the interface that the line belongs
    /// to, "" if it is not known. `any_name`: {NIC} is as {IF}. The match refers to this table.
    [[nodiscard]] std::optional<LabelMatch> match(std::string_view action,
                                                  const std::vector<std::string>& known,
                                                  std::string_view driver = {}, bool any_name = false) const;
    [[nodiscard]] const std::vector<LabelPattern>& patterns() const { return patterns_; }

  private:
    std::vector<LabelPattern> patterns_;
};

/// Names that the kernel, udev and distributions give to Ethernet interfaces: eth0, enp5s0f1np1, eno1, ens3,
/// enx..., em1, p2p1, lan1, wan0, net1, ib0. Wireless and virtual names are none. Source:
/// systemd.net-naming-scheme(7).
[[nodiscard]] bool looks_like_interface(std::string_view name);

} // namespace affinityd::irq
