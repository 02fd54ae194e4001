// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/present/globals.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

namespace affinityctl {

void hold_standard_streams() {
    for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (::fcntl(file, F_GETFD) >= 0) continue;
        // The lowest number is taken, which is this one. Output that cannot be written to is still a fault.
        (void)::open("/dev/null", file == STDERR_FILENO ? O_WRONLY : O_RDONLY);
    }
}

int end_output(int status, int refused) {
    int code = std::fflush(stdout) != 0 ? errno : 0;
    // Nothing of a long text is left in the buffer that would be refused again.
    if (code == 0 && std::ferror(stdout) != 0) code = refused != 0 ? refused : EIO;
    if (code == 0) return status;
    if (code != EPIPE) std::fprintf(stderr, "affinityctl: cannot write: %s\n", std::strerror(code));
    return exit_failure;
}

} // namespace affinityctl
