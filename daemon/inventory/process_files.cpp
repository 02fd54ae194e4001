// SPDX-License-Identifier: Apache-2.0
#include "inventory/process_files.hpp"

#include "base/text.hpp"
#include "host/scheduler.hpp"
#include "inventory/descriptors.hpp"
#include "inventory/process_scan.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

namespace affinityd::inventory {

namespace {

/// Takes the fields after the name one by one, without a copy.
class Fields {
  public:
    explicit Fields(std::string_view text) : rest_(text) {}

    /// A call of find_first_of() for each of fifty fields takes longer than all else that is done with a
    /// line.
    std::string_view take() {
        const auto is_space = [](char c) { return c == ' ' || c == '\n'; };
        std::size_t begin = 0;
        while (begin < rest_.size() && is_space(rest_[begin]))
            ++begin;
        auto end = begin;
        while (end < rest_.size() && !is_space(rest_[end]))
            ++end;
        const auto field = rest_.substr(begin, end - begin);
        rest_.remove_prefix(end);
        return field;
    }

    void skip(int count) {
        while (count-- > 0)
            take();
    }

    template <class T>
    bool number(T& value) {
        const auto field = take();
        const auto [end, status] = std::from_chars(field.data(), field.data() + field.size(), value);
        return status == std::errc{} && end == field.data() + field.size() && !field.empty();
    }

  private:
    std::string_view rest_;
};

struct Parts {
    int id = 0;
    std::string_view comm;
    Fields fields; ///< from field 3 on
};

std::optional<Parts> split_line(std::string_view text) {
    const auto open = text.find('(');
    if (open == std::string_view::npos) return std::nullopt;
    // A name may hold any bytes but ends at the last ')', which is far from the end of the line.
    const auto* last = static_cast<const char*>(::memrchr(text.data(), ')', text.size()));
    if (last == nullptr) return std::nullopt;
    const auto close = static_cast<std::size_t>(last - text.data());
    if (close < open) return std::nullopt;
    Fields before(text.substr(0, open));
    int id = 0;
    if (!before.number(id) || id <= 0 || !before.take().empty()) return std::nullopt;
    return Parts{id, text.substr(open + 1, close - open - 1), Fields(text.substr(close + 1))};
}

} // namespace

std::optional<StatLine> parse_stat(std::string_view text) {
    auto parts = split_line(text);
    if (!parts) return std::nullopt;
    auto& fields = parts->fields;
    StatLine line;
    line.id = parts->id;
    line.comm = parts->comm;
    const auto state = fields.take();
    if (state.size() != 1) return std::nullopt;
    line.state = state.front();
    if (!fields.number(line.parent)) return std::nullopt;
    fields.skip(1); // process group
    if (!fields.number(line.session)) return std::nullopt;
    fields.skip(2); // terminal, its foreground group
    if (!fields.number(line.flags)) return std::nullopt;
    fields.skip(10); // faults, times, priority, nice
    if (!fields.number(line.threads)) return std::nullopt;
    fields.skip(1);
    if (!fields.number(line.start_time)) return std::nullopt;
    return line;
}

namespace {

std::string unescape(std::string_view text) {
    std::string comm;
    comm.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool escaped = text[i] == '\\' && i + 1 < text.size();
        if (escaped && text[i + 1] == 'n') {
            comm += '\n';
            ++i;
        } else if (escaped && text[i + 1] == '\\') {
            comm += '\\';
            ++i;
        } else {
            comm += text[i];
        }
    }
    return comm;
}

} // namespace

std::string unescape_comm(std::string_view text) {
    return text.contains('\\') ? unescape(text) : std::string(text);
}

Result<std::optional<StatLine>> read_stat(const host::Dir& dir, const std::string& path, StatBuffer& buffer) {
    const auto file = dir.open_file(path, O_RDONLY | O_NONBLOCK); // a recording may hold a FIFO
    if (!file) {
        if (host::means_absent(file.error().code)) return std::nullopt;
        return std::unexpected(file.error());
    }
    ssize_t got = 0;
    do {
        got = ::read(file->get(), buffer.data(), buffer.size());
    } while (got < 0 && errno == EINTR);
    if (got < 0 && !host::means_absent(errno) && errno != EISDIR) return fail("cannot read", path, errno);
    if (got <= 0) return std::nullopt;
    return parse_stat({buffer.data(), static_cast<std::size_t>(got)});
}

