// SPDX-License-Identifier: Apache-2.0
#include "inventory/facts.hpp"

#include "base/text.hpp"
#include "host/fd.hpp"
#include "inventory/process_files.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <linux/openat2.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace affinityd::inventory {

namespace {

using host::Fd;

struct File {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::uint64_t mount = 0; ///< 0: a kernel before 5.8, which does not tell
    unsigned mode = 0;
    unsigned uid = ~0U;

    [[nodiscard]] bool is(const File& other) const { return device == other.device && inode == other.inode; }
    /// Only root can have written it.
    [[nodiscard]] bool is_roots() const { return uid == 0 && (mode & (S_IWGRP | S_IWOTH)) == 0; }
};

/// Reads what the kernel knows of a file already: with AT_STATX_DONT_SYNC no file system in user space is
/// asked.
std::optional<File> look(int folder, const char* name, int flags) {
    struct statx status {};
    constexpr unsigned mount_id = 0x1000; // STATX_MNT_ID
    constexpr unsigned wanted = STATX_INO | STATX_TYPE | STATX_MODE | STATX_UID | mount_id;
    if (::statx(folder, name, flags | AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, wanted, &status) != 0)
        return std::nullopt;
    File file{(std::uint64_t{status.stx_dev_major} << 32U) | status.stx_dev_minor, status.stx_ino, 0,
              status.stx_mode, status.stx_uid};
    if ((status.stx_mask & mount_id) != 0) file.mount = status.stx_mnt_id;
    return file;
}

/// The files of this machine by path, as its first process sees them: the daemon itself may live in a mount
/// namespace of its own. Paths are chosen by strangers: no look-up waits.
class Files {
  public:
    explicit Files(const host::Root& root) {
        for (const char* top : {"1/root", "self/root"}) // the second where the daemon is not root's
            if (auto opened = top_ ? fail("open already") : root.proc().open_file(top, O_PATH | O_DIRECTORY))
                top_ = std::move(*opened);
            else if (!top_)
                note(opened.error().code);
    }
    /// The reason why nothing was read: no descriptor or memory was left. 0: nothing did.
    [[nodiscard]] int shortage() const { return shortage_; }

    /// `path` has no leading '/'. No value: there is none, or it cannot be known.
    [[nodiscard]] std::optional<File> find(const std::string& path) {
        if (path.empty()) return look(top_.get(), "", AT_EMPTY_PATH);
        if (const auto file = known_to_kernel(path)) return look(file->get(), "", AT_EMPTY_PATH);
        return by_roots_folders(path);
    }

