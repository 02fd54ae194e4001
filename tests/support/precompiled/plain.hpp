// SPDX-License-Identifier: Apache-2.0
// What most sources include, precompiled for tests/run. A source still has to include what it uses: other
// builds have no such header.
#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
