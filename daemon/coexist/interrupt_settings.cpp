// SPDX-License-Identifier: Apache-2.0
#include "coexist/interrupt_settings.hpp"

#include "base/text.hpp"
#include "host/root.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace affinityd::coexist {

namespace {

constexpr std::size_t longest_file = 64U << 10; ///< a setting further down is not found
constexpr std::size_t most_files = 512;         ///< of one folder

/// Settings of [Link] that write masks of interrupts or of packet steering.
bool is_link_setting(std::string_view line) {
    return line.starts_with("IRQAffinity") || line.starts_with("ReceivePacketSteeringCPUMask");
}

bool names_script(std::string_view line) {
    return line.find("set_irq_affinity") != std::string_view::npos ||
           line.find("smp_affinity") != std::string_view::npos;
}

/// What is looked for in a kind of files.
struct Kind {
    const char* name;
    const char* note;
    const char* ending; ///< of file names
    bool (*is_it)(std::string_view line);
};
constexpr Kind link{
    "systemd.link",
    "udev sets it whenever the interface comes: remove the setting, or leave the interface to it", ".link",
    is_link_setting};
constexpr Kind script{"script",
                      "it sets interrupts when it is run: remove the call, or leave the interface to it", "",
                      names_script};

/// A folder, or a file that is looked at whatever its name.
struct Place {
    const char* path;
    const Kind* kind;
    bool is_file = false;
};
/// Where systemd looks for .link files, systemd.link(5), and where scripts are started from at boot, when a
/// link comes up, or by the clock.
constexpr std::array places{Place{"etc/systemd/network", &link},
                            Place{"run/systemd/network", &link},
                            Place{"usr/local/lib/systemd/network", &link},
                            Place{"usr/lib/systemd/network", &link},
                            Place{"etc/init.d", &script},
                            Place{"etc/cron.d", &script},
                            Place{"etc/cron.hourly", &script},
                            Place{"etc/cron.daily", &script},
                            Place{"etc/systemd/system", &script},
                            Place{"etc/network/if-up.d", &script},
                            Place{"etc/NetworkManager/dispatcher.d", &script},
                            Place{"var/spool/cron/crontabs", &script},
                            Place{"etc/rc.local", &script, true},
                            Place{"etc/rc.d/rc.local", &script, true},
                            Place{"etc/crontab", &script, true}};

/// Root (or this process's own user) owns it.
bool is_owner_trusted_here(const struct stat& status) {
    return status.st_uid == 0 || status.st_uid == ::geteuid();
}

bool is_written_by_others(const struct stat& status) { return (status.st_mode & (S_IWGRP | S_IWOTH)) != 0; }

/// The beginning of a regular file that nobody but root (or this process's own user) can have written.
std::optional<std::string> read_trusted(const host::Dir& tree, const std::string& path) {
    const auto file = tree.open_file(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    struct stat status {};
    if (!file || ::fstat(file->get(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
    if (!is_owner_trusted_here(status) || is_written_by_others(status)) return std::nullopt;
    std::string text(longest_file, '\0');
    const auto got = ::read(file->get(), text.data(), text.size());
    if (got <= 0) return std::nullopt;
    text.resize(static_cast<std::size_t>(got));
    return text;
}

/// Names of files in a folder, sorted, at most `most_files`; none where others can put files and links in
/// root's name: the folder is theirs, or they can write to it and it is not sticky, as crontabs is.
std::vector<std::string> names_in(const host::Dir& tree, const Place& place) {
    std::vector<std::string> names;
    auto folder = tree.open_file(place.path, O_RDONLY | O_DIRECTORY);
    struct stat status {};
    if (!folder || ::fstat(folder->get(), &status) != 0 || !is_owner_trusted_here(status)) return names;
    if (is_written_by_others(status) && (status.st_mode & S_ISVTX) == 0) return names;
    DIR* stream = ::fdopendir(folder->get());
    if (stream == nullptr) return names;
    static_cast<void>(folder->release()); // the stream owns it now
    while (const dirent* entry = names.size() < most_files ? ::readdir(stream) : nullptr) {
        const std::string_view name = entry->d_name;
        if (!name.starts_with('.') && name.ends_with(place.kind->ending)) names.emplace_back(name);
    }
    ::closedir(stream);
    std::ranges::sort(names);
    return names;
}

/// The first line of the text that sets a mask.
std::optional<OtherWriter> find_in(const std::string& text, const std::string& path, const Kind& kind) {
    unsigned number = 0;
    for (const auto line : split(text, '\n')) {
        ++number;
        const auto words = trim_text(line);
        if (words.empty() || words.front() == '#' || words.front() == ';' || !kind.is_it(words)) continue;
        return OtherWriter{kind.name, fmt::format("/{}:{}", path, number), kind.note};
    }
    return std::nullopt;
}

} // namespace

/// A search under way.
struct InterruptSettings::Search {
    host::Dir tree;
    std::size_t next_place = 0;
    const Place* place = nullptr;
    std::vector<std::string> files{}; ///< of the place, still to be read; the next is last
    std::vector<OtherWriter> found{};

    /// False: all files have been read.
    bool read_next() {
        while (files.empty()) {
            if (next_place == places.size()) return false;
            place = &places[next_place++];
            if (place->is_file) {
                files.emplace_back(place->path);
                continue;
            }
            for (const auto& name : names_in(tree, *place))
                files.push_back(std::string(place->path) + "/" + name);
            std::ranges::reverse(files);
        }
        const std::string path = std::move(files.back());
        files.pop_back();
        if (const auto text = read_trusted(tree, path))
            if (auto writer = find_in(*text, path, *place->kind)) found.push_back(std::move(*writer));
        return true;
    }
};

InterruptSettings::InterruptSettings(const host::Root& root, std::size_t most) : root_(&root), most_(most) {}
InterruptSettings::InterruptSettings(InterruptSettings&&) noexcept = default;
InterruptSettings& InterruptSettings::operator=(InterruptSettings&&) noexcept = default;
InterruptSettings::~InterruptSettings() = default;

void InterruptSettings::begin() {
    search_.reset();
    const auto top = host::Dir::open(AT_FDCWD, root_->path(), false);
    if (!top) return;
    auto tree = host::Dir::open(top->fd(), ".", !root_->is_live());
    if (tree) search_ = std::make_unique<Search>(Search{.tree = std::move(*tree)});
}

bool InterruptSettings::step(const std::function<bool()>& out_of_time) {
    while (search_ && search_->found.size() < most_ && search_->read_next())
        if (out_of_time()) return false;
    if (search_) found_ = std::move(search_->found);
    search_.reset();
    return true;
}

} // namespace affinityd::coexist
