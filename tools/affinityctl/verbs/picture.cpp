// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/verbs/picture.hpp"

#include "affinityctl/verbs/ask.hpp"
#include "host/file.hpp"

#include <fmt/format.h>

namespace affinityctl {

int write_picture(const std::string& path, const std::string& document) {
    if (path == "-") {
        fmt::print("{}", document);
        return exit_ok;
    }
    const auto written = affinityd::host::replace_file(path, document);
    return written ? exit_ok : complain(written.error());
}

} // namespace affinityctl
