// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace affinityd::test {

/// Bytes as the kernel lays out one process event, written down by hand from the documentation rather than
/// with the reader's own structures: nlmsghdr (16), cn_msg (20), proc_event.
struct EventBytes {
    std::uint32_t index = 1, value = 1; ///< CN_IDX_PROC, CN_VAL_PROC
    std::uint32_t ack = 0;
    std::uint32_t what = 0;
    std::uint64_t time = 0;
    std::vector<std::byte> data{};

    EventBytes& numbers(std::initializer_list<std::uint32_t> values) {
        for (const auto number : values)
            put(data, number);
        return *this;
    }
    EventBytes& text(std::string_view name) {
        for (std::size_t i = 0; i < 16; ++i)
            data.push_back(static_cast<std::byte>(i < name.size() ? name[i] : '\0'));
        return *this;
    }

    [[nodiscard]] std::vector<std::byte> build() const {
        auto padded = data;
        padded.resize(24); // the union is as large as its largest member
        std::vector<std::byte> event;
        put(event, what);
        put(event, std::uint32_t{0}); // cpu
        put(event, time);
        event.insert(event.end(), padded.begin(), padded.end());
        std::vector<std::byte> bytes;
        put(bytes, static_cast<std::uint32_t>(36 + event.size()));
        put(bytes, std::uint16_t{3}); // NLMSG_DONE
        put(bytes, std::uint16_t{0});
        put(bytes, std::uint32_t{1});
        put(bytes, std::uint32_t{0});
        put(bytes, index);
        put(bytes, value);
        put(bytes, std::uint32_t{9}); // sequence
        put(bytes, ack);
        put(bytes, static_cast<std::uint16_t>(event.size()));
        put(bytes, std::uint16_t{0});
        bytes.insert(bytes.end(), event.begin(), event.end());
        return bytes;
    }

    template <class T>
    static void put(std::vector<std::byte>& bytes, T number) {
        const auto at = bytes.size();
        bytes.resize(at + sizeof number);
        std::memcpy(bytes.data() + at, &number, sizeof number);
    }
};

inline constexpr std::uint32_t event_fork = 1, event_exec = 2, event_uid = 4, event_comm = 0x200,
                               event_exit = 0x80000000;

} // namespace affinityd::test
