// SPDX-License-Identifier: Apache-2.0
// affinityctl cat, affinityctl edit: the file of a policy; a copy of it in an editor, which takes the file's
// place when it has passed the check.
#include "affinityctl/verbs/policy_set.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "host/file.hpp"

#include <CLI/CLI.hpp>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace affinityctl {

namespace {

namespace fs = std::filesystem;
namespace host = affinityd::host;
using nlohmann::json;

// clang-format off
constexpr Field file_fields[] = {
    {"name", "", "text", "the policy"},
    {"file", "", "text", "its file"},
    {"text", "", "text", "its text; empty: it switches the policy off"},
};
constexpr Field edit_fields[] = {
    {"file", "", "text", "the policy's file"},
    {"outcome", "", "text", "saved, unchanged or kept"},
    {"copy", "", "text?", "the file with the edit, null unless it was kept"},
};
// clang-format on

struct CatOptions {
    std::vector<std::string> names;
};

Outcome run_cat(const CatOptions& options, const Globals& globals) {
    need(check_is_live(globals));
    Document document;
    document.value = json::array();
    for (const auto& name : options.names) {
        const auto places = policy_places(globals, name);
        const bool is_off = is_mask(places.in_force);
        const auto text = is_off ? std::optional<std::string>("") : need(host::read_file(places.in_force));
        if (!text)
            return failed(exit_failure, "there is no policy " + name + ": affinityctl policies lists them");
        document.value.push_back(record(file_fields, {name, places.in_force, *text}));
        document.heading("# " + places.in_force + (is_off ? ": it switches the policy off" : "")).gap =
            document.value.size() > 1;
        if (!text->empty()) document.verbatim(*text);
    }
    return document;
}

struct EditOptions {
    std::string name;
};

/// A copy of the policy's text in a folder that only this user can read; outlives this program unless
/// removed.
class Copy {
  public:
    Copy(const std::string& name, const std::string& text) {
        const char* folder = std::getenv("TMPDIR");
        auto made =
            std::string(folder != nullptr && *folder == '/' ? folder : "/tmp") + "/affinityctl-edit-XXXXXX";
        if (::mkdtemp(made.data()) == nullptr) throw CallError{exit_failure, "cannot make a folder: " + made};
        path_ = made + "/" + name;
        if (auto safe = host::check_ownership(made); !safe) { // another user could put a text of theirs there
            remove();
            need(std::move(safe));
        }
        need(host::replace_file(path_, text, 0600));
    }
    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] affinityd::Result<std::optional<std::string>> text() const {
        return host::read_file(path_);
    }
    /// With all that the editor has left beside it.
    void remove() const {
        std::error_code code;
        fs::remove_all(fs::path(path_).parent_path(), code);
    }

  private:
    std::string path_;
};

/// The text that a new policy begins with: an example of its name, or the keys that each has.
std::string first_text(const std::string& name) {
    const auto example = host::read_file("/usr/share/affinityd/examples/" + name + ".yaml");
    if (example && *example) return **example;
    return "# affinityd.policy(5) has all keys. The policy takes effect when this file is saved.\nversion: "
           "1\nmatch:\n  comm: " +
           name + "\naffinity: process\n";
}

/// As systemctl(1) chooses it. False: it failed.
bool run_editor(const std::string& path) {
    std::string editor = "editor";
    for (const char* name : {"SUDO_EDITOR", "VISUAL", "EDITOR"})
        if (const char* value = std::getenv(name); value != nullptr && *value != '\0') {
            editor = value;
            break;
        }
    ::setenv("AFFINITYCTL_EDITED", path.c_str(), 1);                        // no quoting of the path
    return std::system((editor + " \"$AFFINITYCTL_EDITED\"").c_str()) == 0; // NOLINT(cert-env33-c)
}

/// Shown while it is decided, apart from the answer.
void tell_of(const Outcome& part) {
    if (!part) {
        fmt::print(stderr, "affinityctl: {}\n", part.error().message);
        return;
    }
    for (const auto& complaint : part->complaints)
        fmt::print(stderr, "{}\n", complaint);
    fmt::print(stderr, "{}", to_text(*part, {.width = 100}));
}

/// A document of another verb, which may throw: the edit must not be lost.
Outcome attempt(Outcome (*verb)(const Globals&, const std::vector<std::string>&), const Globals& globals,
                const std::string& path) {
    try {
        return verb(globals, {path});
    } catch (const CallError& error) {
        return std::unexpected(error);
    }
}

