// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "enforcer/unit_properties.hpp"

#include <chrono>
#include <cstddef>
#include <list>
#include <string_view>

typedef struct sd_bus sd_bus;

namespace affinityd::enforcer {

/// The units of the systemd that runs this machine, over its D-Bus interface.
class UnitCpus final : public UnitProperties {
  public:
    /// The connection over which systemd is called; nullptr while there is none. Its owner lets it work from
    /// the loop.
    using Connection = std::function<sd_bus*()>;
    /// `patience`: how long systemd has for an answer.
    explicit UnitCpus(Connection connection, std::chrono::milliseconds patience = std::chrono::seconds(5));
    UnitCpus(const UnitCpus&) = delete;
    UnitCpus& operator=(const UnitCpus&) = delete;
    ~UnitCpus() override;

    void read(const std::string& unit, Read done) override;
    void write(const std::string& unit, const CpuSet& cpus, Written done) override;

    [[nodiscard]] std::size_t calls_under_way() const;

  private:
    struct Call;
    void send(Call call);

    Connection connection_;
    std::chrono::milliseconds patience_;
    std::list<Call> calls_; ///< those that wait for a reply
};

/// A set as systemd has it: one bit per CPU, the lowest CPU in the lowest bit of the first byte.
[[nodiscard]] std::string to_unit_bytes(const CpuSet& cpus);
[[nodiscard]] CpuSet from_unit_bytes(std::string_view bytes);

} // namespace affinityd::enforcer
