// SPDX-License-Identifier: Apache-2.0
// Headers that most sources include, precompiled for tests/run. A source still has to include what it uses:
// other builds have no such header.
#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <deque>
#include <expected>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
