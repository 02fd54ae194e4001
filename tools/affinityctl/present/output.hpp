// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/present/document.hpp"

#include <string>

namespace affinityctl {

/// Prints the answer of a verb as the command line asks: text, or JSON with --json, and the picture that it
/// names. The exit code.
int show(const Globals& globals, Outcome outcome);

/// Prints on standard error what failed, with --json also {"ok": false, "message"} on standard output. The
/// exit code.
int complain(const Globals& globals, const CallError& error);

/// Prints a text, through a pager if standard output is a terminal and `may_page`. $AFFINITYCTL_PAGER, else
/// $PAGER, names the pager, "" or "cat" none; without them it is less(1), which ends at once if all fits on
/// one screen. A pager that cannot be started is none. Under sudo(8), where the environment may be
/// another user's, it is less and runs nothing for its user (LESSSECURE).
void print_text(const std::string& text, bool may_page);

/// A fault of the file of a picture ("": none is wanted; "-": standard output), told before anything is
/// measured: it is where the JSON goes, or cannot be written.
[[nodiscard]] std::expected<void, CallError> check_picture(const Globals& globals, const std::string& path);

/// Writes an SVG document: a new file beside `path`, which then takes its name; "-" is standard output. A
/// path of something that is no regular file is refused. The exit code; the reason is on standard error.
[[nodiscard]] int write_picture(const std::string& path, const std::string& document);

} // namespace affinityctl
