// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/commands.hpp"
#include "control/call.hpp"

#include <cstdint>
#include <functional>
#include <string>

struct sd_bus;

namespace affinityd::control {

inline constexpr const char* bus_name = "org.affinityd";
inline constexpr const char* object_path = "/org/affinityd";
inline constexpr const char* interface_name = "org.affinityd.Manager1";

/// Methods of org.affinityd.Manager1.
enum class Method : std::uint8_t {
    get_status,
    get_plan,
    get_history,
    explain,
    reload,
    release,
    apply,
    measure
};

/// True for methods that change nothing.
[[nodiscard]] constexpr bool only_reads(Method method) { return method <= Method::explain; }

/// One call of one of the methods.
struct Request {
    Method method;
    std::string argument; ///< "" for methods without one
    Call call;
    app::Until until = app::Until::done; ///< for methods that change something
};

/// Takes the calls that come in over one kind of connection and decides whether they are carried out.
class Front {
  public:
    virtual ~Front() = default;
    virtual void take(Request request) = 0;
};

/// Adds the object /org/affinityd to a connection; 0 or a negative errno value. `front` must outlive the
/// connection.
int add_manager_object(sd_bus* bus, Front& front);

/// Carries requests out and answers them in full: for callers whose right to that has been checked.
class CommandRunner {
  public:
    /// Measures now; the answer is an Error if a measurement is running or none can be started.
    using Measure = std::function<void(app::Answer answer, app::Until until)>;
    /// `commands` must outlive this.
    CommandRunner(app::Commands& commands, Measure measure)
        : commands_(commands), measure_(std::move(measure)) {}

    void run(Request request);
    /// Carries out a method that only reads, for a caller that passes the answer on.
    void read(Method method, const std::string& argument, app::OwnedAnswer answer);

  private:
    app::Commands& commands_;
    Measure measure_;
};

} // namespace affinityd::control
