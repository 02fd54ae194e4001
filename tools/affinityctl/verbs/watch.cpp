// SPDX-License-Identifier: Apache-2.0
// affinityctl watch: the threads under policy as they run, from the kernel's own counters.
#include "affinityctl/daemon/members.hpp"
#include "affinityctl/daemon/task_sampler.hpp"
#include "affinityctl/values/task_row.hpp"
#include "affinityctl/verbs/ask.hpp"
#include "affinityctl/verbs/option_values.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "affinityctl/views/json_text.hpp"
#include "affinityctl/views/table.hpp"
#include "affinityctl/views/watch_rows.hpp"
#include "affinityctl/views/watch_view.hpp"
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

std::expected<void, std::string>
/// Shows rows on the terminal until q. Arrow and page keys scroll, s takes the next order, r reverses it,
/// space pauses. `look` is called once per interval; if it returns an error, the watch ends with that.
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

using nlohmann::json;

struct ScreenOptions {
    std::string policy;
    double interval = 1;
    std::string order = row_orders[0];
    bool once = false;
};

RowOrder order_named(const std::string& name) {
    std::size_t at = 0;
    while (at + 1 < std::size(row_orders) && name != row_orders[at])
        ++at;
    return static_cast<RowOrder>(at);
}

/// What is wrong with the name of a policy; "": nothing.
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

using Look = std::function<std::expected<std::vector<TaskRow>, std::string>()>;

int show_once(const ScreenOptions& options, const Globals& globals, const Look& look) {
    auto rows = look(); // the second look counts from this one
    if (rows) {
        std::this_thread::sleep_for(std::chrono::duration<double>(options.interval));
        rows = look();
    }
    if (!rows) return complain({exit_failure, rows.error()});
    sort_rows(*rows, order_named(options.order), false);
    if (globals.json)
        fmt::print("{}\n", dump(watch_json(*rows)));
    else
        fmt::print("{}", watch_table(*rows, globals.color));
    return exit_ok;
}

int watch(const ScreenOptions& options, const Globals& globals) {
    const auto root = affinityd::host::Root::open("/");
    if (!root) return complain(root.error());
    CallError last;
    TaskSampler sampler(*root);
    const Look look = [&]() -> std::expected<std::vector<TaskRow>, std::string> {
        const auto answer = ask_daemon(globals, "GetStatus");
        if (!answer) {
            last = answer.error();
            return std::unexpected(last.message);
        }
        const auto status = json::parse(*answer, nullptr, false);
        if (status.is_discarded())
            return std::unexpected(
                std::string("the daemon's answer cannot be read: is it of another version?"));
        if (const auto fault = unknown_policy(status, options.policy); !fault.empty())
            return std::unexpected(fault);
        return sampler.sample(status, options.policy);
    };
    if (options.once || globals.json || ::isatty(STDOUT_FILENO) == 0 || ::isatty(STDIN_FILENO) == 0) {
        const int status = show_once(options, globals, look);
        return last.message.empty() ? status : static_cast<int>(last.code);
    }
    const auto done =
        run_watch_screen(std::chrono::milliseconds(static_cast<long>(options.interval * 1000)), look);
    if (done) return exit_ok;
    return complain({last.message.empty() ? exit_failure : last.code, done.error()});
}

} // namespace

void add_watch(CLI::App& app, Globals& globals, int& status) {
    auto* verb = app.add_subcommand(
        "watch", "the threads under policy as they run: CPU, mask, share of a CPU, migrations");
    const auto options = std::make_shared<ScreenOptions>();
    verb->add_option("policy", options->policy, "only the threads of this policy");
    verb->add_option("--interval", options->interval, "seconds between two samples")
        ->check(in_range(0.1, 3600.0))
        ->capture_default_str();
    verb->add_option("--sort", options->order, "order of --once: share, migrations, cpu, pid or name")
        ->check(CLI::IsMember({row_orders[0], row_orders[1], row_orders[2], row_orders[3], row_orders[4]}))
        ->capture_default_str();
    verb->add_flag("--once", options->once,
                   "print one table (with --json a list) after one interval; so also without a terminal");
    verb->callback([&globals, &status, options] { status = watch(*options, globals); });
}

} // namespace affinityctl
