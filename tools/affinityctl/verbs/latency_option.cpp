// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/verbs/latency_option.hpp"

#include "accounting/measurements.hpp"
#include "host/fd.hpp"
#include "host/file.hpp"
#include "host/root.hpp"
#include "topology/reader.hpp"

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <memory>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace affinityctl {

namespace {

namespace topology = affinityd::topology;
using affinityd::machine::KnownLatencies;

/// The latencies that the daemon would use here; none for a user who may not read them.
KnownLatencies measured_here(const std::string& folder) {
    const auto kept = affinityd::accounting::newest_experiment("/var/lib/affinityd", "latency");
    const auto root = affinityd::host::Root::open(folder);
    if (!kept || !*kept || !root) return {};
    auto latencies = topology::latencies_from_json((*kept)->detail);
    const auto machine = topology::read_topology(*root);
    if (!latencies || !machine) return {};
    return affinityd::machine::latencies_here(*latencies, *machine, topology::read_cpu_model(*root));
}

const std::string standard_input = "-";

bool is_stream(const std::string& path) {
    struct stat status {};
    return path == standard_input || (::stat(path.c_str(), &status) == 0 && S_ISFIFO(status.st_mode));
}

/// To its end, for which it waits: another program has to write it.
affinityd::Result<std::optional<std::string>> read_stream(const std::string& path) {
    const affinityd::host::Fd file(path == standard_input ? ::dup(STDIN_FILENO)
                                                          : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return affinityd::fail("cannot open", path, errno);
    std::string text;
    std::array<char, 64U << 10U> part{};
    for (;;) {
        const auto got = ::read(file.get(), part.data(), part.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return affinityd::fail("cannot read", path, errno);
        if (got == 0) return text;
        text.append(part.data(), static_cast<std::size_t>(got));
        if (text.size() > topology::most_csv_bytes)
            return affinityd::fail("larger than the " + std::to_string(topology::most_csv_bytes) +
                                       " bytes that are accepted",
                                   path);
    }
}

} // namespace

affinityd::Result<topology::Latencies> read_latency_table(const std::string& path) {
    const auto text =
        is_stream(path) ? read_stream(path) : affinityd::host::read_file(path, topology::most_csv_bytes);
    if (!text) return std::unexpected(text.error());
    if (!*text) return affinityd::fail("there is no such file", path);
    auto latencies = (*text)->starts_with('{') ? topology::latencies_from_json(**text)
                                               : topology::latencies_from_csv(**text);
    if (!latencies)
        latencies.error().subject =
            path + (latencies.error().subject.empty() ? "" : ": " + latencies.error().subject);
    return latencies;
}

void add_latency_option(CLI::App& verb, std::string& file) {
    verb.add_option("--latency", file,
                    "latencies between the machine's CPUs, for policies that say 'measured': CSV as of "
                    "core-to-core-latency, or what 'measure latency --json' printed; - is standard input")
        ->type_name("FILE");
}

affinityd::Result<KnownLatencies> latencies_for(const Globals& globals, const std::string& file) {
    if (file.empty()) return globals.is_recorded() ? KnownLatencies{} : measured_here(globals.root);
    auto latencies = read_latency_table(file);
    if (!latencies) return std::unexpected(latencies.error());
    const auto root = affinityd::host::Root::open(globals.root);
    if (!root) return std::unexpected(root.error());
    const auto machine = topology::read_topology(*root);
    if (!machine) return std::unexpected(machine.error());
    return KnownLatencies{topology::measured_level(*latencies, *machine), "", 0};
}

} // namespace affinityctl
