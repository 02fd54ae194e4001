// SPDX-License-Identifier: Apache-2.0
#include "inventory/facts.hpp"

#include "base/text.hpp"
#include "inventory/cgroup.hpp"
#include "inventory/numbered.hpp"
#include "inventory/process_sockets.hpp"
#include "inventory/stat.hpp"
#include "inventory/stat_file.hpp"

#include <cerrno>

#include <fcntl.h>

namespace affinityd::inventory {

namespace {

constexpr std::size_t cmdline_limit =
    128U << 10; // more than any rule matches; a program may write megabytes there
constexpr std::size_t most_descriptors = 65'536;
constexpr std::size_t descriptors_per_step = 256; // some 0.15 ms
constexpr std::size_t small_file = 64U << 10;

/// The second of the numbers after "Key:" (real, effective, saved, file system).
std::optional<unsigned> second_number(std::string_view status, std::string_view key) {
    while (!status.empty()) {
        const auto end = status.find('\n');
        const auto line = status.substr(0, end);
        if (line.starts_with(key)) {
            const auto words = split_words(line.substr(key.size()));
            return words.size() > 1 ? parse_number<unsigned>(words[1]) : std::nullopt;
        }
        if (end == std::string_view::npos) break;
        status.remove_prefix(end + 1);
    }
    return std::nullopt;
}

/// "task/TID" of a thread that has not ended.
std::optional<std::string> living_thread(const host::Dir& process, int leader) {
    constexpr int most_looked_at = 64; // threads that have ended are not listed for long
    auto threads = NumberedEntries::open(process, "task");
    if (!threads) return std::nullopt;
    StatBuffer buffer;
    for (int i = 0; i < most_looked_at; ++i) {
        const auto tid = threads->next();
        if (!tid || !*tid) return std::nullopt;
        if (**tid == leader) continue;
        const auto line = read_stat(threads->dir(), std::to_string(**tid) + "/stat", buffer);
        if (line && *line && !(*line)->is_dead()) return "task/" + std::to_string(**tid);
    }
    return std::nullopt;
}

enum class Of {
    leader,
    living ///< a thread that lives: a main thread that has ended has given back program and descriptors
};

/// Its folder below /proc.
struct Folder {
    host::Dir dir;
    std::string path;
};

void note(bool& is_complete, const Error& fault) {
    if (fault.code == EMFILE || fault.code == ENFILE || fault.code == ENOMEM) is_complete = false;
}

/// Looks at its next descriptors: those of `known.walk`.
void walk_on(auto& known, std::size_t most, bool& is_complete) {
    const auto is_done = known.walk->step(most);
    if (!is_done) note(is_complete, is_done.error());
    if (is_done && !*is_done) return;
    known.inodes = known.walk->take_inodes();
    known.walk.reset();
}

/// If it is still the same process.
std::optional<Folder> open_folder(const host::Root& root, const LazyFacts::Cheap& process, Of of,
                                  bool& is_complete) {
    auto path = std::to_string(process.id.tid);
    auto dir = root.proc().dir(path);
    if (!dir) {
        note(is_complete, dir.error());
        return std::nullopt;
    }
    const auto text = dir->read("stat", small_file);
    if (!text) note(is_complete, text.error());
    if (!text || !*text) return std::nullopt;
    const auto line = parse_stat(**text);
    if (!line || line->start_time != process.id.start_time)
        return std::nullopt; // the number belongs to another now
    if (of == Of::leader || !process.is_leader_dead) return Folder{std::move(*dir), std::move(path)};
    const auto thread = living_thread(*dir, process.id.tid);
    if (!thread) return std::nullopt;
    auto its = dir->dir(*thread);
    if (!its) {
        note(is_complete, its.error());
        return std::nullopt;
    }
    return Folder{std::move(*its), path + "/" + *thread};
}

std::string read_file(const host::Root& root, const LazyFacts::Cheap& process, Of of, bool& is_complete,
                      const std::string& name, std::size_t limit) {
    const auto folder = open_folder(root, process, of, is_complete);
    if (!folder) return {};
    auto text = folder->dir.read(name, limit);
    if (!text) note(is_complete, text.error());
    if (!text || !*text) return {};
    return std::move(**text);
}

} // namespace

std::optional<EffectiveIds> parse_effective_ids(std::string_view status) {
    const auto uid = second_number(status, "Uid:");
    const auto gid = second_number(status, "Gid:");
    if (!uid || !gid) return std::nullopt;
    return EffectiveIds{*uid, *gid};
}

LazyFacts::Expensive& LazyFacts::expensive() const {
    if (!expensive_) expensive_ = std::make_unique<Expensive>();
    return *expensive_;
}

const Program& LazyFacts::program() const {
    auto& program = expensive().program;
    if (!program) {
        const auto its = open_folder(*root_, cheap_, Of::living, is_complete_);
        program = program_of(its ? its->dir.link("exe").value_or("") : "");
    }
    return *program;
}

bool LazyFacts::is_exe_true() const {
    auto& is_true = expensive().is_exe_true;
    if (!is_true) {
        const auto its = open_folder(*root_, cheap_, Of::living, is_complete_);
        const auto known =
            its ? is_program_of_this_machine(*root_, its->dir, program()) : Result<bool>(false);
        if (!known) note(is_complete_, known.error());
        is_true = known.value_or(false);
    }
    return *is_true;
}

/// A kernel thread has none, and no memory that could keep anybody waiting.
std::string LazyFacts::arguments() const {
    auto* lines = sources_ == nullptr ? nullptr : sources_->command_lines();
    if (lines == nullptr || is_kernel())
        return read_file(*root_, cheap_, Of::living, is_complete_, "cmdline", cmdline_limit);
    const auto user = [this] { return sources_->person(owner().uid); };
    auto answer = lines->find(cheap_.id, user);
    if (!answer) {
        const auto its = open_folder(*root_, cheap_, Of::living, is_complete_);
        if (!its) return {};
        auto opened = its->dir.open_file("cmdline", O_RDONLY);
        if (!opened) {
            note(is_complete_, opened.error());
            return {};
        }
        answer = lines->read(cheap_.id, std::move(*opened), cmdline_limit, user);
    }
    is_silent_ |= answer->code == EAGAIN;
    if (answer->code == EAGAIN)
        is_complete_ = false;
    else if (answer->code != 0)
        note(is_complete_, fail("cannot read", "cmdline", answer->code).error());
    return answer->code == 0 ? std::move(answer->text) : "";
}

const std::string& LazyFacts::cmdline() const {
    auto& cmdline = expensive().cmdline;
    if (!cmdline) {
        cmdline = arguments();
        while (!cmdline->empty() && cmdline->back() == '\0') // programs that rewrite it leave many
            cmdline->pop_back();
        for (char& c : *cmdline)
            if (c == '\0') c = ' ';
    }
    return *cmdline;
}

const std::string& LazyFacts::cgroup() const {
    auto& cgroup = expensive().cgroup;
    if (!cgroup)
        cgroup = cgroup_of(read_file(*root_, cheap_, Of::living, is_complete_, "cgroup", small_file));
    return *cgroup;
}

const LazyFacts::Owner& LazyFacts::owner() const {
    auto& owner = expensive().owner;
    if (!owner) {
        const auto ids =
            parse_effective_ids(read_file(*root_, cheap_, Of::leader, is_complete_, "status", small_file));
        owner = ids ? Owner{ids->uid, ids->gid, true} : Owner{};
    }
    return *owner;
}

const std::string& LazyFacts::user() const {
    auto& user = expensive().user;
    if (!user) {
        FactSources own(*root_, AskName{});
        user = owner().known ? (sources_ != nullptr ? *sources_ : own).user(owner().uid) : "";
    }
    return *user;
}

const std::string& LazyFacts::group() const {
    auto& group = expensive().group;
    if (!group) {
        FactSources own(*root_, AskName{});
        group = owner().known ? (sources_ != nullptr ? *sources_ : own).group(owner().gid) : "";
    }
    return *group;
}

/// Without sources nobody waits: it is read in one go.
const std::vector<std::uint64_t>* LazyFacts::socket_inodes() const {
    auto& known = expensive();
    if (known.inodes) return &*known.inodes;
    if (known.walk) return nullptr;
    const auto its = is_kernel() ? std::nullopt : open_folder(*root_, cheap_, Of::living, is_complete_);
    auto walk = its ? DescriptorWalk::open(its->dir) : Result<DescriptorWalk>(fail("no such process"));
    if (!walk) {
        note(is_complete_, walk.error());
        return &known.inodes.emplace();
    }
    known.walk.emplace(std::move(*walk));
    const bool in_one_go = sources_ == nullptr || sources_->command_lines() == nullptr;
    walk_on(known, in_one_go ? most_descriptors : descriptors_per_step, is_complete_);
    return known.inodes ? &*known.inodes : nullptr;
}

void LazyFacts::go_on() {
    if (is_unfinished()) walk_on(expensive(), descriptors_per_step, is_complete_);
}

const std::vector<std::uint16_t>& LazyFacts::listen_ports() const {
    static const std::vector<std::uint16_t> unknown;
    const auto* inodes = socket_inodes();
    if (inodes == nullptr) return unknown;
    auto& ports = expensive().ports;
    if (!ports) {
        FactSources own(*root_, AskName{});
        ports.emplace();
        const auto its =
            inodes->empty() ? std::nullopt : open_folder(*root_, cheap_, Of::living, is_complete_);
        if (its) {
            auto found = (sources_ != nullptr ? *sources_ : own).listen_ports(its->path, *inodes);
            // It is looked at again when the list has come.
            is_silent_ |= !found;
            is_complete_ &= found.has_value();
            are_ports_partial_ |= found && !found->are_all;
            ports = std::move(found).value_or(ListenPorts{}).ports;
        }
    }
    return *ports;
}

const std::vector<std::uint16_t>& LazyFacts::foreign_ports() const {
    static const std::vector<std::uint16_t> unknown;
    const auto* inodes = socket_inodes();
    if (inodes == nullptr) return unknown;
    auto& ports = expensive().foreign_ports;
    if (!ports) {
        ports.emplace();
        if (!inodes->empty())
            if (const auto its = open_folder(*root_, cheap_, Of::living, is_complete_))
                ports = foreign_listen_ports(*root_, its->path, *inodes);
    }
    return *ports;
}

} // namespace affinityd::inventory
