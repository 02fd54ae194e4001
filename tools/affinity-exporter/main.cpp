// SPDX-License-Identifier: Apache-2.0
// affinity-exporter: serves the metrics of a running daemon to Prometheus, on sockets that systemd hands
// over.
#include "affinityctl/client/metrics.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <microhttpd.h>
#include <netdb.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

namespace {

using namespace affinityctl;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kept{1}; // the same metrics answer all who ask meanwhile
constexpr std::size_t most_connections = 32;
constexpr std::chrono::seconds longest{10}; // from a connection to the end of its answer
constexpr std::size_t memory_of_connection = 16'384;

/// Asks the daemon at most once a second.
class Source {
  public:
    explicit Source(const Globals& globals) : globals_(globals) {}
    std::string text(MetricsFormat format) {
        const std::lock_guard lock(mutex_);
        if (const auto now = Clock::now(); metrics_.is_null() || now - made_ >= kept) {
            metrics_ = metrics_of(ask());
            made_ = Clock::now();
        }
        return metrics_text(metrics_, format);
    }

  private:
    /// Null: no daemon answers, and the log says why, once.
    nlohmann::json ask() {
        auto answer = status_for_metrics(globals_);
        const auto fault = answer ? "" : answer.error().message;
        if (fault != fault_ && !fault.empty()) fmt::print(stderr, "affinity-exporter: {}\n", fault);
        fault_ = fault;
        return answer.value_or(nlohmann::json());
    }

    const Globals& globals_;
    std::string fault_;
    std::mutex mutex_;
    Clock::time_point made_{};
    nlohmann::json metrics_;
};

/// The open connections, the oldest first. Without room for another, the oldest goes: a request takes
/// milliseconds, so the oldest does not get on.
class Connections {
  public:
    void begin(int fd) {
        const std::lock_guard lock(mutex_);
        if (open_.size() == most_connections) end_oldest();
        if (open_.empty()) ::alarm(longest.count());
        open_.emplace_back(fd, Clock::now());
    }
    void end(int fd) {
        const std::lock_guard lock(mutex_);
        std::erase_if(open_, [fd](const auto& one) { return one.first == fd; });
    }
    /// Ends those whose time is over; SIGALRM comes when the next one's is.
    void end_late() {
        const std::lock_guard lock(mutex_);
        const auto late = Clock::now() - longest;
        while (!open_.empty() && open_.front().second <= late)
            end_oldest();
        if (!open_.empty())
            ::alarm(std::chrono::ceil<std::chrono::seconds>(open_.front().second - late).count());
    }

