// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/log.hpp"

#include <memory>
#include <sstream>
#include <string>

namespace affinityd::core::test {

/// A log that can be read.
class ReadableLog {
  public:
    ReadableLog();
    [[nodiscard]] Log& log() { return *log_; }
    [[nodiscard]] std::string text() const { return text_.str(); }
    [[nodiscard]] std::size_t times(const std::string& part) const;

  private:
    std::ostringstream text_;
    std::unique_ptr<Log> log_;
};

} // namespace affinityd::core::test
