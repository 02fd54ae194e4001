// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/fd.hpp"
#include "irq/irq.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::host {
class Root;
}

namespace affinityd::irq {

/// Reads the text of /proc/interrupts a line at a time: any architecture's, with or without header. Lines
/// that fit no form are passed over. Source: kernel/irq/proc.c, show_interrupts.
class TableParser {
  public:
    /// The next line, without its line feed.
    void take(std::string_view line);
    /// The table of the lines; to be called once, after the last one.
    [[nodiscard]] InterruptTable finish();

  private:
    InterruptTable table_;
    bool has_header_ = false;
};

/// All of it at once.
[[nodiscard]] InterruptTable parse_interrupts(std::string_view text);

/// Reads /proc/interrupts and, where they are there, the files of /proc/irq/N, in parts; lines that the table
/// lacks are taken from the handlers' directories there. A recording with neither gives an empty table.
class InterruptReader {
  public:
    /// `root` must outlive it.
    explicit InterruptReader(const host::Root& root) : root_(&root) {}

    /// Reads on; asks `out_of_time` after some kilobytes of the table, and after the files of each line.
    /// True: take() has all. An Error: the table or a directory is there and cannot be read.
    [[nodiscard]] Result<bool> step(const std::function<bool()>& out_of_time);
    [[nodiscard]] InterruptTable take(std::shared_ptr<const LabelTable> labels = {}) {
        table_.labels = std::move(labels);
        return std::move(table_);
    }

  private:
    enum class Stage : std::uint8_t { open, table, files, done };
    [[nodiscard]] Result<void> open_table();
    [[nodiscard]] Result<bool> read_table();
    [[nodiscard]] Result<void> end_table();
    [[nodiscard]] Result<void> read_files(Irq& line) const;

    const host::Root* root_;
    Stage stage_ = Stage::open;
    host::Fd file_;         ///< /proc/interrupts
    std::size_t taken_ = 0; ///< bytes of it
    std::string rest_;      ///< of them, those of a line whose end has not come yet
    TableParser parser_;
    InterruptTable table_;
    std::size_t next_ = 0; ///< line of the table whose files are read next
};

/// All of it at once, without labels.
[[nodiscard]] Result<InterruptTable> read_interrupts(const host::Root& root);

/// The interrupt that a kernel thread handles, by its name: "irq/24-eth0-TxRx-0", "irq/24-s-eth0" for a
/// second handler. Threaded handlers are the rule with PREEMPT_RT and some drivers' choice elsewhere. Source:
/// kernel/irq/manage.c, setup_irq_thread.
[[nodiscard]] std::optional<unsigned> parse_irq_thread(std::string_view comm);

/// A kernel thread as the inventory has it; the name stays the caller's.
struct NamedThread {
    int tid = 0;
    std::string_view comm;
};

/// Fills Irq::threads, ascending, replacing what was there. Only kernel threads may be handed in: any program
/// can take such a name.
void attach_threads(InterruptTable& table, std::span<const NamedThread> threads);

} // namespace affinityd::irq
