// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <expected>
#include <string>
#include <system_error>
#include <utility>

namespace affinityd {

/// A fault: something that could not be worked on. Callers hand it up unread; for outcomes of normal life a
/// function has an enum, never an Error.
struct Error {
    std::string message;   ///< what was expected or attempted, for a person; never empty
    std::string subject{}; ///< the path, name or position concerned; may be empty
    int code = 0;          ///< errno value, 0 if the fault did not come from the system

    /// "subject: message: strerror", leaving out what is not known.
    [[nodiscard]] std::string to_string() const {
        auto text = subject.empty() ? message : subject + ": " + message;
        if (code != 0) text += ": " + std::generic_category().message(code);
        return text;
    }
};

template <class T>
using Result = std::expected<T, Error>;

/// Shorthand to return a fault; `code` is an errno value or 0.
[[nodiscard]] inline std::unexpected<Error> fail(std::string message, std::string subject = {},
                                                 int code = 0) {
    return std::unexpected(Error{std::move(message), std::move(subject), code});
}

} // namespace affinityd
