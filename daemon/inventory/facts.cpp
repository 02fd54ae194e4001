// SPDX-License-Identifier: Apache-2.0
#include "inventory/facts.hpp"

#include "base/text.hpp"
#include "host/fd.hpp"
#include "inventory/process_files.hpp"

#include <algorithm>
#include <array>
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
    // The program lies on the mount that this machine has at that place, so the path is no other's: the file
    // was removed or replaced while it runs, or something was mounted over it.
    if (running->mount != 0) {
        if (running->mount == folder->mount) return true;
    } else if (has_first_processes_mounts(root, process)) {
        return true;
    }
    // The same in the mount namespace of a service. All that is known of its mounts is that root made them.
    return program.is_removed && running->device == folder->device && running->is_roots() &&
           is_in_namespace_of_roots(root, process);
}

namespace {

constexpr std::size_t most_cpusets = 65536;
constexpr std::size_t most_pods = 16384;
constexpr std::size_t most_config = 4U << 20; // a pod's own text, which is most of it, has at most 1.5 MB

/// Folders of containers, with an end of the path to their config.json, and the annotations by which their
/// runtime names a pod: containerd pkg/cri/annotations; CRI-O pkg/annotations. Others may be the pod's own.
struct Bundles {
    const char *folder, *end, *name, *space;
};
constexpr const char* cri_name = "io.kubernetes.cri.sandbox-name";
constexpr const char* cri_space = "io.kubernetes.cri.sandbox-namespace";
constexpr std::array bundles{
    Bundles{"containerd/io.containerd.runtime.v2.task/k8s.io/", "/config.json", cri_name, cri_space},
    Bundles{"k3s/containerd/io.containerd.runtime.v2.task/k8s.io/", "/config.json", cri_name, cri_space},
    Bundles{"containers/storage/overlay-containers/", "/userdata/config.json", "io.kubernetes.pod.name",
            "io.kubernetes.pod.namespace"}};

/// The text at a key of a JSON object, wherever that is; "": there is none. Inside of a JSON text a quote is
/// escaped, so that a name in quotes with a colon behind it is a key. Names of pods need no escape.
std::string text_at(std::string_view json, std::string_view key) {
    constexpr std::string_view blank = " \t\r\n";
    const auto quoted = '"' + std::string(key) + '"';
    for (auto at = json.find(quoted); at != std::string_view::npos; at = json.find(quoted, at + 1)) {
        auto rest = json.substr(at + quoted.size());
        const auto skip_to = [&](char wanted) {
            const auto found = rest.find_first_not_of(blank);
            if (found == std::string_view::npos || rest[found] != wanted) return false;
            rest.remove_prefix(found + 1);
            return true;
        };
        if (skip_to(':') && skip_to('"')) return std::string(rest.substr(0, rest.find('"')));
    }
    return {};
}

} // namespace

bool tells_pods(const host::Root& root) {
    return std::ranges::any_of(bundles, [&](const auto& one) { return root.run().exists(one.folder); });
}

const Pod& FactSources::pod(const std::string& container) {
    if (pods_.size() >= most_pods) pods_.clear();
    const auto [at, is_new] = pods_.try_emplace(container);
    for (auto one = bundles.begin(); is_new && at->second.name.empty() && one != bundles.end(); ++one) {
        const auto text = root_->run().read(one->folder + container + one->end, most_config);
        if (text && *text) at->second = {text_at(**text, one->name), text_at(**text, one->space)};
        if (text) continue;
        static const Pod unknown;
        pods_.erase(at); // it could not be read: the next look tries again
        return unknown;
    }
    return at->second;
}

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
    if (!uid || *uid == 0) return uid ? 0 : gone;
    const auto map = root_->proc().text(std::to_string(pid) + "/uid_map").value_or("");
    const auto first = split_words(std::string_view(map).substr(0, map.find('\n')));
    const bool is_in_one = first.size() == 3 && first[2] != "4294967295";
    return person(is_in_one ? parse_number<uid_t>(first[1]).value_or(*uid) : *uid);
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

/// The folder of a process below /proc.
struct Folder {
    host::Dir dir;
    std::string path;
};