CpuSet read_mask(const host::Root& root, int pid, int tid) {
    if (!root.is_live()) return read_allowed(root, pid, tid).value_or(CpuSet{});
    return host::get_affinity(tid).value_or(CpuSet{});
}

Thread make_thread(const host::Root& root, int pid, const StatLine& line) {
    Thread thread;
    thread.id = {line.id, line.start_time};
    thread.comm = unescape_comm(line.comm);
    thread.flags = line.flags;
    thread.allowed = read_mask(root, pid, line.id);
    return thread;
}

Result<std::vector<int>> processes_in(const host::Dir& sys, const std::string& group) {
    const auto text = sys.read("fs/cgroup" + group + "/cgroup.procs");
    if (!text && text.error().code != EOPNOTSUPP) return std::unexpected(text.error());
    std::vector<int> pids;
    if (text && *text)
        for (const auto line : split(**text, '\n'))
            if (const auto pid = parse_number<int>(line)) pids.push_back(*pid);
    return pids;
}

std::string cgroup_of(std::string_view text) {
    std::string_view unified;
    std::string_view systemd;
    while (!text.empty()) {
        const auto end = text.find('\n');
        const auto line = text.substr(0, end);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        // "HIERARCHY:CONTROLLERS:PATH"; the path may hold colons
        const auto first = line.find(':');
        const auto second = first == std::string_view::npos ? first : line.find(':', first + 1);
        if (second == std::string_view::npos) continue;
        const auto controllers = line.substr(first + 1, second - first - 1);
        const auto path = line.substr(second + 1);
        if (controllers.empty() && line.substr(0, first) == "0") unified = path;
        if (controllers == "name=systemd") systemd = path;
    }
    if (unified.starts_with('/') && unified != "/") return std::string(unified);
    if (systemd.starts_with('/')) return std::string(systemd);
    return "/";
}

std::uint64_t name_space(const host::Root& root, const std::string& process, const std::string& kind) {
    const auto link = root.proc().link(process + "/ns/" + kind).value_or("");
    const auto head = kind + ":[";
    if (!link.starts_with(head) || !link.ends_with("]")) return 0;
    const auto number = std::string_view(link).substr(head.size(), link.size() - head.size() - 1);
    return parse_number<std::uint64_t>(number).value_or(0);
}

namespace {

std::string task_folder(int pid, int tid) {
    return std::to_string(pid) + "/task/" + std::to_string(tid) + "/";
}

/// Small recordings hold a process's own files only; there the main thread is read from them.
std::string task_or_process(const host::Root& root, int pid, int tid) {
    if (!root.is_live() && pid == tid && !root.proc().exists(task_folder(pid, tid)))
        return std::to_string(pid) + "/";
    return task_folder(pid, tid);
}

/// The text after "\nKey:" in the status file of `path`, to the end of the line.
std::optional<std::string> read_status(const host::Root& root, const std::string& path,
                                       std::string_view key) {
    const auto text = root.proc().read(path + "status", 64U << 10);
    if (!text || !*text) return std::nullopt;
    const auto at = (*text)->find(key);
    if (at == std::string::npos) return std::nullopt;
    const std::string_view value = std::string_view(**text).substr(at + key.size());
    return std::string(trim_text(value.substr(0, value.find('\n'))));
}

} // namespace

bool is_namespace_init(const host::Root& root, int pid) {
    const auto line = read_status(root, std::to_string(pid) + "/", "\nNSpid:");
    return line && split_words(*line).back() == "1";
}

Result<std::optional<Thread>> read_thread(const host::Root& root, int pid, int tid) {
    StatBuffer buffer;
    const auto read = read_stat(root.proc(), task_or_process(root, pid, tid) + "stat", buffer);
    if (!read) return std::unexpected(read.error());
    if (!*read || (*read)->id != tid || (*read)->is_dead()) return std::nullopt;
    return make_thread(root, pid, **read);
}

