// SPDX-License-Identifier: Apache-2.0
// Files in which others say where interrupts go.
#include "app/other_writers.hpp"
#include "base/text.hpp"
#include "host/root.hpp"

#include <fcntl.h>
#include <fmt/format.h>

namespace affinityd::app {

namespace {

constexpr std::size_t longest_file = 64U << 10; // a script that hides it further down is not found
constexpr std::size_t most_files = 512;         // of one folder

/// Where systemd looks for .link files, systemd.link(5).
constexpr const char* link_folders[] = {"etc/systemd/network", "run/systemd/network",
                                        "usr/local/lib/systemd/network", "usr/lib/systemd/network"};
/// Where scripts are started from at boot, when a link comes up, or by the clock.
constexpr const char* script_folders[] = {"etc/init.d",
                                          "etc/cron.d",
                                          "etc/cron.hourly",
                                          "etc/cron.daily",
                                          "etc/systemd/system",
                                          "etc/network/if-up.d",
                                          "etc/NetworkManager/dispatcher.d",
                                          "var/spool/cron/crontabs"};
constexpr const char* script_files[] = {"etc/rc.local", "etc/rc.d/rc.local", "etc/crontab"};

/// Settings of [Link] that write masks of interrupts or of packet steering.
bool is_link_setting(std::string_view line) {
    return line.starts_with("IRQAffinity") || line.starts_with("ReceivePacketSteeringCPUMask");
}

bool names_script(std::string_view line) {
    return line.find("set_irq_affinity") != std::string_view::npos ||
           line.find("smp_affinity") != std::string_view::npos;
}

/// The first line of the file of which `is_it` holds.
void look_into(const host::Dir& root, const std::string& path, bool (*is_it)(std::string_view),
               OtherWriter writer, std::vector<OtherWriter>& found) {
    const auto text = root.read(path, longest_file);
    if (!text || !*text) return;
    unsigned number = 0;
    for (const auto line : split(**text, '\n')) {
        ++number;
        const auto words = trim_text(line);
        if (words.empty() || words.front() == '#' || words.front() == ';' || !is_it(words)) continue;
        writer.where = fmt::format("/{}:{}", path, number);
        found.push_back(std::move(writer));
        return;
    }
}

} // namespace

std::vector<OtherWriter> find_interrupt_settings(const host::Root& root, std::size_t most) {
    std::vector<OtherWriter> found;
    const auto top = host::Dir::open(AT_FDCWD, root.path(), false);
    if (!top) return found;
    const auto tree = host::Dir::open(top->fd(), ".", !root.is_live());
    if (!tree) return found;
    const OtherWriter link{
        "systemd.link", "",
        "udev sets it whenever the interface comes: remove the setting, or leave the interface to it"};
    const OtherWriter script{
        "script", "", "it sets interrupts when it is run: remove the call, or leave the interface to it"};
    const auto look = [&](const char* folder, std::string_view ending, bool (*is_it)(std::string_view),
                          const OtherWriter& writer) {
        std::size_t files = 0;
        for (const auto& name : tree->list(folder).value_or(std::vector<std::string>{})) {
            if (!name.ends_with(ending)) continue;
            if (found.size() >= most || ++files > most_files) return;
            look_into(*tree, std::string(folder) + "/" + name, is_it, writer, found);
        }
    };
    for (const char* folder : link_folders)
        look(folder, ".link", is_link_setting, link);
    for (const char* folder : script_folders)
        look(folder, "", names_script, script);
    for (const char* file : script_files)
        if (found.size() < most) look_into(*tree, file, names_script, script, found);
    return found;
}

} // namespace affinityd::app
