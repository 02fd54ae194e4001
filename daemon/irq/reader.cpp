// SPDX-License-Identifier: Apache-2.0
#include "irq/reader.hpp"

#include "base/text.hpp"
#include "host/root.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace affinityd::irq {

namespace {

constexpr std::size_t max_columns =
    1U << 16; ///< more CPUs than any kernel can be built for; bounds hostile text

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\0'; }

/// Reads a line from its front, word by word, without copying.
class Cursor {
  public:
    explicit Cursor(std::string_view line) : rest_(line) {}

    void skip_blanks() {
        std::size_t at = 0;
        while (at < rest_.size() && is_blank(rest_[at]))
            ++at;
        rest_.remove_prefix(at);
    }

    /// Takes the next word if it is a number. A number too large for 64 bits counts as
    /// the largest.
    std::optional<std::uint64_t> number() {
        skip_blanks();
        std::uint64_t value = 0;
        const auto [end, status] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
        const auto length = static_cast<std::size_t>(end - rest_.data());
        if (length == 0 || (length < rest_.size() && !is_blank(rest_[length]))) return std::nullopt;
        rest_.remove_prefix(length);
        return status == std::errc::result_out_of_range ? std::numeric_limits<std::uint64_t>::max() : value;
    }

    std::string_view word() {
        skip_blanks();
        std::size_t at = 0;
        while (at < rest_.size() && !is_blank(rest_[at]))
            ++at;
        const auto taken = rest_.substr(0, at);
        rest_.remove_prefix(at);
        return taken;
    }

    [[nodiscard]] std::string_view rest() const { return rest_; }

  private:
    std::string_view rest_;
};

/// "IR-PCI-MSI-edge", "xen-dyn-event": chip and flow in one word, as kernels before 3.19 and Xen print them.
bool ends_in_flow(std::string_view word) {
    static constexpr std::array<std::string_view, 8> flows = {
        "-edge", "-level", "-fasteoi", "-event", "-percpu", "-simple", "-fasteoi_ack", "-fasteoi_mask"};
    return std::ranges::any_of(flows,
                               [&](auto flow) { return word.size() > flow.size() && word.ends_with(flow); });
}

/// "524288-edge", "16-fasteoi": hardware number and flow; "-event": flow after an empty number.
bool is_hwirq_with_flow(std::string_view word) {
    std::size_t at = 0;
    while (at < word.size() && is_digit(word[at]))
        ++at;
    return at + 1 < word.size() && word[at] == '-' &&
           word.substr(at + 1).find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string_view::npos;
}

bool is_number(std::string_view word) { return !word.empty() && std::ranges::all_of(word, is_digit); }

/// Between the hardware number and the handlers: the trigger, the flow as a word of its own, "oob" of
/// Xenomai's kernels alone or before the flow. Source: kernel/irq/proc.c, show_interrupts.
bool is_type(std::string_view word) {
    static constexpr std::array<std::string_view, 6> words = {"Level", "Edge",  "None",
                                                              "edge",  "level", "oob"};
    const auto flow = word.starts_with("oob") ? word.substr(3) : word;
    return std::ranges::find(words, word) != words.end() ||
           (flow.starts_with('-') && is_hwirq_with_flow(flow));
}

/// The rest after the words of the type.
std::string_view after_type(Cursor cursor) {
    auto rest = cursor.rest();
    while (is_type(cursor.word()))
        rest = cursor.rest();
    return trim_text(rest);
}

struct Tail {
    std::string_view chip;
    std::string_view actions;
};

/// Cuts what follows the counters into chip and handler names. The chip's name may hold spaces ("Hyper-V PCIe
/// MSI"), hardware number and trigger may be missing or one word with something else, so the first word of a
/// known form is the border.
Tail cut_tail(std::string_view text) {
    text = trim_text(text);
    Cursor cursor(text);
    const auto chip_before = [&](std::string_view word) {
        return trim_text(text.substr(0, static_cast<std::size_t>(word.data() - text.data())));
    };
    bool first = true;
    for (auto word = cursor.word(); !word.empty(); word = cursor.word(), first = false) {
        if (is_hwirq_with_flow(word)) return {chip_before(word), trim_text(cursor.rest())};
        if (ends_in_flow(word))
            return {trim_text(text.substr(0, text.size() - cursor.rest().size())), trim_text(cursor.rest())};
        if (!first && is_number(word)) return {chip_before(word), after_type(cursor)};
    }
    // No number and no trigger (s390): the kernel separates the handlers by at least two spaces.
    const auto gap = text.find("  ");
    if (gap != std::string_view::npos) return {text.substr(0, gap), trim_text(text.substr(gap))};
    const auto space = text.find(' ');
    if (space == std::string_view::npos) return {text, {}};
    return {text.substr(0, space), trim_text(text.substr(space))};
}

/// The chip name of a per-device MSI domain ends in the device: "IR-PCI-MSIX-0000:41:00.0".
std::string chip_function(std::string_view chip) {
    const auto at = chip.find("MSI");
    if (at == std::string_view::npos) return {};
    const auto dash = chip.find('-', at);
    if (dash == std::string_view::npos) return {};
    const auto name = chip.substr(dash + 1);
    return is_pci_name(name) ? std::string(name) : std::string();
}

std::vector<std::string> split_actions(std::string_view text) {
    std::vector<std::string> actions;
    while (!text.empty()) {
        const auto comma = text.find(", ");
        const auto name = trim_text(text.substr(0, comma));
        if (!name.empty()) actions.emplace_back(name);
        if (comma == std::string_view::npos) break;
        text.remove_prefix(comma + 2);
    }
    return actions;
}

/// The CPUs that the header names; no value if the line is no header.
std::optional<std::vector<unsigned>> parse_header(std::string_view line) {
    Cursor cursor(line);
    std::vector<unsigned> cpus;
    for (auto word = cursor.word(); !word.empty(); word = cursor.word()) {
        if (!word.starts_with("CPU")) return std::nullopt;
        const auto cpu = parse_number<unsigned>(word.substr(3));
        if (!cpu || *cpu > CpuSet::max_cpu || cpus.size() >= max_columns) return std::nullopt;
        cpus.push_back(*cpu);
    }
    if (cpus.empty()) return std::nullopt;
    return cpus;
}

void parse_numbered(unsigned number, Cursor cursor, std::size_t columns, InterruptTable& table) {
    auto& line = table.irqs.emplace_back();
    line.number = number;
    line.counts.reserve(table.cpus.size());
    while (line.counts.size() < columns) {
        const auto count = cursor.number();
        if (!count) break;
        line.counts.push_back(*count);
    }
    const auto tail = cut_tail(cursor.rest());
    line.chip = tail.chip;
    line.pci = chip_function(tail.chip);
    line.actions = split_actions(tail.actions);
}

void parse_line(std::string_view line, std::size_t columns, InterruptTable& table) {
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) return;
    const auto key = trim_text(line.substr(0, colon));
    if (key.empty() || key.find_first_of(" \t") != std::string_view::npos) return;
    Cursor cursor(line.substr(colon + 1));
    if (const auto number = parse_number<unsigned>(key)) {
        parse_numbered(*number, cursor, columns, table);
        return;
    }
    if (is_digit(key.front())) return; // a number out of range, or no line of this table
    std::uint64_t sum = 0;
    bool counted = false;
    for (std::size_t column = 0; column < columns; ++column) {
        const auto count = cursor.number();
        if (!count) break;
        sum += *count;
        counted = true;
    }
    if (counted) table.special.emplace_back(key, sum);
}

} // namespace

