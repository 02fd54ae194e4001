// SPDX-License-Identifier: Apache-2.0
// Owns names on a message bus and never answers a call: a polkit or a systemd that hangs. Ends with standard
// input. usage: silent_service ADDRESS NAME...
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <poll.h>
#include <systemd/sd-bus.h>

namespace {

int complain(const char* what, int status) {
    std::fprintf(stderr, "silent_service: %s: %s\n", what, std::strerror(-status));
    return 1;
}

/// 1: handled, so that the bus library does not answer by itself.
int drop(sd_bus_message*, void*, sd_bus_error*) { return 1; }

} // namespace

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    sd_bus* bus = nullptr;
    int status = sd_bus_new(&bus);
    if (status >= 0) status = sd_bus_set_address(bus, argv[1]);
    if (status >= 0) status = sd_bus_set_bus_client(bus, 1);
    if (status >= 0) status = sd_bus_start(bus);
    if (status >= 0) status = sd_bus_add_filter(bus, nullptr, drop, nullptr);
    for (int i = 2; i < argc && status >= 0; ++i)
        status = sd_bus_request_name(bus, argv[i], 0);
    if (status < 0) return complain("cannot take the names", status);
    std::puts("ready");
    std::fflush(stdout);
    while (true) {
        while ((status = sd_bus_process(bus, nullptr)) > 0) {
        }
        if (status < 0) return complain("the bus", status);
        pollfd ends[2] = {{0, POLLIN, 0}, {sd_bus_get_fd(bus), POLLIN, 0}};
        if (::poll(ends, 2, -1) > 0 && ends[0].revents != 0) break;
    }
    sd_bus_unref(bus);
    return 0;
}
