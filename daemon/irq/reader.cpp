// SPDX-License-Identifier: Apache-2.0
#include "irq/reader.hpp"

#include "base/text.hpp"
#include "host/root.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace affinityd::irq {

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

} // namespace affinityd::irq