  private:
    void end_oldest() {
        ::shutdown(open_.front().first, SHUT_RDWR); // its server closes it
        open_.pop_front();
    }
    std::mutex mutex_;
    std::deque<std::pair<int, Clock::time_point>> open_;
};

void note_connection(void* connections, MHD_Connection* connection, void** /*state*/,
                     MHD_ConnectionNotificationCode what) {
    const int fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    auto& all = *static_cast<Connections*>(connections);
    what == MHD_CONNECTION_NOTIFY_STARTED ? all.begin(fd) : all.end(fd);
}

using Response = std::unique_ptr<MHD_Response, decltype(&MHD_destroy_response)>;

MHD_Result send(MHD_Connection* connection, unsigned code, const std::string& text, const char* type) {
    const Response response(
        MHD_create_response_from_buffer(text.size(), const_cast<char*>(text.data()), MHD_RESPMEM_MUST_COPY),
        MHD_destroy_response);
    if (response == nullptr) return MHD_NO;
    MHD_add_response_header(response.get(), MHD_HTTP_HEADER_CONTENT_TYPE, type);
    MHD_add_response_header(response.get(), MHD_HTTP_HEADER_CONNECTION, "close");
    return MHD_queue_response(connection, code, response.get());
}

MHD_Result send_metrics(MHD_Connection* connection, Source& source) {
    const char* accepted = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
    const bool is_open =
        accepted != nullptr && std::strstr(accepted, "application/openmetrics-text") != nullptr;
    try {
        return is_open ? send(connection, MHD_HTTP_OK, source.text(MetricsFormat::open_metrics),
                              "application/openmetrics-text; version=1.0.0; charset=utf-8")
                       : send(connection, MHD_HTTP_OK, source.text(MetricsFormat::prometheus),
                              "text/plain; version=0.0.4; charset=utf-8");
    } catch (const std::exception& error) {
        return send(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, std::string(error.what()) + "\n",
                    "text/plain");
    }
}

/// Called for the header of a request, for each part of its body, and at its end.
MHD_Result take_request(void* source, MHD_Connection* connection, const char* url, const char* method,
                        const char* /*version*/, const char* /*body*/, std::size_t* size, void** state) {
    static int begun = 0;
    if (*state == nullptr || *size > 0) {
        *state = &begun;
        *size = 0;
        return MHD_YES;
    }
    const std::string_view verb = method, path = url;
    if (verb != MHD_HTTP_METHOD_GET && verb != MHD_HTTP_METHOD_HEAD)
        return send(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "GET /metrics\n", "text/plain");
    if (path != "/metrics") return send(connection, MHD_HTTP_NOT_FOUND, "see /metrics\n", "text/plain");
    return send_metrics(connection, *static_cast<Source*>(source));
}

using Server = std::unique_ptr<MHD_Daemon, decltype(&MHD_stop_daemon)>;

Server serve(int socket, Source& source, Connections& connections) {
    return {MHD_start_daemon(MHD_USE_AUTO_INTERNAL_THREAD, 0, nullptr, nullptr, take_request, &source,
                             MHD_OPTION_LISTEN_SOCKET, socket, MHD_OPTION_NOTIFY_CONNECTION, note_connection,
                             &connections, MHD_OPTION_CONNECTION_MEMORY_LIMIT, memory_of_connection,
                             MHD_OPTION_END),
            MHD_stop_daemon};
}

/// Sockets that listen at "ADDRESS:PORT", an IPv6 address in brackets, or ":PORT", any. Empty: that cannot be
/// had.
std::vector<int> listen_at(const std::string& place) {
    errno = 0;
    const auto colon = place.rfind(':');
    auto address = place.substr(0, colon);
    if (address.starts_with('[') && address.ends_with(']')) address = address.substr(1, address.size() - 2);
    const addrinfo wanted{.ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV,
                          .ai_socktype = SOCK_STREAM};
    addrinfo* found = nullptr;
    if (colon == std::string::npos || ::getaddrinfo(address.empty() ? nullptr : address.c_str(),
                                                    place.c_str() + colon + 1, &wanted, &found) != 0)
        return {};
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
    const int socket = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (::bind(socket, found->ai_addr, found->ai_addrlen) != 0 || ::listen(socket, SOMAXCONN) != 0) return {};
    return {socket};
}

/// The sockets that systemd hands over.
std::vector<int> given_sockets() {
    std::vector<int> sockets(static_cast<std::size_t>(std::max(0, sd_listen_fds(1))));
    std::iota(sockets.begin(), sockets.end(), SD_LISTEN_FDS_START);
    return sockets;
}

int run(const Globals& globals, const std::string& place) {
    const auto sockets = place.empty() ? given_sockets() : listen_at(place);
    if (sockets.empty() && !place.empty()) {
        fmt::print(stderr, "affinity-exporter: cannot listen at {}: {}\n", place,
                   errno == 0 ? "this is no ADDRESS:PORT" : std::strerror(errno));
        return exit_usage;
    }
    if (sockets.empty()) {
        fmt::print(stderr, "affinity-exporter: systemd starts it: systemctl enable --now "
                           "affinity-exporter.socket; elsewhere, --listen ADDRESS:PORT\n");
        return exit_usage;
    }
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGTERM, SIGINT, SIGALRM})
        sigaddset(&signals, signal);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr); // in the threads of the servers, too
    Source source(globals);
    Connections connections;
    std::vector<Server> servers;
    for (const int socket : sockets) {
        servers.push_back(serve(socket, source, connections));
        if (servers.back() == nullptr) {
            fmt::print(stderr, "affinity-exporter: socket {} cannot be served\n", servers.size());
            return exit_failure;
        }
    }
    for (int signal = 0; sigwait(&signals, &signal) == 0 && signal == SIGALRM;)
        connections.end_late();
    return exit_ok;
}

} // namespace

int main(int argc, char** argv) {
    Globals globals;
    std::string place;
    CLI::App app("Serves the metrics of affinityd at /metrics, on the sockets that systemd hands over.");
    app.set_version_flag("--version", "affinity-exporter " AFFINITYD_VERSION);
    app.add_option("--runtime-dir", globals.runtime_dir, "the folder of the daemon's socket")
        ->type_name("DIR")
        ->capture_default_str();
    app.add_option("--listen", place, "listen here, where there is no systemd")->type_name("ADDRESS:PORT");
    CLI11_PARSE(app, argc, argv);
    return run(globals, place);
}