template <class Fact, class Read>
const Fact& once(std::optional<Fact>& kept, Read read) {
    if (!kept) kept = read();
    return *kept;
}

class LazyFacts final : public ProcessFacts {
  public:
    LazyFacts(const host::Root& root, FactSources* sources, CheapFacts cheap)
        : root_(&root), sources_(sources), cheap_(std::move(cheap)) {}

    [[nodiscard]] TaskId id() const override { return cheap_.id; }
    [[nodiscard]] int parent() const override { return cheap_.parent; }
    [[nodiscard]] bool is_kernel() const override { return (cheap_.flags & pf_kthread) != 0; }
    [[nodiscard]] const std::string& comm() const override { return cheap_.comm; }
    [[nodiscard]] const std::string& exe() const override { return program().path; }
    [[nodiscard]] bool is_exe_true() const override {
        return once(expensive().is_exe_true, [&] {
            const auto its = open();
            return its ? noted(is_program_of_this_machine(*root_, its->dir, program())).value_or(false)
                       : false;
        });
    }
    [[nodiscard]] const std::string& cmdline() const override {
        return once(expensive().cmdline, [&] {
            auto text = arguments();
            while (!text.empty() && text.back() == '\0') // programs that rewrite it leave many
                text.pop_back();
            std::ranges::replace(text, '\0', ' ');
            return text;
        });
    }
    [[nodiscard]] const std::string& cgroup() const override {
        return once(expensive().cgroup, [&] { return cgroup_of(read(open(), "cgroup", small_file)); });
    }
    [[nodiscard]] unsigned uid() const override { return owner().uid; }
    [[nodiscard]] unsigned gid() const override { return owner().gid; }
    [[nodiscard]] const std::string& user() const override {
        return once(expensive().user, [&]() -> std::string {
            if (uid() == unknown) return "";
            return sources_ != nullptr ? sources_->user(uid()) : std::to_string(uid());
        });
    }
    [[nodiscard]] const std::string& group() const override {
        return once(expensive().group, [&]() -> std::string {
            if (uid() == unknown) return "";
            return sources_ != nullptr ? sources_->group(gid()) : std::to_string(gid());
        });
    }
    [[nodiscard]] const std::vector<std::uint16_t>& listen_ports() const override {
        return once(expensive().ports, [&] {
            const auto its = sources_ == nullptr || sockets().empty() ? std::nullopt : open();
            if (!its) return std::vector<std::uint16_t>{};
            auto found = sources_->listen_ports(its->path, sockets());
            if (!found) await(); // the list
            return std::move(found).value_or(std::vector<std::uint16_t>{});
        });
    }
    [[nodiscard]] const std::vector<std::uint16_t>& foreign_ports() const override {
        return once(expensive().foreign_ports, [&] {
            const auto its = sockets().empty() ? std::nullopt : open();
            return its ? foreign_listen_ports(*root_, its->path, sockets()) : std::vector<std::uint16_t>{};
        });
    }
    [[nodiscard]] const Pod& pod(const std::string& container) const override {
        return sources_ != nullptr ? sources_->pod(container) : ProcessFacts::pod(container);
    }
    [[nodiscard]] bool is_complete() const override { return is_complete_; }
    [[nodiscard]] bool is_silent() const override { return is_silent_; }