/// Asks for one of `letters`; the last of them at the end of input, at ^C, and after some other answers.
char ask(const std::string& question, std::string_view letters) {
    std::array<char, 64> line{};
    for (int i = 0; i < 5; ++i) {
        fmt::print(stderr, "{} ", question);
        if (std::fgets(line.data(), line.size(), stdin) == nullptr) break;
        if (letters.find(line[0]) != std::string_view::npos) return line[0];
    }
    return letters.back();
}

Outcome run_edit(const EditOptions& options, const Globals& globals) {
    return edit_policy(globals, options.name, {});
}

} // namespace

Outcome edit_policy(const Globals& globals, const std::string& name,
                    const std::optional<std::string>& proposed) {
    need(check_is_live(globals));
    const auto places = policy_places(globals, name);
    if (is_mask(places.in_force))
        return failed(exit_failure, places.in_force + " switches the policy off: remove it first");
    need(host::check_replaceable(places.own));
    const auto before = need(host::read_file(places.own)), in_force = need(host::read_file(places.in_force));
    const auto file = fs::path(places.own).filename();
    const auto first = proposed   ? *proposed
                       : before   ? *before
                       : in_force ? *in_force
                                  : first_text(file.stem().string());
    const Copy copy(file.string(), first);
    Document document;
    const auto end = [&](const char* outcome, std::string sentence, Exit code) {
        const bool is_kept = std::string_view(outcome) == "kept";
        if (!is_kept) copy.remove();
        document.value = record(edit_fields, {places.own, outcome, is_kept ? json(copy.path()) : json()});
        document.line(std::move(sentence) + (is_kept ? "; the edit is kept in " + copy.path() : ""));
        document.code = code;
        return document;
    };
    // ^C ends a question, and not this program, which says where the edit is.
    struct sigaction interrupted {};
    interrupted.sa_handler = [](int) {};
    ::sigaction(SIGINT, &interrupted, nullptr);
    for (bool is_shown = !proposed || ::isatty(STDIN_FILENO) != 0;; is_shown = true) {
        if (is_shown && !run_editor(copy.path())) return end("kept", "the editor failed", exit_failure);
        const auto text = copy.text();
        if (!text || !*text) return end("kept", "the edited file cannot be read", exit_failure);
        if (!proposed && **text == first)
            return end("unchanged", places.own + ": nothing was changed", exit_ok);
        const auto checked = attempt(documents::check, globals, copy.path());
        tell_of(checked);
        const bool is_good = checked && checked->code == exit_ok;
        if (is_good) tell_of(attempt(documents::plan, globals, copy.path()));
        const auto answer =
            is_good && proposed
                ? ask(fmt::format("Install it as {}? [y]es, [e]dit it, [N]o:", places.own), "yen\nN")
            : is_good
                ? ask(fmt::format("Save it as {}? [s]ave, [e]dit again, [k]eep it apart:", places.own), "sek")
                : ask("It has errors. [e]dit again, [k]eep it apart:", "ek");
        if (answer == 'e') continue;
        if (answer == 'n' || answer == '\n' || answer == 'N')
            return end("unchanged", places.own + " is not installed", exit_ok);
        if (answer == 'k')
            return end("kept", places.own + " is as it was", is_good ? exit_failure : exit_findings);
        if (const auto saved = save_policy(places.own, before, **text); !saved)
            return end("kept", saved.error().message, exit_failure);
        return end("saved", places.own + " is saved; a running daemon reads it now", exit_ok);
    }
}

void add_edit(CLI::App& app, Globals& globals, int& status) {
    const auto [cat, shown] = add_verb(app,
                                       {.name = "cat",
                                        .summary = "the file of a policy, as it stands",
                                        .example = "affinityctl cat nginx",
                                        .answer = file_fields,
                                        .is_list = true},
                                       globals, status, run_cat);
    cat->add_option("NAME", shown->names, "policies")->required();
    const auto [edit, edited] = add_verb(app,
                                         {.name = "edit",
                                          .summary = "edit a policy; it is checked before it counts",
                                          .example = "affinityctl edit nginx",
                                          .answer = edit_fields},
                                         globals, status, run_edit);
    edit->add_option("NAME", edited->name, "the policy")->required();
}

} // namespace affinityctl
