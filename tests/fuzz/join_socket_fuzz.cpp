// SPDX-License-Identifier: Apache-2.0
// Any bytes over a real connection: cut into packets, some with descriptors beside them, sent and read or
// not, closed or left open. The socket must answer or disconnect each, and keep no descriptor.
#include "control/join_clients.hpp"
#include "control/joins.hpp"
#include "support/sent_file.hpp"

#include <cstdlib>
#include <list>

#include <fcntl.h>
#include <unistd.h>

namespace {

using namespace affinityd;

struct Server {
    sd_event* event = nullptr;
    std::string folder = "/tmp/join-fuzz-XXXXXX";
    affinityd::test::FakeJoining joining;
    std::unique_ptr<control::JoinSocket> socket;
    std::list<host::Fd> clients;
    Server() {
        if (::mkdtemp(folder.data()) == nullptr || sd_event_new(&event) < 0) std::abort();
        auto started = control::JoinSocket::start(event, path(), joining);
        if (!started) std::abort();
        socket = std::move(*started);
    }
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;
    ~Server() {
        socket.reset();
        ::rmdir(folder.c_str());
        sd_event_unref(event);
    }
    [[nodiscard]] std::string path() const { return folder + "/join"; }
};

void send(int fd, const std::uint8_t* data, std::size_t size, bool with_descriptor) {
    if (with_descriptor)
        static_cast<void>(affinityd::test::send_with_file(fd, data, size, STDERR_FILENO));
    else
        static_cast<void>(::send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static Server server;
    while (size >= 2) {
        const auto how = data[0];
        const std::size_t part = std::min<std::size_t>(data[1], size - 2);
        auto client = affinityd::test::connect_join(server.path());
        if (client) {
            if ((how & 1) != 0) send(client.get(), data + 2, part, (how & 2) != 0);
            if ((how & 4) != 0) send(client.get(), data + 2, part, false);
            if ((how & 8) != 0) ::shutdown(client.get(), (how & 16) != 0 ? SHUT_RD : SHUT_WR);
            if ((how & 32) != 0) server.clients.push_back(std::move(client));
        }
        if (server.clients.size() > 100) server.clients.pop_front();
        while (sd_event_run(server.event, 0) > 0) {
        }
        data += 2 + part;
        size -= 2 + part;
    }
    server.joining.asked.clear();
    server.joining.were_alive.clear();
    // Counts what the process has itself, and 100 clients and 64 that said nothing, with a handle for each.
    const host::Fd next(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (next.get() > 400) std::abort();
    return 0;
}
