// SPDX-License-Identifier: Apache-2.0
#include "inventory/facts.hpp"

#include "base/text.hpp"
#include "inventory/cgroup.hpp"
#include "inventory/process_sockets.hpp"
#include "inventory/stat.hpp"

#include <cerrno>

#include <fcntl.h>

namespace affinityd::inventory {

namespace {

constexpr std::size_t cmdline_limit =
    128U << 10; // more than any rule matches; a program may write megabytes there
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

} // namespace

std::optional<EffectiveIds> parse_effective_ids(std::string_view status) {
    const auto uid = second_number(status, "Uid:");
    const auto gid = second_number(status, "Gid:");
    if (!uid || !gid) return std::nullopt;
    return EffectiveIds{*uid, *gid};
}

void LazyFacts::note(const Error& fault) const {
    if (fault.code == EMFILE || fault.code == ENFILE || fault.code == ENOMEM) is_complete_ = false;
}

std::optional<host::Dir> LazyFacts::directory() const {
    auto dir = root_->proc().dir(std::to_string(cheap_.id.tid));
    if (!dir) {
        note(dir.error());
        return std::nullopt;
    }
    const auto text = dir->read("stat", small_file);
    if (!text) note(text.error());
    if (!text || !*text) return std::nullopt;
    const auto line = parse_stat(**text);
    if (!line || line->start_time != cheap_.id.start_time)
        return std::nullopt; // the number belongs to another now
    return std::move(*dir);
}

std::string LazyFacts::file(const std::string& name, std::size_t limit) const {
    const auto dir = directory();
    if (!dir) return {};
    auto text = dir->read(name, limit);
    if (!text) note(text.error());
    if (!text || !*text) return {};
    return std::move(**text);
}

LazyFacts::Expensive& LazyFacts::expensive() const {
    if (!expensive_) expensive_ = std::make_unique<Expensive>();
    return *expensive_;
}

const Program& LazyFacts::program() const {
    auto& program = expensive().program;
    if (!program) {
        const auto dir = directory();
        program = program_of(dir ? dir->link("exe").value_or("") : "");
    }
    return *program;
}

bool LazyFacts::is_exe_true() const {
    auto& is_true = expensive().is_exe_true;
    if (!is_true) {
        const auto dir = directory();
        const auto known = dir ? is_program_of_this_machine(*root_, *dir, program()) : Result<bool>(false);
        if (!known) note(known.error());
        is_true = known.value_or(false);
    }
    return *is_true;
}

/// A kernel thread has none, and no memory that could keep anybody waiting.
std::string LazyFacts::read_cmdline() const {
    auto* lines = sources_ == nullptr ? nullptr : sources_->command_lines();
    if (lines == nullptr || is_kernel()) return file("cmdline", cmdline_limit);
    auto answer = lines->find(cheap_.id);
    if (!answer) {
        const auto dir = directory();
        if (!dir) return {};
        auto opened = dir->open_file("cmdline", O_RDONLY);
        if (!opened) {
            note(opened.error());
            return {};
        }
        answer = lines->read(cheap_.id, std::move(*opened), cmdline_limit);
    }
    is_silent_ = answer->code == EAGAIN;
    if (is_silent_)
        is_complete_ = false;
    else if (answer->code != 0)
        note(fail("cannot read", "cmdline", answer->code).error());
    return answer->code == 0 ? std::move(answer->text) : "";
}

const std::string& LazyFacts::cmdline() const {
    auto& cmdline = expensive().cmdline;
    if (!cmdline) {
        cmdline = read_cmdline();
        while (!cmdline->empty() && cmdline->back() == '\0') // programs that rewrite it leave many
            cmdline->pop_back();
        for (char& c : *cmdline)
            if (c == '\0') c = ' ';
    }
    return *cmdline;
}

const std::string& LazyFacts::cgroup() const {
    auto& cgroup = expensive().cgroup;
    if (!cgroup) cgroup = cgroup_of(file("cgroup", small_file));
    return *cgroup;
}

const LazyFacts::Owner& LazyFacts::owner() const {
    auto& owner = expensive().owner;
    if (!owner) {
        const auto ids = parse_effective_ids(file("status", small_file));
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

const std::vector<std::uint16_t>& LazyFacts::listen_ports() const {
    auto& ports = expensive().ports;
    if (!ports) {
        FactSources own(*root_, AskName{});
        ports.emplace();
        if (!is_kernel() && directory())
            ports = (sources_ != nullptr ? *sources_ : own).listen_ports(cheap_.id.tid);
    }
    return *ports;
}

const std::vector<std::uint16_t>& LazyFacts::foreign_ports() const {
    auto& ports = expensive().foreign_ports;
    if (!ports) {
        ports.emplace();
        if (!is_kernel() && directory()) ports = foreign_listen_ports(*root_, cheap_.id.tid);
    }
    return *ports;
}

} // namespace affinityd::inventory