const Irq* InterruptTable::find(unsigned number) const {
    auto found = std::ranges::lower_bound(irqs, number, {}, &Irq::number); // nearly all tables are ascending
    if (found == irqs.end() || found->number != number) found = std::ranges::find(irqs, number, &Irq::number);
    return found == irqs.end() ? nullptr : &*found;
}

void TableParser::take(std::string_view line) {
    if (!has_header_) {
        if (auto cpus = parse_header(line)) {
            table_.cpus = std::move(*cpus);
            has_header_ = true;
            return;
        }
    }
    parse_line(line, has_header_ ? table_.cpus.size() : max_columns, table_);
}

InterruptTable TableParser::finish() {
    if (!has_header_) { // an excerpt: all that is known is how many columns there are
        std::size_t widest = 0;
        for (const auto& line : table_.irqs)
            widest = std::max(widest, line.counts.size());
        for (unsigned cpu = 0; cpu < widest; ++cpu)
            table_.cpus.push_back(cpu);
    }
    return std::move(table_);
}

InterruptTable parse_interrupts(std::string_view text) {
    TableParser parser;
    while (!text.empty()) {
        const auto end = text.find('\n');
        parser.take(text.substr(0, end));
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    return parser.finish();
}

namespace {

constexpr std::size_t piece = 16384;
constexpr std::size_t most_text = 64U << 20; // of a hostile recording

/// Files of /proc/irq/N that are no handler's directory. Source: kernel/irq/proc.c.
constexpr std::array<std::string_view, 8> own_files = {"affinity_hint",
                                                       "effective_affinity",
                                                       "effective_affinity_list",
                                                       "node",
                                                       "smp_affinity",
                                                       "smp_affinity_list",
                                                       "spurious",
                                                       "threaded"};

bool is_writable(const host::Dir& dir) {
    const auto file = dir.open_file("smp_affinity_list", O_PATH);
    struct stat status {};
    if (!file || ::fstat(file->get(), &status) != 0) return true; // an absent file proves nothing
    return (status.st_mode & 0222) != 0;
}

void read_affinity(const host::Dir& dir, bool live, Irq& irq) {
    irq.requested = dir.cpu_list("smp_affinity_list");
    if (!irq.requested) irq.requested = dir.cpu_mask("smp_affinity");
    irq.effective = dir.cpu_list("effective_affinity_list");
    if (!irq.effective) irq.effective = dir.cpu_mask("effective_affinity");
    irq.hint = dir.cpu_mask("affinity_hint");
    if (irq.hint && irq.hint->empty()) irq.hint.reset();
    if (live) irq.writable = is_writable(dir); // the modes of a recording are its unpacker's
}

/// Adds lines that the table lacks (a container may see an empty one): handlers are directories below
/// /proc/irq/N.
Result<void> add_missing(const host::Dir& proc, const std::vector<std::string>& numbers,
                         InterruptTable& table) {
    std::set<unsigned> present;
    for (const auto& line : table.irqs)
        present.insert(line.number);
    for (const auto& name : numbers) {
        const auto number = parse_number<unsigned>(name);
        if (!number || present.contains(*number)) continue;
        Irq line;
        line.number = *number;
        auto entries = proc.list("irq/" + name);
        if (!entries) return std::unexpected(entries.error());
        for (auto& entry : *entries)
            if (std::ranges::find(own_files, entry) == own_files.end())
                line.actions.push_back(std::move(entry));
        if (!line.actions.empty()) table.irqs.push_back(std::move(line));
    }
    return {};
}

} // namespace

Result<void> InterruptReader::open_table() {
    auto file =
        root_->proc().open_file("interrupts", O_RDONLY | O_NONBLOCK); // never waits for the writer of a FIFO
    if (file)
        file_ = std::move(*file);
    else if (!host::means_absent(file.error().code))
        return std::unexpected(file.error());
    return {};
}

/// True: that was its end. The kernel gives a page at a time, whatever is asked for.
Result<bool> InterruptReader::read_table() {
    std::array<char, piece> bytes; // NOLINT: filled by read
    ssize_t got = 0;
    do
        got = file_ ? ::read(file_.get(), bytes.data(), bytes.size()) : 0;
    while (got < 0 && errno == EINTR);
    if (got < 0 && !host::means_absent(errno)) return fail("cannot read the table of interrupts", {}, errno);
    const auto size = std::min(static_cast<std::size_t>(std::max<ssize_t>(got, 0)), most_text - taken_);
    taken_ += size;
    std::size_t begin = 0;
    auto end = rest_.size(); // there was no line feed before
    rest_.append(bytes.data(), size);
    for (end = rest_.find('\n', end); end != std::string::npos; end = rest_.find('\n', begin)) {
        parser_.take(std::string_view(rest_).substr(begin, end - begin));
        begin = end + 1;
    }
    rest_.erase(0, begin);
    return size == 0;
}

Result<void> InterruptReader::end_table() {
    if (!rest_.empty()) parser_.take(rest_);
    rest_ = {};
    file_.reset();
    table_ = parser_.finish();
    const auto numbers = root_->proc().list("irq");
    if (!numbers) return std::unexpected(numbers.error());
    if (auto added = add_missing(root_->proc(), *numbers, table_); !added) return added;
    stage_ = numbers->empty() ? Stage::done : Stage::files;
    return {};
}

Result<void> InterruptReader::read_files(Irq& line) const {
    line.fixed = line.chip.contains("MSI-INTA"); // drivers/irqchip/irq-ti-sci-inta.c: -EINVAL for every mask
    const auto dir = root_->proc().dir("irq/" + std::to_string(line.number));
    if (dir)
        read_affinity(*dir, root_->is_live(), line);
    else if (!host::means_absent(dir.error().code))
        return std::unexpected(dir.error());
    return {};
}

Result<bool> InterruptReader::step(const std::function<bool()>& out_of_time) {
    Result<void> done;
    do {
        switch (stage_) {
        case Stage::open:
            done = open_table();
            stage_ = Stage::table;
            break;
        case Stage::table:
            if (const auto is_whole = read_table(); !is_whole)
                return is_whole;
            else if (*is_whole)
                done = end_table();
            break;
        case Stage::files:
            if (next_ < table_.irqs.size())
                done = read_files(table_.irqs[next_++]);
            else
                stage_ = Stage::done;
            break;
        case Stage::done:
            return true;
        }
        if (!done) return std::unexpected(done.error());
    } while (!out_of_time());
    return stage_ == Stage::done;
}

Result<InterruptTable> read_interrupts(const host::Root& root) {
    InterruptReader reader(root);
    while (true) {
        const auto done = reader.step([] { return false; });
        if (!done) return std::unexpected(done.error());
        if (*done) return reader.take();
    }
}

std::optional<unsigned> parse_irq_thread(std::string_view comm) {
    constexpr std::string_view prefix = "irq/";
    if (!comm.starts_with(prefix)) return std::nullopt;
    const auto rest = comm.substr(prefix.size());
    const auto dash = rest.find('-');
    if (dash == std::string_view::npos) return std::nullopt; // without it the number may be cut
    return parse_number<unsigned>(rest.substr(0, dash));
}

void attach_threads(InterruptTable& table, std::span<const NamedThread> threads) {
    std::map<unsigned, std::vector<int>> by_irq;
    for (const auto& thread : threads)
        if (const auto number = parse_irq_thread(thread.comm)) by_irq[*number].push_back(thread.tid);
    for (auto& line : table.irqs) {
        const auto found = by_irq.find(line.number);
        line.threads = found == by_irq.end() ? std::vector<int>() : found->second;
        std::ranges::sort(line.threads);
    }
}

} // namespace affinityd::irq
