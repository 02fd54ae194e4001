// SPDX-License-Identifier: Apache-2.0
#include "inventory/stat.hpp"

#include <charconv>
#include <cstring>

namespace affinityd::inventory {

namespace {

/// Takes the fields after the name one by one, without a copy.
class Fields {
  public:
    explicit Fields(std::string_view text) : rest_(text) {}

    /// A call of find_first_of() for each of fifty fields takes longer than all else that is done with a
    /// line.
    std::string_view take() {
        const auto is_space = [](char c) { return c == ' ' || c == '\n'; };
        std::size_t begin = 0;
        while (begin < rest_.size() && is_space(rest_[begin]))
            ++begin;
        auto end = begin;
        while (end < rest_.size() && !is_space(rest_[end]))
            ++end;
        const auto field = rest_.substr(begin, end - begin);
        rest_.remove_prefix(end);
        return field;
    }

    void skip(int count) {
        while (count-- > 0)
            take();
    }

    template <class T>
    bool number(T& value) {
        const auto field = take();
        const auto [end, status] = std::from_chars(field.data(), field.data() + field.size(), value);
        return status == std::errc{} && end == field.data() + field.size() && !field.empty();
    }

  private:
    std::string_view rest_;
};

struct Parts {
    int id = 0;
    std::string_view comm;
    Fields fields; ///< from field 3 on
};

std::optional<Parts> split_line(std::string_view text) {
    const auto open = text.find('(');
    if (open == std::string_view::npos) return std::nullopt;
    // A name may hold any bytes but ends at the last ')', which is far from the end of the line.
    const auto* last = static_cast<const char*>(::memrchr(text.data(), ')', text.size()));
    if (last == nullptr) return std::nullopt;
    const auto close = static_cast<std::size_t>(last - text.data());
    if (close < open) return std::nullopt;
    Fields before(text.substr(0, open));
    int id = 0;
    if (!before.number(id) || id <= 0 || !before.take().empty()) return std::nullopt;
    return Parts{id, text.substr(open + 1, close - open - 1), Fields(text.substr(close + 1))};
}

} // namespace

std::optional<StatLine> parse_stat(std::string_view text) {
    auto parts = split_line(text);
    if (!parts) return std::nullopt;
    auto& fields = parts->fields;
    StatLine line;
    line.id = parts->id;
    line.comm = parts->comm;
    const auto state = fields.take();
    if (state.size() != 1) return std::nullopt;
    line.state = state.front();
    if (!fields.number(line.parent)) return std::nullopt;
    fields.skip(1); // process group
    if (!fields.number(line.session)) return std::nullopt;
    fields.skip(2); // terminal, its foreground group
    if (!fields.number(line.flags)) return std::nullopt;
    fields.skip(10); // faults, times, priority, nice
    if (!fields.number(line.threads)) return std::nullopt;
    fields.skip(1);
    if (!fields.number(line.start_time)) return std::nullopt;
    return line;
}

std::optional<StatTimes> parse_stat_times(std::string_view text) {
    auto parts = split_line(text);
    if (!parts) return std::nullopt;
    auto& fields = parts->fields;
    StatTimes times;
    fields.skip(1); // state
    if (!fields.number(times.parent)) return std::nullopt;
    fields.skip(9); // process group to the faults of children
    if (!fields.number(times.user) || !fields.number(times.system) || !fields.number(times.children_user) ||
        !fields.number(times.children_system))
        return std::nullopt;
    fields.skip(4); // priority, nice, threads, an unused timer
    if (!fields.number(times.start_time)) return std::nullopt;
    fields.skip(16); // sizes and addresses, signals, places of waiting
    if (int cpu = 0; fields.number(cpu)) times.cpu = cpu;
    return times;
}

namespace {

std::string unescape(std::string_view text) {
    std::string comm;
    comm.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool escaped = text[i] == '\\' && i + 1 < text.size();
        if (escaped && text[i + 1] == 'n') {
            comm += '\n';
            ++i;
        } else if (escaped && text[i + 1] == '\\') {
            comm += '\\';
            ++i;
        } else {
            comm += text[i];
        }
    }
    return comm;
}

} // namespace

std::string unescape_comm(std::string_view text) {
    return text.contains('\\') ? unescape(text) : std::string(text);
}

} // namespace affinityd::inventory
