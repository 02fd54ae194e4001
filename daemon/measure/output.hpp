// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/fd.hpp"

#include <string>
#include <utility>

namespace affinityd::measure {

/// What a measuring program prints, by a pipe or a connection that does not block.
class Output {
  public:
    explicit Output(host::Fd source) : source_(std::move(source)) {}

    [[nodiscard]] int descriptor() const { return source_.get(); }
    /// Takes what can be read now, 64 KiB at most. False once no more will come, or after 256 KiB in all.
    bool drain();
    /// Whoever writes more gets SIGPIPE.
    void close() { source_ = {}; }
    /// All that came.
    [[nodiscard]] std::string take() { return std::move(text_); }

  private:
    host::Fd source_;
    std::string text_;
};

} // namespace affinityd::measure
