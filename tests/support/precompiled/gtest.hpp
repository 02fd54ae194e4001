// SPDX-License-Identifier: Apache-2.0
// The same for tests.
#include "plain.hpp"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>
