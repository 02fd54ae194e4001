// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shared_page.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace bench {

/// Starts pin-probe and reads its times.
class ProbeStarter {
  public:
    ProbeStarter(std::string probe, int cpu) : probe_(std::move(probe)), cpu_(std::to_string(cpu)) {
        const int fd = ::memfd_create("probe", MFD_CLOEXEC);
        if (fd < 0 || ::ftruncate(fd, 4096) != 0 || ::dup2(fd, shared_descriptor) != shared_descriptor)
            std::abort();
        ::close(fd);
        page_ = map_shared(shared_descriptor);
        if (page_ == nullptr) std::abort();
    }
    ProbeStarter(const ProbeStarter&) = delete;
    ProbeStarter& operator=(const ProbeStarter&) = delete;

    struct Times {
        std::uint64_t from_exec; ///< from calling execve(2) until the program saw the mask
        std::uint64_t from_main; ///< from the first line of main until then
    };
    /// No value: not pinned within three seconds.
    std::optional<Times> run() {
        start();
        return finish();
    }
    void start() {
        page_->pinned = 0;
        char* arguments[] = {probe_.data(), cpu_.data(), nullptr};
        child_ = ::vfork();
        if (child_ == 0) {
            page_->started = now_ns();
            ::execv(probe_.c_str(), arguments);
            ::_exit(127);
        }
    }
    std::optional<Times> finish() {
        int status = 0;
        ::waitpid(child_, &status, 0);
        if (status != 0) {
            std::fprintf(stderr, "%s failed\n", probe_.c_str());
            std::exit(2);
        }
        if (page_->pinned == 0) return std::nullopt;
        return Times{page_->pinned - page_->started, page_->pinned - page_->entered};
    }

  private:
    std::string probe_;
    std::string cpu_;
    SharedPage* page_ = nullptr;
    int child_ = -1;
};

/// Child processes that keep CPUs busy while this object exists.
class Load {
  public:
    explicit Load(int count) {
        for (int i = 0; i < count; ++i) {
            const int pid = ::fork();
            if (pid == 0) {
                ::prctl(PR_SET_PDEATHSIG, SIGKILL);
                ::prctl(PR_SET_NAME, "bench-load");
                for (std::atomic<unsigned long> turns = 0;;)
                    turns.fetch_add(1, std::memory_order_relaxed);
            }
            if (pid > 0) children_.push_back(pid);
        }
    }
    Load(const Load&) = delete;
    Load& operator=(const Load&) = delete;
    ~Load() {
        for (const int pid : children_) {
            ::kill(pid, SIGKILL);
            ::waitpid(pid, nullptr, 0);
        }
    }

  private:
    std::vector<int> children_;
};

/// The value below which this share of the samples lies. Sorts them in place.
inline double percentile_us(std::vector<std::uint64_t>& samples, double share) {
    if (samples.empty()) return 0;
    std::ranges::sort(samples);
    const auto at = static_cast<std::size_t>(share * static_cast<double>(samples.size() - 1) + 0.5);
    return static_cast<double>(samples[at]) / 1000.0;
}

inline void print_latencies(const char* what, std::vector<std::uint64_t>& samples, std::size_t missed) {
    const double p50 = percentile_us(samples, 0.5);
    const double p99 = percentile_us(samples, 0.99);
    const double worst = samples.empty() ? 0 : static_cast<double>(samples.back()) / 1000.0;
    std::printf("%s runs=%zu missed=%zu p50_us=%.1f p99_us=%.1f max_us=%.1f\n", what, samples.size() + missed,
                missed, p50, p99, worst);
}

} // namespace bench
