// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/root.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace affinityd::inventory {

enum class NameKind { user, group };

/// Looks up the name of a user or group id; no value: it has none, or the answer is not there yet.
using AskName = std::function<std::optional<std::string>(NameKind kind, unsigned id)>;

/// getpwuid_r(3), getgrgid_r(3). May take as long as the network does: not for the event loop.
[[nodiscard]] std::optional<std::string> ask_name_service(NameKind kind, unsigned id);

/// The name service asked by a thread of its own, so that no caller ever waits. The thread is started by the
/// first question. At its end a question that is being answered is left to itself.
class NameService {
  public:
    static constexpr std::size_t most_questions = 256; ///< waiting; more are dropped and may be asked again
    static constexpr std::size_t most_answers =
        65'536; ///< kept; every user may choose ids in a user namespace

    explicit NameService(AskName ask = ask_name_service);
    NameService(const NameService&) = delete;
    NameService& operator=(const NameService&) = delete;
    ~NameService();

    /// The answer if it is there ("" for an id without name); no value: it was asked for now or before.
    [[nodiscard]] std::optional<std::string> find(NameKind kind, unsigned id);
    /// Asks for everything anew when it is wanted next; until then the old answers hold.
    void refresh();

    /// Readable once answers have come; -1 if the kernel gave no descriptor.
    [[nodiscard]] int fd() const;
    /// True if answers have come since the last call; fd() is not readable then until more come.
    bool take_answers();

  private:
    struct State;
    std::shared_ptr<State> state_; ///< the thread's, too
};

/// Names of users and groups: by the root's own etc/passwd and etc/group, which is right for recordings, too;
/// what they lack is asked of `ask`. Reading them never waits for a name service.
class UserNames {
  public:
    /// An empty `ask`: the files are all there is. `root` must outlive the names.
    UserNames(const host::Root& root, AskName ask) : root_(&root), ask_(std::move(ask)) {}

    /// The name; the number as text if it has none, or none yet.
    [[nodiscard]] std::string find(NameKind kind, unsigned id);
    /// Reads the files again when they are wanted next, if they have changed.
    void refresh();

  private:
    using Names = std::unordered_map<unsigned, std::string>;
    struct File {
        Names names;
        std::string stamp; ///< which state of the file was read; "" if none
        bool is_checked = false;
    };
    const Names& names_of(NameKind kind);

    const host::Root* root_;
    AskName ask_;
    File users_, groups_;
};

/// The lines "name:password:id:..." of passwd(5) and group(5). The first of several names of one id counts,
/// as for getpwuid(3); lines that are none, and those of the compatibility mode ("+name"), are passed over.
[[nodiscard]] std::unordered_map<unsigned, std::string> parse_names(std::string_view text);

} // namespace affinityd::inventory
