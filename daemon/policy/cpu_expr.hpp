// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"
#include "base/error.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::policy {

/// A CPU-set expression as a tree; the planner evaluates it on a machine.
///
///   expr   := term { ('|' | '-') term }        left to right; ',' between terms is the same as '|'
///   term   := factor { '&' factor }
///   factor := '!' factor | '(' expr ')' | atom
///   atom   := cpulist | word | word ':' ids | 'kind' ':' name | 'nic' [':' name]
struct CpuExpr {
    enum class Op {
        list, ///< ids: CPU numbers as written
        all,  ///< every online CPU ("all", "online")
        isolated,
        nohz_full,
        housekeeping,
        pods, ///< CPUs that containers have for themselves
        smt,  ///< CPUs that are not the first of their core
        node,
        socket,
        die,
        cluster,
        llc,
        core, ///< ids: which ones, counted as the machine prints them
        kind, ///< name: performance | efficiency | ...
        nic,  ///< name: the interface whose near CPUs are meant; "": the policy's own NICs
        unite,
        intersect,
        subtract,   ///< two children
        complement, ///< one child; against the online CPUs
    };
    Op op = Op::all;
    CpuSet ids;
    std::string name;
    std::vector<CpuExpr> children;
    std::size_t offset = 0; ///< where in the text this part begins, for messages
    std::size_t length = 0;
    friend bool operator==(const CpuExpr& a, const CpuExpr& b) {
        return a.op == b.op && a.ids == b.ids && a.name == b.name && a.children == b.children;
    }
};

/// Where a text cannot be read and why; `offset` counts bytes from 0.
struct CpuExprError {
    std::size_t offset = 0;
    std::size_t length = 1;
    std::string message; ///< what is wrong
    std::string hint;    ///< what would be right; may be empty
};

[[nodiscard]] std::expected<CpuExpr, CpuExprError> parse_cpu_expr(std::string_view text);

/// True if the word is somewhere in it.
[[nodiscard]] bool has_word(const CpuExpr& expr, CpuExpr::Op word);

/// The canonical text of an expression; parse_cpu_expr of it gives an equal tree.
[[nodiscard]] std::string to_string(const CpuExpr& expr);

} // namespace affinityd::policy
