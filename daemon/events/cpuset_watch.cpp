// SPDX-License-Identifier: Apache-2.0
#include "events/cpuset_watch.hpp"

#include <filesystem>

#include <sys/inotify.h>

namespace affinityd::events {

namespace {

constexpr std::size_t most_files = 1024;

} // namespace

CpusetWatch::CpusetWatch(sd_event* event, std::string base, Changed changed)
    : event_(event), base_(std::move(base)), changed_(std::move(changed)) {
    std::error_code ignored;
    // Version 1 has a hierarchy of its own for them.
    if (!std::filesystem::exists(base_ + "/cgroup.controllers", ignored) &&
        std::filesystem::is_directory(base_ + "/cpuset", ignored))
        base_ += "/cpuset";
}

void CpusetWatch::want(const std::string& folder, std::map<std::string, Source>& wanted) {
    // The second is written when cpusets are enabled below it: then every process there is in one, with all
    // of its CPUs.
    for (const char* name : {"/cpuset.cpus", "/cgroup.subtree_control"}) {
        auto file = folder + name;
        if (wanted.contains(file) || wanted.size() >= most_files) continue;
        sd_event_source* source = nullptr;
        if (sd_event_add_inotify(event_, &source, file.c_str(), IN_MODIFY | IN_DELETE_SELF, on_written,
                                 this) >= 0)
            wanted.emplace(std::move(file), Source(source));
    }
}

void CpusetWatch::follow(const std::vector<std::string>& cpusets) {
    // All are watched anew: a group of the same name may be another one by now. The old watches stay until
    // then.
    std::map<std::string, Source> wanted;
    want(base_, wanted);
    for (const auto& cpuset : cpusets)
        for (auto end = cpuset.find('/', 1);; end = cpuset.find('/', end + 1)) {
            want(base_ + cpuset.substr(0, end), wanted);
            if (end == std::string::npos) break;
        }
    watches_ = std::move(wanted);
}

int CpusetWatch::on_written(sd_event_source*, const inotify_event* event, void* userdata) {
    // A group that is gone took its processes with it, or was made anew, which the next follow() finds.
    if ((event->mask & IN_MODIFY) != 0) static_cast<CpusetWatch*>(userdata)->changed_();
    return 0;
}

} // namespace affinityd::events