  private:
    /// No user can have this id: what cannot be read must not pass for root.
    static constexpr unsigned unknown = ~0U;
    struct Expensive {
        std::optional<Program> program;
        std::optional<bool> is_exe_true;
        std::optional<std::string> cmdline, cgroup, user, group;
        std::optional<EffectiveIds> owner;
        std::optional<std::vector<std::uint64_t>> inodes; ///< of its sockets
        std::optional<std::vector<std::uint16_t>> ports, foreign_ports;
    };
    [[nodiscard]] Expensive& expensive() const {
        if (!expensive_) expensive_ = std::make_unique<Expensive>();
        return *expensive_;
    }
    [[nodiscard]] const Program& program() const {
        return once(expensive().program, [&] {
            const auto its = open();
            return program_of(its ? its->dir.link("exe").value_or("") : "");
        });
    }
    [[nodiscard]] const EffectiveIds& owner() const {
        return once(expensive().owner, [&] {
            return parse_effective_ids(read(open_leader(), "status", small_file))
                .value_or(EffectiveIds{unknown, unknown});
        });
    }
    [[nodiscard]] const std::vector<std::uint64_t>& sockets() const {
        return once(expensive().inodes, [&] {
            const auto its = is_kernel() ? std::nullopt : open();
            return its ? noted(socket_inodes(its->dir, most_descriptors))
                             .value_or(std::vector<std::uint64_t>{})
                       : std::vector<std::uint64_t>{};
        });
    }
    [[nodiscard]] std::string arguments() const;
    [[nodiscard]] std::optional<Folder> open_leader() const;
    [[nodiscard]] std::optional<Folder> open() const;
    [[nodiscard]] std::string read(const std::optional<Folder>& folder, const char* name,
                                   std::size_t limit) const;
    /// The result, after a look at why there is none.
    template <class Found>
    [[nodiscard]] Result<Found> noted(Result<Found> found) const {
        if (!found) note(found.error().code);
        return found;
    }
    /// The answer is not there yet.
    void await() const {
        is_silent_ = true;
        is_complete_ = false;
    }
    void note(int code) const {
        if (code == EMFILE || code == ENFILE || code == ENOMEM) is_complete_ = false;
    }

    const host::Root* root_;
    FactSources* sources_;
    CheapFacts cheap_;
    mutable std::unique_ptr<Expensive> expensive_; ///< none for the many processes that are never asked
    mutable bool is_complete_ = true;
    mutable bool is_silent_ = false;
};

/// If it is still the same process.
std::optional<Folder> LazyFacts::open_leader() const {
    auto path = std::to_string(cheap_.id.tid);
    auto dir = noted(root_->proc().dir(path));
    if (!dir) return std::nullopt;
    const auto text = noted(dir->read("stat", small_file)).value_or(std::nullopt);
    const auto line = text ? parse_stat(*text) : std::nullopt;
    if (!line || line->start_time != cheap_.id.start_time) return std::nullopt; // it is another's now
    return Folder{std::move(*dir), std::move(path)};
}

/// The folder of a thread that lives: a main thread that has ended has given back program and descriptors.
std::optional<Folder> LazyFacts::open() const {
    auto leader = open_leader();
    if (!leader || !cheap_.is_leader_dead) return leader;
    const auto thread = living_thread(leader->dir, cheap_.id.tid);
    auto its = thread ? noted(leader->dir.dir(*thread)) : fail("no thread lives");
    if (!its) return std::nullopt;
    return Folder{std::move(*its), leader->path + "/" + *thread};
}

std::string LazyFacts::read(const std::optional<Folder>& folder, const char* name, std::size_t limit) const {
    if (!folder) return {};
    return noted(folder->dir.read(name, limit)).value_or(std::nullopt).value_or("");
}

/// A kernel thread has none, and no memory for which a reader could wait.
std::string LazyFacts::arguments() const {
    auto* lines = sources_ == nullptr ? nullptr : sources_->command_lines();
    const auto its = open();
    if (lines == nullptr || is_kernel()) return read(its, "cmdline", cmdline_limit);
    if (!its) return {};
    auto file = noted(its->dir.open_file("cmdline", O_RDONLY));
    if (!file) return {};
    auto answer = lines->read(cheap_.id, std::move(*file), cmdline_limit, sources_->owner(cheap_.id.tid));
    if (answer.code == 0) return std::move(answer.text);
    note(answer.code);
    if (answer.code == EAGAIN) await();
    return {};
}

} // namespace

std::shared_ptr<ProcessFacts> lazy_facts(const host::Root& root, FactSources* sources, CheapFacts cheap) {
    return std::make_shared<LazyFacts>(root, sources, std::move(cheap));
}

std::optional<EffectiveIds> parse_effective_ids(std::string_view status) {
    const auto uid = second_number(status, "Uid:");
    const auto gid = second_number(status, "Gid:");
    if (!uid || !gid) return std::nullopt;
    return EffectiveIds{*uid, *gid};
}

} // namespace affinityd::inventory
