// SPDX-License-Identifier: Apache-2.0
#include "steer/reads.hpp"

#include <cstdlib>

#include <fcntl.h>
#include <systemd/sd-daemon.h>

namespace affinityd::steer {

Kept Kept::inherited() {
    Kept kept;
    char** names = nullptr;
    const int count = ::sd_listen_fds_with_names(1, &names);
    for (int i = 0; i < count; ++i) {
        host::Fd fd(SD_LISTEN_FDS_START + i);
        if (const std::string name = names[i]; name.starts_with("steer-")) kept.fds_[name] = std::move(fd);
        std::free(names[i]); // as sd_listen_fds_with_names(3) says
    }
    std::free(static_cast<void*>(names));
    return kept;
}

int Kept::find(const std::string& name) const {
    const auto found = fds_.find("steer-" + name);
    return found == fds_.end() ? -1 : found->second.get();
}

std::set<std::uint64_t> Kept::spaces() const {
    std::set<std::uint64_t> found;
    for (const auto& [name, fd] : fds_)
        if (const auto space = std::strtoull(name.c_str() + sizeof "steer-" - 1, nullptr, 10); space != 0)
            found.insert(space);
    return found;
}

void Kept::store(const std::string& name, int fd) {
    const auto text = "FDSTORE=1\nFDPOLL=0\nFDNAME=steer-" + name;
    if (::sd_pid_notify_with_fds(0, 0, text.c_str(), &fd, 1) > 0)
        fds_["steer-" + name] = host::Fd(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
}

void Kept::remove(const std::string& name) {
    if (fds_.erase("steer-" + name) > 0) ::sd_notify(0, ("FDSTOREREMOVE=1\nFDNAME=steer-" + name).c_str());
}

void Kept::remove_all() {
    while (!fds_.empty())
        remove(fds_.begin()->first.substr(sizeof "steer-" - 1));
}

} // namespace affinityd::steer