Result<std::vector<Thread>> read_threads(const host::Root& root, int pid) {
    auto scan = ProcessScan::open(root, pid);
    if (!scan) return std::unexpected(scan.error());
    if (!*scan) return std::vector<Thread>{};
    (*scan)->step([] { return false; });
    return (*scan)->take_threads();
}

std::optional<CpuSet> read_allowed(const host::Root& root, int pid, int tid) {
    const auto list = read_status(root, task_or_process(root, pid, tid), "\nCpus_allowed_list:");
    auto set = list ? CpuSet::parse_list(*list) : Result<CpuSet>(fail("no mask"));
    return set ? std::optional(std::move(*set)) : std::nullopt;
}

bool lives_on(const host::Root& root, const TaskId& process) {
    const auto path = std::to_string(process.tid) + "/stat";
    // No threads: the line is of a main thread whose number another one took over at this moment.
    for (int tries = 0; tries < 2; ++tries) {
        StatBuffer buffer;
        const auto read = read_stat(root.proc(), path, buffer);
        if (!read) return true; // nothing is known
        const auto& line = *read;
        if (!line || line->id != process.tid || line->start_time != process.start_time) return false;
        if (!line->is_dead() || line->threads > 1) return true;
        if (line->threads == 1) return false;
    }
    return false;
}

std::optional<int> read_parent(const host::Root& root, int pid) {
    StatBuffer buffer;
    const auto read = read_stat(root.proc(), std::to_string(pid) + "/stat", buffer);
    return read && *read ? std::optional((*read)->parent) : std::nullopt;
}

std::vector<int> read_ancestors(const host::Root& root, int parent) {
    constexpr std::size_t most = 64; // process trees are shallow
    std::vector<int> ancestors;
    for (int pid = parent; pid > 0 && ancestors.size() < most; pid = read_parent(root, pid).value_or(0))
        ancestors.push_back(pid);
    return ancestors;
}

std::optional<unsigned> read_real_user(const host::Root& root, int pid) {
    const auto text = read_status(root, std::to_string(pid) + "/", "\nUid:");
    const auto words = text ? split_words(*text) : std::vector<std::string_view>{};
    return words.empty() ? std::nullopt : parse_number<unsigned>(words[0]);
}