  private:
    /// While a program runs, the kernel has all of its path in its cache. No value: it is not there.
    [[nodiscard]] std::optional<Fd> known_to_kernel(const std::string& path) {
        open_how how{.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
                     .mode = 0,
                     .resolve = RESOLVE_CACHED | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
        constexpr int attempts = 3; // a rename elsewhere makes one fail
        for (int i = 0; i < attempts; ++i) {
            Fd file(static_cast<int>(::syscall(SYS_openat2, top_.get(), path.c_str(), &how, sizeof how)));
            if (file) return file;
            if (errno != EAGAIN) break;
        }
        note(errno);
        return std::nullopt;
    }

    /// For file systems that ask a server again and again, and kernels before 5.12: only through folders that
    /// none but root can have put there.
    [[nodiscard]] std::optional<File> by_roots_folders(const std::string& path) {
        Fd at = open_step(top_.get(), ".");
        for (const auto name : split(path, '/')) {
            struct statfs system {};
            const auto folder = look(at.get(), "", AT_EMPTY_PATH);
            if (!folder || !folder->is_roots() || ::fstatfs(at.get(), &system) != 0 ||
                system.f_type == AUTOFS_SUPER_MAGIC)
                return std::nullopt;
            at = open_step(at.get(), std::string(name));
            if (!at) return std::nullopt;
        }
        return look(at.get(), "", AT_EMPTY_PATH);
    }

    Fd open_step(int folder, const std::string& name) {
        Fd file(::openat(folder, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
        if (!file) note(errno);
        return file;
    }
    void note(int code) {
        if (code == EMFILE || code == ENFILE || code == ENOMEM) shortage_ = code;
    }

    Fd top_;
    int shortage_ = 0;
};

/// The nearest folder of the path that is there.
std::optional<File> folder_of(Files& files, std::string path) {
    while (!path.empty()) {
        const auto slash = path.rfind('/');
        path.resize(slash == std::string::npos ? 0 : slash);
        if (auto folder = files.find(path)) return folder;
    }
    return std::nullopt;
}

bool has_first_processes_mounts(const host::Root& root, const host::Dir& process) {
    const auto theirs = process.link("ns/mnt");
    auto first = root.proc().link("1/ns/mnt");
    if (!first) first = root.proc().link("self/ns/mnt");
    return theirs && first && *theirs == *first;
}

/// True if the process lives in another mount namespace than the first process, and one of root's made it
/// (as systemd does for PrivateTmp=): it belongs to the first process's user namespace.
bool is_in_namespace_of_roots(const host::Root& root, const host::Dir& process) {
    if (has_first_processes_mounts(root, process)) return false;
    const auto mounts = process.open_file("ns/mnt", O_RDONLY);
    auto first = root.proc().open_file("1/ns/user", O_RDONLY);
    if (!first) first = root.proc().open_file("self/ns/user", O_RDONLY);
    if (!mounts || !first) return false;
    const Fd owner(::ioctl(mounts->get(), NS_GET_USERNS));
    const auto theirs = owner ? look(owner.get(), "", AT_EMPTY_PATH) : std::nullopt;
    const auto ours = look(first->get(), "", AT_EMPTY_PATH);
    return theirs && ours && theirs->is(*ours);
}

} // namespace

Program program_of(std::string link) {
    constexpr std::string_view removed = " (deleted)"; // the package was upgraded under the running program
    Program program{std::move(link)};
    program.is_removed = program.path.ends_with(removed);
    if (program.is_removed) program.path.resize(program.path.size() - removed.size());
    return program;
}

Result<bool> is_program_of_this_machine(const host::Root& root, const host::Dir& process,
                                        const Program& program) {
    if (!root.is_live()) return true;
    const auto running = look(process.fd(), "exe", 0);
    if (!running || !program.path.starts_with('/')) return false;
    Files files(root);
    const auto path = program.path.substr(1);
    const auto there = files.find(path);
    if (there && there->is(*running)) return true;
    const auto folder = folder_of(files, path);
    if (files.shortage() != 0) return fail("cannot look for a program", program.path, files.shortage());
    if (!folder) return false;
    // It lies on the mount that this machine has at that place, so the path is no other's: the file was
    // removed or replaced while it runs, or something was mounted over it.
    if (running->mount != 0) {
        if (running->mount == folder->mount) return true;
    } else if (has_first_processes_mounts(root, process)) {
        return true;
    }
    // The same in the mount namespace of a service. Of its mounts it can only be said that root made them.
    return program.is_removed && running->device == folder->device && running->is_roots() &&
           is_in_namespace_of_roots(root, process);
}

namespace {

constexpr std::size_t most_cpusets = 65536;

} // namespace

FactSources::FactSources(const host::Root& root)
    : root_(&root), service_(root.is_live() ? std::make_unique<NameService>() : nullptr),
      command_lines_(root.is_live() ? std::make_unique<CommandLines>() : nullptr),
      names_(root, service_ ? AskName([service = service_.get()](NameKind kind, unsigned id) {
                 return service->find(kind, id);
             })
                            : AskName{}),
      listeners_(root.is_live() ? std::make_unique<Listeners>(root) : nullptr) {}

FactSources::FactSources(const host::Root& root, AskName ask)
    : root_(&root), names_(root, root.is_live() ? std::move(ask) : AskName{}) {}

std::string FactSources::user(unsigned uid) { return names_.find(NameKind::user, uid); }
std::string FactSources::group(unsigned gid) { return names_.find(NameKind::group, gid); }

uid_t FactSources::owner(int pid) {
    const auto uid = root_->proc().owner(std::to_string(pid));
    return uid ? person(*uid) : gone;
}

uid_t FactSources::starter(int pid) {
    const auto its_owner = owner(pid);
    if (its_owner != 0) return its_owner;
    const auto uid = read_real_user(*root_, pid);
    return uid ? person(*uid) : gone;
}

std::optional<std::vector<std::uint16_t>>
FactSources::listen_ports(const std::string& process, const std::vector<std::uint64_t>& inodes) {
    if (inodes.empty()) return std::vector<std::uint16_t>{};
    if (listeners_) {
        const auto list = listeners_->list();
        return list ? std::optional(ports_of(*list, inodes)) : std::nullopt;
    }
    if (!table_) table_ = read_socket_table(*root_, {.wanted = Wanted::listeners}).value_or(SocketTable{});
    auto ports = ports_of(*table_, inodes);
    if (!root_->is_live()) { // a recording forges nothing
        std::ranges::copy(foreign_listen_ports(*root_, process, inodes), std::back_inserter(ports));
        sort_unique(ports);
    }
    return ports;
}

const CpuSet* FactSources::cpuset(int pid) {
    const auto path = root_->proc().text(std::to_string(pid) + "/cpuset");
    if (!path || !path->starts_with('/') || *path == "/") return nullptr; // the root's has every CPU
    if (cpusets_.size() >= most_cpusets) cpusets_.clear();
    const auto [at, is_new] = cpusets_.try_emplace(*path);
    if (is_new) {
        const auto& sys = root_->sys();
        at->second = sys.cpu_list("fs/cgroup" + *path + "/cpuset.cpus.effective");
        if (!at->second) at->second = sys.cpu_list("fs/cgroup/cpuset" + *path + "/cpuset.effective_cpus");
    }
    return at->second && !at->second->empty() ? &*at->second : nullptr;
}

std::vector<std::string> FactSources::cpuset_paths() const {
    std::vector<std::string> paths;
    for (const auto& [path, cpus] : cpusets_)
        paths.push_back(path);
    return paths;
}

void FactSources::refresh() {
    cpusets_.clear();
    names_.refresh();
    if (service_) service_->refresh();
    table_.reset();
}

namespace {

constexpr std::size_t cmdline_limit =
    128U << 10; // more than any rule matches; a program may write megabytes there
constexpr std::size_t most_descriptors = 4096; // some 2 ms; servers open their listeners first
constexpr std::size_t small_file = 64U << 10;

/// The second of the numbers after "Key:" (real, effective, saved, file system).
std::optional<unsigned> second_number(std::string_view status, std::string_view key) {
    for (const auto line : split(status, '\n')) {
        if (!line.starts_with(key)) continue;
        const auto words = split_words(line.substr(key.size()));
        return words.size() > 1 ? parse_number<unsigned>(words[1]) : std::nullopt;
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

/// A kernel thread has none, and no memory for which a reader could wait.
std::string LazyFacts::arguments() const {
    auto* lines = sources_ == nullptr ? nullptr : sources_->command_lines();
    if (lines == nullptr || is_kernel())
        return read_file(*root_, cheap_, Of::living, is_complete_, "cmdline", cmdline_limit);
    const auto its = open_folder(*root_, cheap_, Of::living, is_complete_);
    if (!its) return {};
    auto file = its->dir.open_file("cmdline", O_RDONLY);
    if (!file) {
        note(is_complete_, file.error());
        return {};
    }
    auto answer = lines->read(cheap_.id, std::move(*file), cmdline_limit, sources_->owner(cheap_.id.tid));
    if (answer.code == 0) return std::move(answer.text);
    is_silent_ |= answer.code == EAGAIN;
    is_complete_ &= answer.code != EAGAIN;
    note(is_complete_, fail("cannot read", "cmdline", answer.code).error());
    return {};
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

/// Without those of a scanner: the files only.
FactSources& LazyFacts::sources() const {
    if (sources_ != nullptr) return *sources_;
    auto& own = expensive().own;
    if (!own) own = std::make_unique<FactSources>(*root_, AskName{});
    return *own;
}

const std::string& LazyFacts::user() const {
    auto& user = expensive().user;
    if (!user) {
        user = owner().known ? sources().user(owner().uid) : "";
    }
    return *user;
}

const std::string& LazyFacts::group() const {
    auto& group = expensive().group;
    if (!group) {
        group = owner().known ? sources().group(owner().gid) : "";
    }
    return *group;
}

const std::vector<std::uint64_t>& LazyFacts::sockets() const {
    auto& inodes = expensive().inodes;
    if (!inodes) {
        const auto its = is_kernel() ? std::nullopt : open_folder(*root_, cheap_, Of::living, is_complete_);
        auto found = its ? socket_inodes(its->dir, most_descriptors) : std::vector<std::uint64_t>();
        if (!found) note(is_complete_, found.error());
        inodes = std::move(found).value_or(std::vector<std::uint64_t>());
    }
    return *inodes;
}

const std::vector<std::uint16_t>& LazyFacts::listen_ports() const {
    const auto& inodes = sockets();
    auto& ports = expensive().ports;
    if (!ports) {
        ports.emplace();
        const auto its =
            inodes.empty() ? std::nullopt : open_folder(*root_, cheap_, Of::living, is_complete_);
        if (its) {
            auto found = sources().listen_ports(its->path, inodes);
            is_silent_ |= !found; // until the list comes
            is_complete_ &= found.has_value();
            ports = std::move(found).value_or(std::vector<std::uint16_t>{});
        }
    }
    return *ports;
}

const std::vector<std::uint16_t>& LazyFacts::foreign_ports() const {
    const auto& inodes = sockets();
    auto& ports = expensive().foreign_ports;
    if (!ports) {
        ports.emplace();
        if (!inodes.empty())
            if (const auto its = open_folder(*root_, cheap_, Of::living, is_complete_))
                ports = foreign_listen_ports(*root_, its->path, inodes);
    }
    return *ports;
}

} // namespace affinityd::inventory
