// SPDX-License-Identifier: Apache-2.0
// affinityctl watch: the threads under policy as they run, from the kernel's own counters.
#include "affinityctl/client/task_rows.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "base/text.hpp"
#include "host/fd.hpp"
#include "host/root.hpp"
#include "host/signals.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

namespace affinityctl {

namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using Look = std::function<json()>;

void put(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stdout); // which throws nothing if the terminal has gone
    std::fflush(stdout);
}

/// The terminal without echo, and with a screen of its own. Signals that end a program come through a file,
/// so that the terminal is as it was afterwards.
class Screen {
  public:
    Screen() {
        ::tcgetattr(STDIN_FILENO, &before_);
        auto raw = before_;
        raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
        raw.c_cc[VSUSP] = _POSIX_VDISABLE;
        ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
        ::pthread_sigmask(SIG_BLOCK, &signals_, &mask_);
        put("\033[?1049h\033[?25l"); // the other screen, without a cursor
    }
    Screen(const Screen&) = delete;
    Screen& operator=(const Screen&) = delete;
    ~Screen() {
        put("\033[?25h\033[?1049l");
        ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
        ::pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
    }

    /// The key that is pressed within this time, as terminals send it; "": none; "q" where a signal or the
    /// end of the terminal says the same. A negative time is as long as it takes.
    [[nodiscard]] std::string key(milliseconds time) const {
        pollfd files[] = {{STDIN_FILENO, POLLIN, 0}, {stop_.get(), POLLIN, 0}};
        ::poll(files, 2, static_cast<int>(time.count()));
        if (files[1].revents != 0) return "q";
        if (files[0].revents == 0) return {};
        char bytes[16];
        const auto got = ::read(STDIN_FILENO, bytes, sizeof bytes);
        return got > 0 ? std::string(bytes, static_cast<std::size_t>(got)) : "q";
    }

  private:
    termios before_{};
    sigset_t mask_{};
    const sigset_t signals_ = affinityd::host::stop_signals();
    const affinityd::host::Fd stop_{::signalfd(-1, &signals_, SFD_CLOEXEC)};
};

/// The rows that a person has chosen to see.
struct View {
    std::size_t top = 0; ///< the first
    std::size_t order = 0;
    bool reversed = false;
    bool held = false;
};

/// False: the watch is over. `rows` exist, and the terminal shows `room` of them.
bool press(std::string_view key, View& view, std::size_t rows, std::size_t room) {
    if (key == "q" || key == "Q") return false;
    if (key == "k" || key == "\033[A") view.top -= std::min<std::size_t>(view.top, 1);
    if (key == "j" || key == "\033[B") ++view.top;
    if (key == "\033[5~") view.top -= std::min(view.top, room);
    if (key == "\033[6~") view.top += room;
    if (key == "\033[H") view.top = 0;
    if (key == "\033[F") view.top = rows;
    if (key == "s") view.order = (view.order + 1) % std::size(row_orders);
    if (key == "r") view.reversed = !view.reversed;
    if (key == " ") view.held = !view.held;
    view.top = std::min(view.top, rows > room ? rows - room : 0); // no line stays empty
    return true;
}

/// Writes a line that says what is shown, then a table. Rows of threads that are astray are bold.
void draw(json& rows, const View& view, const Page& page, std::size_t room) {
    sort_rows(rows, row_orders[view.order], view.reversed);
    const auto end = std::min(rows.size(), view.top + room);
    const json shown(rows.begin() + static_cast<std::ptrdiff_t>(view.top),
                     rows.begin() + static_cast<std::ptrdiff_t>(end));
    Document document;
    document.add(Document::Table{watch_fields, shown});
    auto text =
        fmt::format("{} threads under policy, {}-{} by {}{}{}   q quit, s order, r reverse, space hold",
                    rows.size(), rows.empty() ? 0 : view.top + 1, end, row_orders[view.order],
                    view.reversed ? " reversed" : "", view.held ? ", HELD" : "");
    text = "\033[H\033[K" + cut(text, page.width, page);
    std::size_t row = 0;
    const auto table = to_text(document, page);
    for (const auto line : affinityd::split(table, '\n')) {
        if (row > shown.size()) break;
        const char* look = row == 0 ? "\033[7m" : shown[row - 1]["astray"] == true ? "\033[1m" : "";
        text += fmt::format("\r\n\033[K{}{}\033[0m", look, line);
        ++row;
    }
    put(text + (row <= room ? "\r\n\033[J" : ""));
}

/// Shows rows on the terminal until q.
void show_screen(milliseconds interval, const Look& look) {
    const char* terminal = std::getenv("TERM");
    if (terminal == nullptr || std::string_view(terminal) == "dumb")
        throw CallError{exit_failure, "this terminal cannot be drawn on (TERM): try --once"};
    const Screen screen;
    View view;
    auto rows = json::array();
    std::size_t room = 0;
    auto next = steady_clock::now();
    std::string key;
    do {
        if (!view.held && steady_clock::now() >= next) {
            rows = look();
            next = steady_clock::now() + interval;
        }
        winsize size{};
        ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
        room = size.ws_row > 2 ? size.ws_row - 2U : 0;
        draw(rows, view, Page::of_output(false, false), room);
        const auto left = std::chrono::ceil<milliseconds>(next - steady_clock::now());
        key = screen.key(view.held ? milliseconds(-1) : std::max(left, milliseconds(0)));
    } while (press(key, view, rows.size(), room));
}

struct ScreenOptions {
    std::string policy;
    milliseconds interval{1000};
    std::string order = row_orders[0];
    bool once = false;
};

Outcome run_watch(const ScreenOptions& options, const Globals& globals) {
    const auto root = need(affinityd::host::Root::open("/"));
    TaskSampler sampler(root);
    const Look look = [&] {
        const auto status = need(ask_daemon_object(globals, "GetStatus"));
        std::vector<std::string> names;
        for (const auto& policy : list(status, "policies"))
            names.push_back(text(policy, "name"));
        if (!options.policy.empty() && std::ranges::find(names, options.policy) == names.end())
            throw CallError{exit_failure,
                            "the daemon has no policy " + options.policy + guess(options.policy, names)};
        return sampler.sample(status, options.policy);
    };
    Document document;
    if (!options.once && !globals.json && ::isatty(STDOUT_FILENO) == 1 && ::isatty(STDIN_FILENO) == 1) {
        show_screen(options.interval, look);
        document.is_silent = true;
        return document;
    }
    (void)look(); // the second look counts from this one
    std::this_thread::sleep_for(options.interval);
    auto rows = look();
    sort_rows(rows, options.order, false);
    document.value = std::move(rows);
    document.add(Document::Table{watch_fields, document.value});
    return document;
}

} // namespace

void add_watch(CLI::App& app, Globals& globals, int& status) {
    const auto [verb, options] =
        add_verb(app,
                 {.name = "watch",
                  .summary = "threads under policy as they run: CPU, share, migrations",
                  .example = "affinityctl watch nginx --interval 500ms",
                  .answer = watch_fields,
                  .is_list = true},
                 globals, status, run_watch);
    verb->add_option("policy", options->policy, "only the threads of this policy");
    add_time(*verb, "--interval", options->interval, milliseconds(100),
             "time between two samples (default: 1s)");
    verb->add_option("--sort", options->order, "order of --once")
        ->check(CLI::IsMember(std::vector<std::string>(std::begin(row_orders), std::end(row_orders))))
        ->capture_default_str();
    verb->add_flag("--once", options->once,
                   "print one table (with --json a list) after one interval; so also without a terminal");
}

} // namespace affinityctl