std::optional<std::uint64_t> read_resident(const host::Root& root, int pid) {
    const auto text = read_status(root, std::to_string(pid) + "/", "\nVmRSS:");
    const auto words = text ? split_words(*text) : std::vector<std::string_view>{};
    const auto kib = words.empty() ? std::nullopt : parse_number<std::uint64_t>(words[0]);
    return kib ? std::optional(*kib * 1024) : std::nullopt;
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> own_memory(const host::Root& root, int pid) {
    constexpr std::size_t most = 16U << 20; // 65,530 maps, vm.max_map_count
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
    const auto address = [](std::string_view digits) {
        std::uint64_t value = 0;
        const auto* last = digits.data() + digits.size();
        return std::from_chars(digits.data(), last, value, 16).ptr == last ? value : 0;
    };
    const auto text = root.proc().read(std::to_string(pid) + "/maps", most);
    if (!text || !*text) return ranges;
    for (const auto line : split(**text, '\n')) {
        // "7f1c2c000000-7f1c2c021000 rw-p 00000000 00:00 0"
        const auto words = split_words(line);
        if (words.size() < 5 || words[1] != "rw-p" || words[4] != "0") continue;
        const auto dash = words[0].find('-');
        if (dash != std::string_view::npos)
            ranges.emplace_back(address(words[0].substr(0, dash)), address(words[0].substr(dash + 1)));
    }
    return ranges;
}

std::optional<int> read_process_id(const host::Root& root, int tid) {
    const auto text = read_status(root, std::to_string(tid) + "/", "\nTgid:");
    return text ? parse_number<int>(*text) : std::nullopt;
}

namespace {

constexpr std::size_t most_listed = 1024, most_read = 64;

/// The last number of its NSpid line: that of the innermost namespace, its own. 0: it is gone.
int own_number(const host::Root& root, int pid, int tid) {
    const auto line = read_status(root, task_folder(pid, tid), "\nNSpid:");
    return line ? parse_number<int>(split(*line, '\t').back()).value_or(0) : 0;
}

std::vector<int> list_threads(const host::Root& root, int pid) {
    std::vector<int> tids;
    auto entries = NumberedEntries::open(root.proc(), std::to_string(pid) + "/task");
    while (entries && tids.size() < most_listed) {
        const auto next = entries->next();
        if (!next || !*next) break;
        tids.push_back(**next);
    }
    std::ranges::sort(tids);
    return tids;
}

} // namespace

std::optional<int> thread_by_own_number(const host::Root& root, int pid, int own) {
    const auto tids = list_threads(root, pid);
    if (own <= 0 || tids.empty()) return std::nullopt;
    const auto at =
        std::ranges::lower_bound(tids, own, {}, [&](int tid) { return own_number(root, pid, tid); });
    if (at != tids.end() && own_number(root, pid, *at) == own) return *at;
    const auto latest = tids.size() > most_read ? tids.end() - most_read : tids.begin();
    const auto found =
        std::find_if(latest, tids.end(), [&](int tid) { return own_number(root, pid, tid) == own; });
    return found == tids.end() ? std::nullopt : std::optional(*found);
}

std::optional<RunRecord> parse_run_record(std::string_view stat, long ticks) {
    auto parts = split_line(stat);
    if (!parts || ticks <= 0) return std::nullopt;
    auto& fields = parts->fields;
    RunRecord record;
    std::uint64_t user = 0;
    std::uint64_t system = 0;
    fields.skip(11); // state to faults
    if (!fields.number(user) || !fields.number(system)) return std::nullopt;
    fields.skip(6); // times of children, priority, nice, threads, an unused timer
    if (!fields.number(record.start_time)) return std::nullopt;
    fields.skip(16); // sizes and addresses, signals, places of waiting
    if (!fields.number(record.cpu)) return std::nullopt;
    constexpr std::uint64_t second_ns = 1'000'000'000;
    record.run_ns = (user + system) * (second_ns / static_cast<std::uint64_t>(ticks));
    return record;
}

std::optional<SchedTime> parse_sched_time(std::string_view schedstat) {
    const auto words = split_words(schedstat.substr(0, schedstat.find('\n')));
    if (words.size() < 2) return std::nullopt;
    const auto run = parse_number<std::uint64_t>(words[0]);
    const auto wait = parse_number<std::uint64_t>(words[1]);
    return run && wait ? std::optional(SchedTime{*run, *wait}) : std::nullopt;
}

std::optional<SchedTime> read_sched_time(const host::Root& root, int pid, int tid) {
    const auto text =
        root.proc().read(std::to_string(pid) + "/task/" + std::to_string(tid) + "/schedstat", 256);
    return text && *text ? parse_sched_time(**text) : std::nullopt;
}

std::optional<std::uint64_t> parse_migrations(std::string_view sched) {
    constexpr std::string_view key = "\nse.nr_migrations";
    const auto at = sched.find(key);
    if (at == std::string_view::npos) return std::nullopt;
    auto rest = sched.substr(at + key.size());
    rest = rest.substr(0, rest.find('\n'));
    const auto colon = rest.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    return parse_number<std::uint64_t>(trim_text(rest.substr(colon + 1)));
}

std::optional<RunRecord> read_run_record(const host::Root& root, int pid, int tid) {
    constexpr std::size_t limit = 64U << 10;
    const std::string folder = std::to_string(pid) + "/task/" + std::to_string(tid) + "/";
    const auto text = [&](const char* name) -> std::optional<std::string> {
        auto read = root.proc().read(folder + name, limit);
        return read ? std::move(*read) : std::nullopt;
    };
    const auto stat = text("stat");
    auto record = stat ? parse_run_record(*stat, ::sysconf(_SC_CLK_TCK)) : std::nullopt;
    if (!record) return std::nullopt;
    if (const auto times = read_sched_time(root, pid, tid); times && times->run_ns > 0)
        record->run_ns = times->run_ns;
    if (const auto sched = text("sched")) record->migrations = parse_migrations(*sched);
    return record;
}

} // namespace affinityd::inventory
