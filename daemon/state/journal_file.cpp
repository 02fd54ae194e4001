// SPDX-License-Identifier: Apache-2.0
#include "state/journal_file.hpp"

#include "host/file.hpp"
#include "state/journal_line.hpp"

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace affinityd::state {

namespace {

bool cut_off(int fd, ssize_t bytes) {
    const off_t end = ::lseek(fd, 0, SEEK_END);
    return end >= bytes && ::ftruncate(fd, end - bytes) == 0;
}

} // namespace

JournalFile::~JournalFile() { give_up_rewrite(); }

Result<void> JournalFile::replace(std::string_view text) {
    if (is_memory_only()) return {};
    give_up_rewrite();
    const auto whole = header().append(text);
    if (auto done = host::replace_file(path_, whole, 0600); !done) return done;
    file_.reset(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW));
    if (!file_) return fail("cannot open the undo journal", path_, errno);
    bytes_ = whole_bytes_ = whole.size();
    torn_ = false;
    return {};
}

Result<void> JournalFile::use_as_it_is(std::string_view text) {
    file_.reset(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file_) return fail("cannot open the undo journal", path_, errno);
    torn_ = !text.empty() && !text.ends_with('\n');
    bytes_ = whole_bytes_ = text.size();
    return {};
}

bool JournalFile::is_bloated() const {
    constexpr std::size_t smallest = 1U << 20, growth = 4;
    return bytes_ >= smallest && bytes_ >= growth * whole_bytes_;
}

Result<void> JournalFile::append(const std::string& line) {
    if (is_memory_only()) return {};
    const std::string after_torn = torn_ ? "\n" + line : "";
    const std::string_view text = torn_ ? after_torn : line;
    const auto written = ::write(file_.get(), text.data(), text.size());
    if (written == static_cast<ssize_t>(text.size())) {
        torn_ = false;
        bytes_ += text.size();
        add_to_rewrite(line);
        return {};
    }
    const int code = written < 0 ? errno : ENOSPC;
    // Part of a line was written. If it cannot be cut off again, the next record begins with a line end, so
    // that it has a line of its own.
    if (written > 0 && !cut_off(file_.get(), written)) torn_ = true;
    return fail("cannot write the undo journal", path_, code);
}

bool JournalFile::is_in_place() const {
    if (is_memory_only() || !file_) return true;
    struct stat ours {
    }, there{};
    if (::fstat(file_.get(), &ours) != 0) return true; // nothing is known
    if (::lstat(path_.c_str(), &there) != 0) return errno != ENOENT && errno != ENOTDIR;
    return ours.st_ino == there.st_ino && ours.st_dev == there.st_dev &&
           static_cast<std::size_t>(ours.st_size) >= bytes_;
}

void JournalFile::begin_rewrite() {
    if (is_memory_only()) return;
    const auto path = rewrite_path();
    ::unlink(path.c_str()); // left by a daemon that was killed
    rewrite_.reset(
        ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    rewritten_bytes_ = 0;
    add_to_rewrite(header());
}

void JournalFile::add_to_rewrite(std::string_view text) {
    if (!rewrite_ || text.empty()) return;
    rewritten_bytes_ += text.size();
    if (::write(rewrite_.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
        give_up_rewrite();
}

void JournalFile::finish_rewrite() {
    if (!rewrite_) return;
    if (::rename(rewrite_path().c_str(), path_.c_str()) != 0) return give_up_rewrite();
    file_ = std::move(rewrite_);
    bytes_ = whole_bytes_ = rewritten_bytes_;
    torn_ = false;
}

void JournalFile::give_up_rewrite() {
    if (!rewrite_) return;
    rewrite_.reset();
    ::unlink(rewrite_path().c_str());
}

} // namespace affinityd::state
