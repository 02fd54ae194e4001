// SPDX-License-Identifier: Apache-2.0
// affinityctl --complete WORD ...: for the completions of shells (tools/completion). Verbs, options and their
// values are those of the table of verbs; names are those of this machine.
#include "affinityctl/offline/topology_answer.hpp"
#include "affinityctl/verbs/policy_set.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "base/escape.hpp"
#include "base/text.hpp"
#include "host/root.hpp"
#include "inventory/descriptors.hpp"
#include "netdev/reader.hpp"
#include "policy/reader.hpp"
#include "topology/reader.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace affinityctl {

namespace {

using affinityd::host::Root;
using nlohmann::json;

/// Words that may stand next, each with a line about it.
using Words = std::vector<std::pair<std::string, std::string>>;

void add_policies_to(Words& words, const Globals& globals) {
    const auto files = affinityd::policy::list_folders(usual_folders(globals));
    for (const auto& file : files.value_or(std::vector<std::string>{}))
        words.emplace_back(std::filesystem::path(file).stem().string(), "policy");
}

void add_nics_to(Words& words, const Globals& globals) {
    const auto root = Root::open(globals.root);
    if (!root) return;
    if (const auto nics = affinityd::netdev::read_nics(*root))
        for (const auto& nic : *nics)
            words.emplace_back(nic.name, "interface");
}

void add_processes_to(Words& words, const Globals& globals, const std::vector<int>& pids) {
    if (const auto root = Root::open(globals.root))
        for (const int pid : pids)
            words.emplace_back(std::to_string(pid),
                               root->proc().text(fmt::format("{}/comm", pid)).value_or(""));
}

void add_processes_under_policy_to(Words& words, const Globals& globals) {
    const auto names = ask_daemon_object(globals, "GetNames").value_or(json::object());
    add_processes_to(words, globals, names.value("processes", std::vector<int>()));
}

void add_all_processes_to(Words& words, const Globals& globals) {
    if (const auto root = Root::open(globals.root))
        add_processes_to(words, globals, affinityd::inventory::list_pids(*root).value_or(std::vector<int>{}));
}

void add_policies_and_processes_to(Words& words, const Globals& globals) {
    add_policies_to(words, globals);
    add_processes_under_policy_to(words, globals);
}

void add_subjects_to(Words& words, const Globals& globals) {
    add_policies_and_processes_to(words, globals);
    add_nics_to(words, globals);
}

/// The words of a CPU-set expression (affinityd.policy(5)).
void add_cpu_sets_to(Words& words, const Globals& globals) {
    for (const auto& [word, help] : {std::pair("all", "every online CPU"),
                                     {"isolated", "isolated at boot"},
                                     {"nohz_full", "without a tick"},
                                     {"pods", "that containers have for themselves"},
                                     {"housekeeping", "neither isolated nor nohz_full"},
                                     {"smt", "not the first of their core"},
                                     {"nic", "near the interfaces"}})
        words.emplace_back(word, help);
    const auto root = Root::open(globals.root);
    if (!root) return;
    Words nics;
    add_nics_to(nics, globals);
    for (const auto& [name, help] : nics)
        words.emplace_back("nic:" + name, "near this interface");
    const auto topology = affinityd::topology::read_topology(*root);
    if (!topology) return;
    const auto answer = topology_json(*topology);
    for (const auto& node : answer["numa_nodes"])
        words.emplace_back("node:" + text_of(node, "node"), text(node, "cpus"));
    for (const auto& [key, word] : {std::pair("package_groups", "socket:"), {"llc_groups", "llc:"}})
        for (std::size_t number = 0; number < answer[key].size(); ++number)
            words.emplace_back(word + std::to_string(number), cell(answer[key][number]));
    for (const auto& kind : answer["cpu_kinds"])
        words.emplace_back("kind:" + text(kind, "name"), text(kind, "cpus"));
}

/// By the name of an argument or option.
constexpr std::array<std::pair<std::string_view, void (*)(Words&, const Globals&)>, 10> sources{
    {{"SUBJECT", add_subjects_to},
     {"WHAT", add_policies_and_processes_to},
     {"POLICY", add_policies_to},
     {"WHERE", add_policies_to},
     {"NAME", add_policies_to},
     {"PID", add_all_processes_to},
     {"name", add_nics_to},
     {"EXPR", add_cpu_sets_to},
     {"--policy", add_policies_to},
     {"--nic", add_nics_to}}};

void add_values_of(const CLI::Option& option, const Globals& globals, Words& words) {
    const auto type = option.get_type_name();
    if (const auto begin = type.find('{'); begin != std::string::npos)
        for (const auto value :
             affinityd::split(std::string_view(type).substr(begin + 1, type.find('}') - begin - 1), ','))
            words.emplace_back(value, "");
    const auto name = option.get_name(option.get_positional());
    for (const auto& [known, add] : sources)
        if (known == name) add(words, globals);
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

/// The option of a verb or of all verbs; nullptr: there is none.
const CLI::Option* option_of(const CLI::App* verb, const std::string& word) {
    for (; verb != nullptr; verb = verb->get_parent())
        for (const auto* option : verb->get_options())
            if (!option->get_positional() && option->check_name(word)) return option;
    return nullptr;
}

void add_options_of(const CLI::App* verb, Words& words) {
    for (; verb != nullptr; verb = verb->get_parent())
        for (const auto* option : verb->get_options())
            if (!option->get_lnames().empty() && !option->get_group().empty())
                words.emplace_back("--" + option->get_lnames().front(), option->get_description());
}

/// The place of the last word: its verb, the option that it is the value of, and its number among arguments.
struct Standing {
    const CLI::App* verb;
    const CLI::Option* option = nullptr;
    std::size_t argument = 0;
};

Standing place_of(const CLI::App& all, const std::vector<std::string>& said, Globals& globals) {
    Standing place{&all};
    for (const auto& word : said) {
        if (const auto* option = std::exchange(place.option, nullptr)) {
            if (option->check_lname("root")) globals.root = word;
            if (option->check_lname("runtime-dir")) globals.runtime_dir = word;
        } else if (word.size() > 1 && word.starts_with('-')) {
            const auto* named = option_of(place.verb, word);
            if (named != nullptr && takes_value(*named)) place.option = named;
        } else {
            const auto verbs = place.verb->get_subcommands({});
            const auto found =
                std::ranges::find(verbs, word, [](const CLI::App* verb) { return verb->get_name(); });
            if (found == verbs.end())
                ++place.argument;
            else
                place = {*found};
        }
    }
    return place;
}

/// An argument that may be given again takes all that follow.
void add_argument_of(const Standing& place, const Globals& globals, Words& words) {
    std::size_t number = 0;
    for (const auto* option : place.verb->get_options())
        if (option->get_positional() && (number++ == place.argument ||
                                         (number <= place.argument && option->get_items_expected_max() > 1)))
            add_values_of(*option, globals, words);
}

} // namespace

int complete(const CLI::App& all, Globals globals, std::vector<std::string> words) {
    if (words.empty()) return exit_usage;
    auto current = std::move(words.back());
    words.pop_back();
    const auto place = place_of(all, words, globals);
    Words next;
    std::string before; // of a CPU-set expression: up to the last operator
    if (place.option != nullptr) {
        add_values_of(*place.option, globals, next);
    } else if (current.starts_with('-')) {
        add_options_of(place.verb, next);
    } else {
        if (place.argument == 0)
            for (const auto* verb : place.verb->get_subcommands({}))
                next.emplace_back(verb->get_name(), verb->get_description());
        add_argument_of(place, globals, next);
        if (place.verb->get_name() == "cpus") before = current.substr(0, current.find_last_of("&|!(") + 1);
    }
    for (const auto& [word, help] : next)
        // bash inserts words as they are: one with a character of the shell is left out.
        if ((before + word).starts_with(current) && std::ranges::none_of(word, [](char one) {
                return std::string_view("\"'$`\\;&|<>(){}[]*?!~# \t\r\n").contains(one);
            }))
            fmt::print("{}\t{}\n", affinityd::escaped(before + word), affinityd::escaped(help));
    return exit_ok;
}

} // namespace affinityctl
