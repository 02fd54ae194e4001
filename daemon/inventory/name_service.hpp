// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

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
    static bool start(const std::shared_ptr<State>& state);
    std::shared_ptr<State> state_; ///< the thread's, too
};

} // namespace affinityd::inventory
