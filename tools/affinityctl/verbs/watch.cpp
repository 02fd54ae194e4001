// SPDX-License-Identifier: Apache-2.0
// affinityctl watch: the threads under policy as they run, from the kernel's own counters.
#include "affinityctl/client/task_rows.hpp"
#include "affinityctl/present/document.hpp"
#include "affinityctl/verbs/ask.hpp"
#include "affinityctl/verbs/option_values.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "policy/diagnostic.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <clocale>
#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include <curses.h>
#include <fmt/format.h>
#include <unistd.h>

namespace affinityctl {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using Key = WatchView::Key;
using nlohmann::json;

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

void draw(json& rows, const WatchView& view) {
    sort_rows(rows, view.order(), view.is_reversed());
    const std::size_t top = view.top(rows.size(), room());
    const std::size_t end = std::min(rows.size(), top + room());
    Document shown;
    shown.add(Document::Table{watch_fields, json(rows.begin() + static_cast<std::ptrdiff_t>(top),
                                                 rows.begin() + static_cast<std::ptrdiff_t>(end))});
    ::werase(stdscr);
    put_line(0,
             fmt::format("{} threads under policy, {}-{} by {}{}{}   q quit, s order, r reverse, space hold",
                         rows.size(), rows.empty() ? 0 : top + 1, end, view.order(),
                         view.is_reversed() ? " reversed" : "", view.is_paused() ? ", HELD" : ""),
             A_NORMAL);
    const auto text = to_text(shown, {.width = static_cast<std::size_t>(COLS), .unicode = true});
    int line = 1;
    for (std::size_t at = 0; at < text.size() && line < LINES; ++line) {
        const auto stop = text.find('\n', at);
        const bool is_astray =
            line >= above && rows[top + static_cast<std::size_t>(line - above)]["astray"] == true;
        put_line(line, text.substr(at, stop - at), line == 1 ? A_REVERSE : is_astray ? A_BOLD : A_NORMAL);
        if (stop == std::string::npos) break;
        at = stop + 1;
    }
    ::wrefresh(stdscr);
}

/// Shows rows on the terminal until q. Arrow and page keys scroll, s takes the next order, r reverses it,
/// space pauses. `look` is called once per interval; if it returns an error, the watch ends with that.
std::expected<void, std::string>
run_watch_screen(milliseconds interval, const std::function<std::expected<json, std::string>()>& look) {
    std::setlocale(LC_CTYPE, "");
    const std::unique_ptr<SCREEN, EndScreen> screen(::newterm(nullptr, stdout, stdin));
    if (!screen) return std::unexpected(std::string("this terminal cannot be drawn on (TERM): try --once"));
    ::cbreak();
    ::noecho();
    ::keypad(stdscr, true);
    ::curs_set(0);
    WatchView view;
    auto rows = json::array();
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

struct ScreenOptions {
    std::string policy;
    milliseconds interval{1000};
    std::string order = row_orders[0];
    bool once = false;
};

/// The fault of a policy's name; "": nothing.
std::string unknown_policy(const json& status, const std::string& asked) {
    if (asked.empty()) return {};
    std::vector<std::string> names;
    for (const auto& policy : list(status, "policies"))
        names.push_back(text(policy, "name"));
    if (std::ranges::find(names, asked) != names.end()) return {};
    const std::vector<std::string_view> words(names.begin(), names.end());
    const auto hint = affinityd::policy::did_you_mean(asked, words);
    return "the daemon has no policy " + asked + (hint.empty() ? "" : " (" + hint + ")");
}

using Look = std::function<std::expected<json, std::string>()>;

Outcome once(const ScreenOptions& options, const Look& look) {
    auto rows = look(); // the second look counts from this one
    if (rows) {
        std::this_thread::sleep_for(options.interval);
        rows = look();
    }
    if (!rows) return failed(exit_failure, rows.error());
    sort_rows(*rows, options.order, false);
    Document document;
    document.value = std::move(*rows);
    document.add(Document::Table{watch_fields, document.value});
    return document;
}

Outcome run_watch(const ScreenOptions& options, const Globals& globals) {
    const auto root = affinityd::host::Root::open("/");
    if (!root) return failed(root.error());
    CallError last; // of a call of the daemon
    TaskSampler sampler(*root);
    const Look look = [&]() -> std::expected<json, std::string> {
        const auto status = ask_daemon_object(globals, "GetStatus");
        if (!status) {
            last = status.error();
            return std::unexpected(last.message);
        }
        if (const auto fault = unknown_policy(*status, options.policy); !fault.empty())
            return std::unexpected(fault);
        return sampler.sample(*status, options.policy);
    };
    const bool is_screen =
        !options.once && !globals.json && ::isatty(STDOUT_FILENO) == 1 && ::isatty(STDIN_FILENO) == 1;
    if (!is_screen) {
        auto outcome = once(options, look);
        return last.message.empty() ? outcome : std::unexpected(last);
    }
    const auto done = run_watch_screen(options.interval, look);
    if (!done) return failed(last.message.empty() ? exit_failure : last.code, done.error());
    Document nothing;
    nothing.is_silent = true;
    return nothing;
}

} // namespace

void add_watch(CLI::App& app, Globals& globals, int& status) {
    const auto options = std::make_shared<ScreenOptions>();
    auto* verb = add_verb(app,
                          {.name = "watch",
                           .summary = "threads under policy as they run: CPU, share, migrations",
                           .example = "affinityctl watch nginx --interval 500ms",
                           .answer = watch_fields,
                           .is_list = true},
                          globals, status, [&globals, options] { return run_watch(*options, globals); });
    verb->add_option("policy", options->policy, "only the threads of this policy");
    add_time(*verb, "--interval", options->interval, milliseconds(100),
             "time between two samples (default: 1s)");
    verb->add_option("--sort", options->order, "order of --once")
        ->check(CLI::IsMember({row_orders[0], row_orders[1], row_orders[2], row_orders[3], row_orders[4]}))
        ->capture_default_str();
    verb->add_flag("--once", options->once,
                   "print one table (with --json a list) after one interval; so also without a terminal");
}

} // namespace affinityctl
