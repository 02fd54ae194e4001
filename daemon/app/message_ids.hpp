// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace affinityd::app {

/// Ids of journal messages that others may wait for; systemd/affinityd.catalog explains each. Never used for
/// anything else, never changed. sd-id128(3).
inline constexpr const char* regression_message = "0351fbf3fc2f456c924762b29166a20d";
inline constexpr const char* faulty_files_message = "4dde7f4ecba547d792f16e4d7008f438";
inline constexpr const char* reload_refused_message = "17dacfd614e24a56b85ee74a4f89c316";
inline constexpr const char* placed_message = "1486246f9e3b46878ce46362b7aa3afa";
inline constexpr const char* drift_message = "c2333adc8a7348d0a13ce58bdafdf35c";
inline constexpr const char* history_damaged_message = "efd68412d3904fcd896cc8398f5dcb50";

} // namespace affinityd::app
