// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/verbs/picture.hpp"

#include "affinityctl/verbs/ask.hpp"
#include "host/file.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace affinityctl {

namespace {

/// Also as /dev/stdout: opened anew, a file would be written from its beginning, over the text.
bool is_standard_output(const std::string& path) {
    if (path == "-") return true;
    struct stat named {
    }, output{};
    return ::stat(path.c_str(), &named) == 0 && ::fstat(STDOUT_FILENO, &output) == 0 &&
           named.st_dev == output.st_dev && named.st_ino == output.st_ino;
}

/// Another name of it may be /dev/null, which takes both.
bool mixes(const std::string& path) {
    struct stat output {};
    const bool is_null =
        ::fstat(STDOUT_FILENO, &output) == 0 && S_ISCHR(output.st_mode) && ::isatty(STDOUT_FILENO) == 0;
    return path == "-" || (is_standard_output(path) && !is_null);
}

} // namespace

std::expected<void, CallError> check_picture(const Globals& globals, const std::string& path) {
    if (globals.json && mixes(path))
        return std::unexpected(
            CallError{exit_usage, fmt::format("--json and --svg {} both write to standard output", path)});
    if (path.empty() || is_standard_output(path)) return {};
    const auto checked = affinityd::host::check_replaceable(path);
    if (!checked) return std::unexpected(CallError{exit_failure, checked.error().to_string()});
    return {};
}

int write_picture(const std::string& path, const std::string& document) {
    if (is_standard_output(path)) {
        fmt::print("{}", document);
        return exit_ok;
    }
    auto written = affinityd::host::check_replaceable(path);
    if (written) written = affinityd::host::replace_file(path, document);
    return written ? exit_ok : complain(written.error());
}

} // namespace affinityctl
