// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/root.hpp"
#include "machine/reader.hpp"
#include "netdev/reader.hpp"
#include "topology/reader.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <unistd.h>

/// Machines that others recorded: archives of /sys and /proc in the folder that AFFINITYD_TOPOLOGIES names,
/// or else AFFINITYD_TOPOLOGIES_DEFAULT.
namespace affinityd::planner::test {

inline std::string setting(const char* name, const char* otherwise) {
    const char* value = std::getenv(name);
    if (value == nullptr) value = std::getenv(otherwise);
    return value == nullptr ? "" : value;
}

inline std::filesystem::path recordings_folder() {
    return setting("AFFINITYD_TOPOLOGIES", "AFFINITYD_TOPOLOGIES_DEFAULT");
}

/// Names of those whose archive has at most `largest` bytes, sorted; none if there is no folder.
inline std::vector<std::string> recordings(std::uintmax_t largest) {
    std::vector<std::string> names;
    std::error_code code;
    for (const auto& entry : std::filesystem::directory_iterator(recordings_folder(), code))
        if (const auto size = std::filesystem::file_size(entry.path() / "root.tar.gz", code);
            !code && size <= largest)
            names.push_back(entry.path().filename().string());
    std::ranges::sort(names);
    return names;
}

/// A folder of its own, in memory where that can be: recordings are thousands of small files.
class ScratchFolder {
  public:
    ScratchFolder() {
        const std::filesystem::path memory = "/dev/shm";
        const bool can_use_memory = ::access(memory.c_str(), W_OK) == 0;
        std::string name =
            ((can_use_memory ? memory : std::filesystem::temp_directory_path()) / "affinityd-recorded-XXXXXX")
                .string();
        if (::mkdtemp(name.data()) != nullptr) path_ = name;
    }
    ~ScratchFolder() {
        std::error_code code;
        if (!path_.empty()) std::filesystem::remove_all(path_, code);
    }
    ScratchFolder(const ScratchFolder&) = delete;
    ScratchFolder& operator=(const ScratchFolder&) = delete;
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

/// A recorded machine; no value if it cannot be read.
inline std::optional<machine::Machine> read_recording(const std::string& name) {
    const ScratchFolder folder;
    const auto archive = recordings_folder() / name / "root.tar.gz";
    const auto unpack = "tar -xzf '" + archive.string() + "' -C '" + folder.path().string() + "'";
    if (std::system(unpack.c_str()) != 0) return std::nullopt;
    const auto top = std::filesystem::exists(folder.path() / "sys")
                         ? folder.path()
                         : std::filesystem::directory_iterator(folder.path())->path();
    const auto root = host::Root::open(top.string());
    if (!root) return std::nullopt;
    auto topology = topology::read_topology(*root);
    auto nics = netdev::read_nics(*root);
    auto irqs = machine::read_irqs(*root);
    if (!topology || !nics || !irqs) return std::nullopt;
    machine::Machine machine{std::move(*topology), std::move(*nics), std::move(*irqs)};
    machine::link_vectors(machine);
    return machine;
}

} // namespace affinityd::planner::test
