// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/experiments/figure_words.hpp"

#include "measure/percent.hpp"

#include <cctype>

#include <fmt/format.h>

namespace affinityctl {

namespace measure = affinityd::measure;
using nlohmann::json;

namespace {
/// Three digits that say something.
std::string three_digits(double value) {
    return fmt::format("{:.{}f}", value, value < 10 ? 2 : value < 100 ? 1 : 0);
}
} // namespace

std::string ms_words(const std::optional<measure::Interval>& seconds) {
    if (!seconds) return "-";
    return fmt::format("{} ({} to {})", three_digits(seconds->estimate * 1e3),
                       three_digits(seconds->low * 1e3), three_digits(seconds->high * 1e3));
}

std::string change_words(const measure::Comparison& longer) {
    if (longer.verdict == measure::Verdict::none_shown || longer.verdict == measure::Verdict::not_enough)
        return std::string(to_string(longer.verdict));
    const auto& change = longer.change;
    const int digits = change.high - change.low < 0.05 ? 1 : 0;
    return fmt::format("{} % ({} to {})", measure::signed_percent(change.estimate, digits),
                       measure::signed_percent(change.low, digits),
                       measure::signed_percent(change.high, digits));
}

json ms_json(const std::optional<measure::Interval>& seconds) {
    if (!seconds) return {};
    return {{"mean", seconds->estimate * 1e3}, {"low", seconds->low * 1e3}, {"high", seconds->high * 1e3}};
}

json change_json(const measure::Comparison& longer) {
    if (longer.verdict == measure::Verdict::not_enough) return {};
    return {{"verdict", to_string(longer.verdict)},
            {"estimate", longer.change.estimate},
            {"low", longer.change.low},
            {"high", longer.change.high}};
}

std::string as_sentence(std::string words) {
    if (words.empty()) return words;
    words[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(words[0])));
    if (words.back() != '.') words += '.';
    return words;
}

} // namespace affinityctl
