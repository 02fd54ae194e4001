// SPDX-License-Identifier: Apache-2.0
#include "experiments/smt/loads.hpp"

#include <cmath>
#include <random>

namespace affinityd::experiments {

namespace {

// Not inlined, so that neither knows what the sum is for.
[[gnu::noinline]] float accumulate(std::span<const float> numbers) {
    float sum = 0;
    for (const float number : numbers)
        sum += number;
    return sum;
}

[[gnu::noinline]] float accumulate_sines(std::span<const float> numbers) {
    float sum = 0;
    for (const float number : numbers)
        sum += std::sin(number);
    return sum;
}

} // namespace

std::string_view name_of(Load load) { return load == Load::accum ? "accum" : "sin"; }

float work(Load load, std::span<const float> numbers) {
    return load == Load::accum ? accumulate(numbers) : accumulate_sines(numbers);
}

std::vector<float> numbers_for_loads(std::size_t count) {
    std::vector<float> numbers(count);
    std::mt19937 engine(1); // NOLINT(cert-msc51-cpp): the same numbers each time are wanted
    for (auto& number : numbers)
        number = static_cast<float>(engine() >> 8U) / static_cast<float>(1U << 24U) * 100;
    return numbers;
}

} // namespace affinityd::experiments
