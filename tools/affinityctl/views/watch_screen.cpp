// SPDX-License-Identifier: Apache-2.0
// The only file that knows the terminal: ncurses(3NCURSES), which restores it on SIGINT and SIGTERM by
// itself.
#include "affinityctl/views/watch_screen.hpp"

#include "affinityctl/views/table.hpp"
#include "affinityctl/views/watch_rows.hpp"
#include "affinityctl/views/watch_view.hpp"

#include <clocale>
#include <memory>

#include <curses.h>
#include <fmt/format.h>

namespace affinityctl {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using Key = WatchView::Key;

struct EndScreen {
    void operator()(SCREEN* screen) const {
        ::endwin();
        ::delscreen(screen);
    }
};

Key key_of(int pressed) {
    switch (pressed) {
    case 'q':
    case 'Q':
        return Key::quit;
    case KEY_UP:
    case 'k':
        return Key::up;
    case KEY_DOWN:
    case 'j':
        return Key::down;
    case KEY_PPAGE:
        return Key::page_up;
    case KEY_NPAGE:
        return Key::page_down;
    case KEY_HOME:
        return Key::home;
    case KEY_END:
        return Key::end;
    case 's':
        return Key::next_order;
    case 'r':
        return Key::reverse;
    case ' ':
        return Key::pause;
    default:
        return Key::none;
    }
}

constexpr int above = 2; ///< lines above the rows: the state of the view, and the heading

std::size_t room() { return static_cast<std::size_t>(std::max(LINES - above, 0)); }

void put_line(int line, const std::string& text, attr_t look) {
    ::wmove(stdscr, line, 0);
    ::wattrset(stdscr, static_cast<int>(look));
    ::waddnstr(stdscr, text.c_str(), COLS);
    ::wclrtoeol(stdscr);
}

void draw(std::vector<TaskRow>& rows, const WatchView& view) {
    sort_rows(rows, view.order(), view.is_reversed());
    Table table(watch_heading);
    const std::size_t top = view.top(rows.size(), room());
    const std::size_t end = std::min(rows.size(), top + room());
    for (std::size_t i = top; i < end; ++i)
        table.add(watch_cells(rows[i]));
    ::werase(stdscr);
    put_line(0,
             fmt::format("{} threads under policy, {}-{} by {}{}{}   q quit, s order, r reverse, space hold",
                         rows.size(), rows.empty() ? 0 : top + 1, end,
                         row_orders[static_cast<std::size_t>(view.order())],
                         view.is_reversed() ? " reversed" : "", view.is_paused() ? ", HELD" : ""),
             A_NORMAL);
    const std::string text = table.to_string(false);
    int line = 1;
    for (std::size_t at = 0; at < text.size() && line < LINES; ++line) {
        const auto stop = text.find('\n', at);
        const bool is_astray =
            line >= above && rows[top + static_cast<std::size_t>(line - above)].is_astray();
        put_line(line, text.substr(at, stop - at), line == 1 ? A_REVERSE : is_astray ? A_BOLD : A_NORMAL);
        if (stop == std::string::npos) break;
        at = stop + 1;
    }
    ::wrefresh(stdscr);
}

} // namespace

std::expected<void, std::string>
run_watch_screen(milliseconds interval,
                 const std::function<std::expected<std::vector<TaskRow>, std::string>()>& look) {
    std::setlocale(LC_CTYPE, "");
    const std::unique_ptr<SCREEN, EndScreen> screen(::newterm(nullptr, stdout, stdin));
    if (!screen) return std::unexpected(std::string("this terminal cannot be drawn on (TERM): try --once"));
    ::cbreak();
    ::noecho();
    ::keypad(stdscr, true);
    ::curs_set(0);
    WatchView view;
    std::vector<TaskRow> rows;
    for (auto next = steady_clock::now();;) {
        if (!view.is_paused() && steady_clock::now() >= next) {
            auto fresh = look();
            if (!fresh) return std::unexpected(fresh.error());
            rows = std::move(*fresh);
            next = steady_clock::now() + interval;
        }
        draw(rows, view);
        const auto left = std::chrono::duration_cast<milliseconds>(next - steady_clock::now());
        ::wtimeout(stdscr, view.is_paused() ? -1 : static_cast<int>(std::max<long>(left.count(), 0)));
        if (!view.press(key_of(::wgetch(stdscr)), rows.size(), room())) return {};
    }
}

} // namespace affinityctl
