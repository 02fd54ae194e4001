// SPDX-License-Identifier: Apache-2.0
#include "state/granted_masks.hpp"

#include "base/hash.hpp"
#include "base/text.hpp"
#include "state/journal_marks.hpp"
#include "state/place.hpp"
#include "state/record.hpp"
#include "state/set_aside.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <random>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

namespace affinityd::state {

namespace {

constexpr std::size_t largest_file = 256U << 20;
constexpr std::size_t digits = 16;
constexpr char task_mark = 't';
constexpr char queue_mark = 'q';

bool is_of_task(const machine::Subject& subject) {
    return std::holds_alternative<machine::TaskMask>(subject);
}

constexpr std::uint64_t used = ~std::uint64_t{0} >> 1U; ///< bits of a number

std::uint64_t number_of(const std::string& subject, const machine::Setting& setting) {
    return fnv1a_64(subject + '\t' + setting.to_string()) & used;
}

/// By the subject's identity; and by its place, if it has one, in case it is met under another name. What is
/// only a name does not count: an interface that takes it may have set the same mask itself.
std::vector<std::uint64_t> numbers_of(const machine::Subject& subject, const machine::Setting& setting) {
    std::vector<std::uint64_t> numbers;
    if (!has_only_name(subject)) numbers.push_back(number_of(identity_of(subject), setting));
    for (const auto& text : {place_of(subject), folder_of(subject)})
        if (!text.empty()) numbers.push_back(number_of(text, setting));
    return numbers;
}

std::string line_of(char mark, std::uint64_t number) { return fmt::format("{}{:016x}\n", mark, number); }

std::optional<std::uint64_t> number_in(std::string_view line) {
    std::uint64_t number = 0;
    if (line.size() != digits + 1 || (line[0] != task_mark && line[0] != queue_mark)) return std::nullopt;
    const auto [end, code] = std::from_chars(line.data() + 1, line.data() + line.size(), number, 16);
    if (code != std::errc{} || end != line.data() + line.size()) return std::nullopt;
    return number & used;
}

std::uint64_t random_number() {
    std::random_device device;
    return std::uint64_t{device()} << 32U | device();
}

} // namespace

NumberSet::Key::Key() : mask_(random_number() & used), factor_(random_number() | 1U), inverse_(factor_) {
    for (int round = 0; round < 5; ++round) // Newton: each doubles the bits that are right, three at first
        inverse_ *= 2 - factor_ * inverse_;
}

std::uint64_t NumberSet::Key::mixed(std::uint64_t number) const {
    const auto product = ((number ^ mask_) * factor_) & used;
    return product ^ product >> 32U;
}

std::uint64_t NumberSet::Key::number(std::uint64_t mixed) const {
    return (((mixed ^ mixed >> 32U) * inverse_) & used) ^ mask_;
}

NumberSet::NumberSet(std::size_t most) : most_(most) {}

bool NumberSet::is_in(const SlotTable& table, std::uint64_t mixed) {
    const auto high = static_cast<std::uint32_t>(mixed >> 32U);
    return table.find(static_cast<std::uint32_t>(mixed), [high](auto slot) { return slot == high; }) !=
           SlotTable::none;
}

bool NumberSet::add(std::uint64_t number) {
    if (contains(number)) return false;
    if (young_.size() >= most_ / 2) {
        old_ = std::move(young_);
        young_ = {};
    }
    const auto mixed = key_.mixed(number);
    young_.insert(static_cast<std::uint32_t>(mixed), static_cast<std::uint32_t>(mixed >> 32U));
    return true;
}

void NumberSet::erase(std::uint64_t number) {
    const auto mixed = key_.mixed(number);
    for (auto* table : {&young_, &old_})
        if (is_in(*table, mixed))
            table->erase(static_cast<std::uint32_t>(mixed), static_cast<std::uint32_t>(mixed >> 32U));
}

Result<GrantedMasks> GrantedMasks::open(const std::string& path, std::optional<Error>& fault) {
    GrantedMasks masks(path);
    auto found = read_or_set_aside(path, largest_file);
    if (!found) return std::unexpected(found.error());
    fault = std::move(found->fault);
    const auto boot = boot_of(found->text.value_or(""));
    if (boot == FileBoot::damaged) fault = header_damage(path);
    if (boot == FileBoot::another) {
        found->text.reset();
        ::unlink(path.c_str()); // also where the disk is full
    }
    const auto present = found->text.value_or("");
    masks.replay(present);
    std::string lines;
    for (masks.left_ = masks.cells(); masks.left_ > 0;)
        lines += masks.next_lines();
    if (!masks.file_.replace(lines))
        if (auto done = masks.file_.use_as_it_is(present); !done) return std::unexpected(done.error());
    return masks;
}

/// Lines that are torn are left out: what they said is lost.
void GrantedMasks::replay(std::string_view text) {
    for (const auto line : split(text, '\n'))
        if (const auto number = number_in(line)) (line[0] == task_mark ? tasks_ : queues_).add(*number);
}

NumberSet& GrantedMasks::of(const machine::Subject& subject) {
    return is_of_task(subject) ? tasks_ : queues_;
}

Result<void> GrantedMasks::note(const machine::Subject& subject, const machine::Setting& setting) {
    for (const auto number : numbers_of(subject, setting)) {
        if (of(subject).contains(number)) continue;
        if (auto done = file_.append(line_of(is_of_task(subject) ? task_mark : queue_mark, number)); !done)
            return done;
        of(subject).add(number);
    }
    return {};
}

bool GrantedMasks::contains(const machine::Subject& subject, const machine::Setting& setting) const {
    const auto& numbers = is_of_task(subject) ? tasks_ : queues_;
    return numbers.size() > 0 && std::ranges::any_of(numbers_of(subject, setting),
                                                     [&](auto number) { return numbers.contains(number); });
}

void GrantedMasks::forget(const machine::Subject& subject, const machine::Setting& setting) {
    for (const auto number : numbers_of(subject, setting))
        of(subject).erase(number);
}

/// Of the numbers in these cells, those of tasks first.
std::string GrantedMasks::lines(std::size_t from, std::size_t to) const {
    std::string lines;
    const auto tasks = tasks_.cells();
    tasks_.for_cells(from, to, [&](auto number) { lines += line_of(task_mark, number); });
    if (to > tasks)
        queues_.for_cells(from > tasks ? from - tasks : 0, to - tasks,
                          [&](auto number) { lines += line_of(queue_mark, number); });
    return lines;
}

void GrantedMasks::begin_rewrite() {
    file_.begin_rewrite();
    cells_ = left_ = cells();
}

/// From the end: what goes over to a lower cell is still to come. The oldest come first, as replay() takes
/// them.
std::string GrantedMasks::next_lines() {
    constexpr std::size_t at_a_time = 512;
    const auto from = left_ - std::min(left_, at_a_time);
    auto next = lines(from, left_);
    left_ = from;
    return next;
}

bool GrantedMasks::rewrite_some() {
    if (cells() != cells_) cells_ = left_ = cells();
    file_.add_to_rewrite(next_lines());
    return left_ == 0;
}

} // namespace affinityd::state
