// SPDX-License-Identifier: Apache-2.0
// How long the interrupt table of a big machine takes. The table is made here: 1,152 CPUs, 1,000 lines, 13
// MB.
#include "irq/classify.hpp"
#include "irq/reader.hpp"
#include "machine/labels.hpp"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

namespace {

std::string make_table(unsigned cpus, unsigned lines) {
    std::string text = "     ";
    for (unsigned cpu = 0; cpu < cpus; ++cpu)
        text += fmt::format("{:>10} ", fmt::format("CPU{}", cpu));
    text += "\n";
    for (unsigned line = 0; line < lines; ++line) {
        text += fmt::format("{:>5}:", line);
        for (unsigned cpu = 0; cpu < cpus; ++cpu)
            text += fmt::format(" {:>10}", cpu == line % cpus ? 4000000000U + line : cpu % 7 == 0 ? cpu : 0);
        text += fmt::format("  IR-PCI-MSI {}-edge      i40e-eth{}-TxRx-{}\n", 67633174 + line, line / 100,
                            line % 100);
    }
    return text;
}

void parse(benchmark::State& state) {
    const auto text = make_table(static_cast<unsigned>(state.range(0)), 1000);
    for (auto _ : state)
        benchmark::DoNotOptimize(affinityd::irq::parse_interrupts(text));
    state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) *
                            static_cast<std::int64_t>(text.size()));
}
BENCHMARK(parse)->Arg(2)->Arg(64)->Arg(1152)->Unit(benchmark::kMillisecond);

void classify(benchmark::State& state) {
    auto table = affinityd::irq::parse_interrupts(make_table(2, 1000));
    table.labels = affinityd::machine::builtin_labels();
    for (auto _ : state)
        benchmark::DoNotOptimize(affinityd::irq::classify(table));
}
BENCHMARK(classify)->Unit(benchmark::kMillisecond);

} // namespace

BENCHMARK_MAIN();
