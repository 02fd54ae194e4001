// SPDX-License-Identifier: Apache-2.0
#include "machine/candidates.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <unordered_map>

namespace affinityd::machine {

namespace {

using irq::Irq;
using netdev::Nic;

using Places = std::vector<std::size_t>; ///< of interfaces

/// Finds which of many words a text holds.
class WordIndex {
  public:
    void add(std::string_view word, std::size_t nic) {
        if (word.empty()) return;
        words_[word].push_back(nic);
        auto& lengths = lengths_[first(word)];
        if (std::ranges::find(lengths, word.size()) == lengths.end()) lengths.push_back(word.size());
    }
    /// Those of the words in the text.
    void find_in(std::string_view text, Places& found) const {
        for (; !text.empty(); text.remove_prefix(1))
            for (const auto length : lengths_[first(text)])
                if (length <= text.size())
                    if (const auto word = words_.find(text.substr(0, length)); word != words_.end())
                        found.insert(found.end(), word->second.begin(), word->second.end());
    }

  private:
    static unsigned char first(std::string_view text) { return static_cast<unsigned char>(text.front()); }
    std::unordered_map<std::string_view, Places> words_;
    /// Of the words that begin with a character.
    std::array<std::vector<std::size_t>, std::numeric_limits<unsigned char>::max() + 1> lengths_;
};

/// Whose line one is, by what is known of it.
struct Index {
    std::unordered_map<unsigned, Places> numbers;
    std::unordered_map<std::string_view, Places> functions; ///< of PCI
    WordIndex words;
};

Index make_index(std::span<const Nic> nics) {
    Index index;
    for (std::size_t i = 0; i < nics.size(); ++i) {
        const auto& nic = nics[i];
        for (const unsigned number : nic.msi_irqs)
            index.numbers[number].push_back(i);
        if (nic.legacy_irq) index.numbers[*nic.legacy_irq].push_back(i);
        for (const auto& queue : nic.queues)
            if (queue.irq) index.numbers[*queue.irq].push_back(i);
        if (!nic.pci.empty()) index.functions[nic.pci].push_back(i);
        for (const auto* word : {&nic.name, &nic.pci, &nic.virtio})
            index.words.add(*word, i);
        if (nic.pci.empty() && nic.virtio.empty()) // lines of SoC devices have the platform device's name
            index.words.add(std::string_view(nic.device).substr(nic.device.rfind('/') + 1), i);
    }
    return index;
}

void add_all(Places& places, const auto& map, const auto& key) {
    if (const auto found = map.find(key); found != map.end())
        places.insert(places.end(), found->second.begin(), found->second.end());
}

} // namespace

std::vector<std::vector<const Irq*>> possible_lines(std::span<const Nic> nics,
                                                    const irq::InterruptTable& table) {
    const auto index = make_index(nics);
    std::vector<std::vector<const Irq*>> lines(nics.size());
    Places places;
    for (const auto& line : table.irqs) {
        places.clear();
        add_all(places, index.numbers, line.number);
        add_all(places, index.functions, std::string_view(line.pci));
        for (const auto& action : line.actions)
            index.words.find_in(action, places);
        for (const auto place : places)
            if (auto& own = lines[place]; own.empty() || own.back() != &line) own.push_back(&line);
    }
    return lines;
}

} // namespace affinityd::machine
