// SPDX-License-Identifier: Apache-2.0
#include "experiments/cache/base_vector.hpp"

#include <algorithm>
#include <cerrno>
#include <random>
#include <utility>

#include <sys/mman.h>

namespace affinityd::experiments {

namespace {

constexpr std::uint64_t huge_page = 2U << 20U;
constexpr std::uint64_t lines_at_once = 1U << 18U; ///< some milliseconds: how soon it can be stopped

/// In steps, until `run` is stopped.
template <class Work>
void for_lines(std::uint64_t first, std::uint64_t end, const Run& run, const Work& work) {
    while (first < end && !run.is_stopped())
        for (const auto stop = first + std::min(lines_at_once, end - first); first < stop; ++first)
            work(first);
}

/// So much memory in huge pages, where the kernel gives them: else the time to find pages would be measured,
/// too.
void* in_huge_pages(std::uint64_t bytes) {
    const auto whole = (bytes + huge_page - 1) / huge_page * huge_page;
    void* memory = std::aligned_alloc(huge_page, whole);
    if (memory != nullptr) ::madvise(memory, whole, MADV_HUGEPAGE);
    return memory;
}

} // namespace

Result<BaseVector> BaseVector::make(std::uint64_t bytes, const Run& run) {
    const auto count = std::max<std::uint64_t>(bytes / sizeof(Line), 4);
    std::unique_ptr<Line[], Free> lines(static_cast<Line*>(in_huge_pages(count * sizeof(Line))));
    if (!lines) return fail("no memory for a working set", std::to_string(bytes) + " bytes", ENOMEM);
    for_lines(0, count, run, [&](std::uint64_t i) { lines[i].next = i; });
    // Sattolo's shuffle makes one cycle of all.
    std::mt19937_64 order(count); // NOLINT(cert-msc51-cpp): the same order each time is wanted
    for_lines(1, count, run, [&](std::uint64_t step) {
        const auto i = count - step;
        std::swap(lines[i].next, lines[order() % i].next);
    });
    return BaseVector(std::move(lines), count);
}

void BaseVector::walk(std::uint64_t steps) {
    std::uint64_t at = at_;
    for (const Line* lines = lines_.get(); steps > 0; --steps)
        at = lines[at].next;
    at_ = at;
}

void BaseVector::touch(std::uint64_t bytes, const Run& run) const {
    const auto lines = std::min(bytes / sizeof(Line), count_);
    std::uint64_t sum = 0;
    for_lines(0, lines, run, [&](std::uint64_t i) { sum += lines_[i].next; });
    volatile std::uint64_t kept = sum; // else nothing would be read
    static_cast<void>(kept);
}

} // namespace affinityd::experiments
