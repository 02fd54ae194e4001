// SPDX-License-Identifier: Apache-2.0
#include "inventory/kernel_threads.hpp"

#include "base/text.hpp"
#include "inventory/process_files.hpp"
#include "inventory/task.hpp"

#include <algorithm>

namespace affinityd::inventory {

namespace {

constexpr int most_readings = 4;

bool is_queue_thread(std::string_view comm) { return comm.starts_with("napi/") || comm.starts_with("irq/"); }

/// The list on which two successive readings agree; no value: the kernel has none, or they never agree.
std::optional<std::vector<int>> stable_children(const host::Root& root) {
    std::optional<std::string> before;
    for (int reading = 0; reading < most_readings; ++reading) {
        auto text = root.proc().text("2/task/2/children");
        if (!text || text->empty()) return std::nullopt;
        if (text == before) {
            std::vector<int> pids;
            for (const auto word : split_words(*text))
                if (const auto pid = parse_number<int>(word); pid && *pid > 0) pids.push_back(*pid);
            return pids;
        }
        before = std::move(text);
    }
    return std::nullopt;
}

} // namespace

KernelThreadScan::KernelThreadScan(const host::Root& root, std::span<const KernelThread> known)
    : root_(&root), known_(known.begin(), known.end()) {}

bool KernelThreadScan::begin() {
    has_begun_ = true;
    if (auto children = stable_children(*root_)) {
        children_ = std::move(*children);
        for (const auto& thread : known_)
            if (std::ranges::find(children_, thread.id.tid) == children_.end())
                children_.push_back(thread.id.tid);
        return true;
    }
    auto stream = PidStream::open(*root_);
    if (!stream) {
        fault_ = stream.error();
        return false;
    }
    stream_ = std::move(*stream);
    return true;
}

Result<void> KernelThreadScan::look_at(int pid) {
    StatBuffer buffer;
    const auto read = read_stat(root_->proc(), std::to_string(pid) + "/stat", buffer);
    if (!read) return std::unexpected(read.error());
    const auto& line = *read;
    // Anybody may call himself napi/eth0-1; the flag is the kernel's.
    if (!line || line->id != pid || line->is_dead() || (line->flags & pf_kthread) == 0) return {};
    auto comm = unescape_comm(line->comm);
    if (is_queue_thread(comm)) found_.push_back({{pid, line->start_time}, std::move(comm)});
    return {};
}

Result<bool> KernelThreadScan::look_at_next() {
    int pid = 0;
    if (stream_) {
        const auto next = stream_->next();
        if (!next) return std::unexpected(next.error());
        if (!*next) return false;
        pid = **next;
    } else {
        if (children_.empty()) return false;
        pid = children_.back();
        children_.pop_back();
    }
    if (auto looked = look_at(pid); !looked) return std::unexpected(looked.error());
    return true;
}

bool KernelThreadScan::step(const std::function<bool()>& out_of_time) {
    if (!has_begun_ && !begin()) return true;
    while (!fault_) {
        const auto looked = look_at_next();
        if (!looked)
            fault_ = looked.error();
        else if (!*looked)
            break;
        else if (out_of_time())
            return false;
    }
    return true;
}

Result<std::vector<KernelThread>> KernelThreadScan::take() {
    if (fault_) return std::unexpected(*fault_);
    std::ranges::sort(found_, {}, &KernelThread::id);
    const auto rest = std::ranges::unique(found_);
    found_.erase(rest.begin(), rest.end());
    return std::move(found_);
}

Result<std::vector<KernelThread>> find_kernel_threads(const host::Root& root,
                                                      std::span<const KernelThread> known) {
    KernelThreadScan scan(root, known);
    scan.step([] { return false; });
    return scan.take();
}

} // namespace affinityd::inventory
