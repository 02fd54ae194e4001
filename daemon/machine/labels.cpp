// SPDX-License-Identifier: Apache-2.0
#include "machine/labels.hpp"

#include "labels_text.hpp"
#include "policy/fields.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace affinityd::machine {

namespace {

using irq::Kind;
using irq::LabelPattern;
using policy::Diagnostic;
using policy::Fields;
using policy::Key;
using policy::Level;
using policy::Node;
using policy::Report;
using policy::Type;

constexpr const char* folder = "affinityd/labels.d";

constexpr std::array<std::string_view, 7> kind_names{"rx",   "tx",    "rxtx",  "control",
                                                     "data", "other", "halves"};
constexpr std::array kinds{Kind::rx,           Kind::tx,   Kind::txrx,        Kind::control,
                           Kind::data_unknown, Kind::none, Kind::data_unknown};
constexpr std::string_view halves = kind_names.back();

// clang-format off
constexpr std::array top_keys{
    Key{Level::other, "version", Type::version, {}, "1", "", "1", "The version of this language."},
    Key{Level::other, "labels", Type::described, {}, "", "a list of forms of labels", "[{label: \"{IF}_rxq{N}\", kind: rx}]", "Forms of labels, special ones before general ones."},
};
constexpr std::array form_keys{
    Key{Level::other, "label", Type::text, {}, "", "", "\"{IF}_rxq{N}\"", "The label with placeholders."},
    Key{Level::other, "kind", Type::choice, kind_names, "", "", "rx", "The purpose of the interrupt."},
    Key{Level::other, "alone", Type::choice, kind_names, "", "", "rxtx", "The kind where no line of another form carries the device's data."},
    Key{Level::other, "driver", Type::text, {}, "", "", "hinic", "The driver that the form belongs to."},
    Key{Level::other, "first", Type::integer, {}, "0", "", "1", "The number in the label of the kernel's queue 0.", 0, 0, 65535},
    Key{Level::other, "only", Type::boolean, {}, "false", "", "true", "The form counts for interfaces of this driver only."},
    Key{Level::other, "sure", Type::boolean, {}, "true", "", "false", "The form alone says that the line is a network interface's."},
    Key{Level::other, "sub_function", Type::boolean, {}, "false", "", "true", "The line is of sub-functions of the PCI function."},
};
// clang-format on

void read_form(const Node& node, std::vector<LabelPattern>& into, Report& report) {
    if (node.kind != Node::Kind::map)
        return report.error(node, "an element of 'labels' must be a map of keys and values",
                            "write {label: \"{IF}_rxq{N}\", kind: rx}");
    const Fields fields(node, form_keys, report);
    LabelPattern form;
    const auto* label = fields.find("label");
    if (label == nullptr) return report.error(node, "the form has no 'label'");
    fields.read("label", form.label);
    if (const auto fault = irq::LabelTable::check(form.label))
        report.error_inside(*label->value, fault->offset, fault->length, "'label': " + fault->message);
    const auto* kind = fields.find("kind");
    if (kind == nullptr) return report.error(node, "the form has no 'kind'");
    std::size_t number = 0;
    form.is_halves = policy::read_choice(*kind, number, report) && kind_names[number] == halves;
    form.kind = kinds[number];
    if (const auto* alone = fields.find("alone"))
        if (policy::read_choice(*alone, number, report)) form.alone = kinds[number];
    fields.read("driver", form.driver);
    int first = 0;
    fields.read("first", first);
    form.first = static_cast<unsigned>(first);
    fields.read("only", form.only);
    fields.read("sure", form.is_sure);
    fields.read("sub_function", form.sub_function);
    if (form.only && form.driver.empty())
        report.error(*fields.find("only")->value, "'only' needs a 'driver'");
    into.push_back(std::move(form));
}

/// The forms of a text without errors.
std::vector<LabelPattern> read_forms(const std::string& path, std::string_view text,
                                     std::vector<Diagnostic>& findings) {
    Report report(path, text, findings);
    std::vector<LabelPattern> forms;
    if (const auto tree = report.read_root(true)) {
        const Fields fields(*tree, top_keys, report);
        const auto* version = fields.find("version");
        if (version != nullptr && version->value->text != "1") policy::refuse_type(*version, report);
        const auto* labels = fields.find("labels");
        if (labels != nullptr && labels->value->kind != Node::Kind::list)
            policy::refuse_type(*labels, report);
        else if (labels != nullptr)
            for (const auto& node : labels->value->items)
                read_form(node, forms, report);
    }
    return report.errors() > 0 ? std::vector<LabelPattern>{} : forms;
}

} // namespace

std::shared_ptr<const irq::LabelTable> builtin_labels() {
    static const auto table = [] {
        std::vector<Diagnostic> none; // tests/machine sees that it has no findings
        return std::make_shared<const irq::LabelTable>(read_forms("labels.yaml", labels_text, none));
    }();
    return table;
}

Labels read_labels(const host::Root& root) {
    Labels labels{builtin_labels(), {}};
    const auto fault = [&](const std::string& path, std::string message) {
        labels.findings.push_back({.at = {path, 1, 1}, .message = std::move(message)});
    };
    const auto names = root.etc().list(folder);
    const std::string shown = (root.is_live() ? "" : root.path()) + "/etc/" + folder;
    if (!names) {
        fault(shown, names.error().to_string());
        return labels;
    }
    std::vector<LabelPattern> forms;
    for (const auto& name : *names) {
        if (name.starts_with('.') || !name.ends_with(".yaml")) continue;
        const auto path = shown + "/" + name;
        const auto text = root.etc().read(std::string(folder) + "/" + name, policy::max_document_bytes + 1);
        if (!text) fault(path, text.error().to_string());
        if (!text || !*text) continue;
        std::ranges::move(read_forms(path, **text, labels.findings), std::back_inserter(forms));
    }
    if (forms.empty()) return labels;
    std::ranges::copy(labels.table->patterns(), std::back_inserter(forms));
    labels.table = std::make_shared<const irq::LabelTable>(std::move(forms));
    return labels;
}

std::vector<Diagnostic> check_labels(const std::string& path, std::string_view text) {
    std::vector<Diagnostic> findings;
    (void)read_forms(path, text, findings);
    return findings;
}

bool has_labels(std::string_view text) { return ("\n" + std::string(text)).contains("\nlabels:"); }

} // namespace affinityd::machine
