// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace affinityd {

/// Deleter of a std::unique_ptr for what a C library counts or frees: `std::unique_ptr<sd_bus,
/// Release<sd_bus_unref>>`.
template <auto function>
struct Release {
    template <class Object>
    void operator()(Object* object) const {
        function(object);
    }
};

} // namespace affinityd
