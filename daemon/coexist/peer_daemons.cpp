// SPDX-License-Identifier: Apache-2.0
#include "coexist/peer_daemons.hpp"

#include "coexist/peer_journal.hpp"
#include "coexist/root_process.hpp"
#include "coexist/trusted_folder.hpp"
#include "host/root.hpp"
#include "inventory/numbered.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace affinityd::coexist {

namespace {

constexpr std::string_view daemon_name = "affinityd";
constexpr std::string_view journal_name = "undo.journal";
constexpr std::size_t most_peers = 16;
constexpr std::size_t most_descriptors = 1024; ///< of one of them

/// Two descriptors or paths lead to one and the same file.
bool is_same(const struct stat& a, const struct stat& b) {
    return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/// Of a link of /proc that leads to a file. No value: it is gone, or the root is no live one, whose links
/// lead nowhere.
std::optional<struct stat> target_of(const host::Root& root, const std::string& link) {
    struct stat status {};
    const auto file = root.is_live() ? root.proc().open_file(link, O_PATH) : fail("not live");
    if (!file || ::fstat(file->get(), &status) != 0) return std::nullopt;
    return status;
}

/// It runs this very program, or one of this name that belongs to root.
bool runs_affinityd(const host::Root& root, int pid) {
    const auto program = target_of(root, std::to_string(pid) + "/exe");
    const auto own = target_of(root, "self/exe");
    if (program && own && is_same(*program, *own)) return true;
    const bool is_roots = !root.is_live() || (program && program->st_uid == 0);
    return is_roots && program_name(root, pid) == daemon_name;
}

/// Folder of the undo journal that the process has open.
std::optional<std::string> journal_folder(const host::Root& root, int pid, std::string& link) {
    auto descriptors = inventory::NumberedEntries::open(root.proc(), std::to_string(pid) + "/fd");
    for (std::size_t i = 0; descriptors && i < most_descriptors; ++i) {
        const auto number = descriptors->next();
        if (!number || !*number) break;
        link = std::to_string(pid) + "/fd/" + std::to_string(**number);
        auto path = root.proc().link(link);
        if (!path || !path->starts_with('/') || !path->ends_with(journal_name)) continue;
        path->resize(path->size() - journal_name.size());
        if (path->size() < 2 || path->back() != '/') continue;
        path->pop_back();
        return path;
    }
    return std::nullopt;
}

/// Opens a peer's journal by its path and makes sure that it is the file that the peer has open: a process in
/// a container means other files by the same path.
std::optional<host::Fd> open_journal(const host::Root& root, const std::string& path,
                                     const std::string& link) {
    const auto folder = TrustedFolder::open(root.path(), path);
    if (!folder) return std::nullopt;
    auto file = folder->open_file(std::string(journal_name));
    if (!file || !*file) return std::nullopt;
    struct stat status {};
    if (::fstat((*file)->get(), &status) != 0) return std::nullopt;
    const auto theirs = target_of(root, link);
    if (root.is_live() && (!theirs || !is_same(status, *theirs))) return std::nullopt;
    return std::move(**file);
}

} // namespace

/// A search under way.
struct PeerDaemons::Search {
    std::vector<int> left;     ///< processes still to be looked at
    std::string runtime_dir{}; ///< of the one whose journal is being read
    std::optional<PeerJournal> journal{};
    std::vector<PeerDaemon> found{};

    [[nodiscard]] bool is_found(const std::string& folder) const {
        return std::ranges::find(found, folder, &PeerDaemon::runtime_dir) != found.end();
    }
    void begin_next(const host::Root& root, const std::string& own_folder) {
        const int pid = left.back();
        left.pop_back();
        if (!runs_affinityd(root, pid)) return;
        std::string link;
        auto folder = journal_folder(root, pid, link);
        if (!folder || is_found(*folder)) return;
        auto file = open_journal(root, *folder, link);
        if (!file || is_in(file->get(), own_folder)) return;
        runtime_dir = std::move(*folder);
        journal.emplace(std::move(*file));
    }
    /// A process that this daemon has just forked holds its descriptors.
    static bool is_in(int file, const std::string& own_folder) {
        struct stat theirs {};
        struct stat own {};
        return ::fstat(file, &theirs) == 0 &&
               ::stat((own_folder + "/" + std::string(journal_name)).c_str(), &own) == 0 &&
               is_same(theirs, own);
    }
    void take() {
        auto shared = journal->take_shared();
        journal.reset();
        if (!shared.empty()) found.push_back({std::move(runtime_dir), std::move(shared)});
    }
};

PeerDaemons::PeerDaemons(const host::Root& root, std::string runtime_dir)
    : root_(&root), runtime_dir_(std::move(runtime_dir)),
      own_name_(root.is_live() ? root.proc().text("self/comm").value_or("") : "") {}
PeerDaemons::PeerDaemons(PeerDaemons&&) noexcept = default;
PeerDaemons& PeerDaemons::operator=(PeerDaemons&&) noexcept = default;
PeerDaemons::~PeerDaemons() = default;

void PeerDaemons::begin_pass() { seen_.clear(); }

void PeerDaemons::see(int pid, std::string_view comm) {
    if (comm != daemon_name && comm != own_name_) return;
    if (pid == ::getpid() && root_->is_live()) return;
    if (is_roots_process(*root_, pid)) seen_.push_back(pid);
}

void PeerDaemons::finish_pass() {
    search_ = std::make_unique<Search>(Search{.left = std::exchange(seen_, {})});
}

bool PeerDaemons::step(const state::Journal& own, const std::function<bool()>& out_of_time) {
    while (search_ && (search_->journal || !search_->left.empty())) {
        if (!search_->journal)
            search_->begin_next(*root_, runtime_dir_);
        else if (search_->journal->step(own, out_of_time))
            search_->take();
        if (search_->found.size() >= most_peers) search_->left.clear();
        if (out_of_time()) return false;
    }
    if (search_) {
        found_ = std::move(search_->found);
        std::ranges::sort(found_, {}, &PeerDaemon::runtime_dir);
    }
    search_.reset();
    return true;
}

} // namespace affinityd::coexist
