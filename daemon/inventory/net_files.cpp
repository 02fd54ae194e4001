// SPDX-License-Identifier: Apache-2.0
#include "inventory/net_files.hpp"

#include "base/text.hpp"

#include <sys/socket.h>

namespace affinityd::inventory {

constexpr std::array<NetFile, 4> net_files{{{"net/tcp", Protocol::tcp, AF_INET},
                                            {"net/tcp6", Protocol::tcp, AF_INET6},
                                            {"net/udp", Protocol::udp, AF_INET},
                                            {"net/udp6", Protocol::udp, AF_INET6}}};

Result<bool> read_net_file(const host::Root& root, const std::string& folder, const NetFile& file,
                           std::size_t limit, const std::function<void(const LocalSocket&)>& take) {
    const auto text = root.proc().read(folder + file.name, limit);
    if (!text) return std::unexpected(text.error());
    if (!*text) return true;
    std::string_view rest = **text;
    while (!rest.empty()) {
        const auto end = rest.find('\n');
        if (end == std::string_view::npos && (*text)->size() == limit) break; // cut within this line
        if (const auto socket = parse_net_line(rest.substr(0, end), file.protocol)) take(*socket);
        rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    }
    return (*text)->size() < limit;
}

} // namespace affinityd::inventory
