// SPDX-License-Identifier: Apache-2.0
// Any bytes as a request of libaffinity.
#include "join_seeds.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    affinityd::fuzz::check_join({reinterpret_cast<const std::byte*>(data), size});
    return 0;
}
