// SPDX-License-Identifier: Apache-2.0
#include "netdev/napi.hpp"
#include "netdev/netdev_family.hpp"

#include <memory>

#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>

namespace affinityd::netdev {

namespace {

struct Release {
    void operator()(nl_sock* socket) const { nl_socket_free(socket); }
    void operator()(nl_msg* message) const { nlmsg_free(message); }
};

constexpr std::size_t max_answers = 1U << 20; ///< more than any machine has queues

template <class Fact>
using Parser = std::optional<Fact> (*)(std::span<const std::byte>);

template <class Fact>
struct Collector {
    Parser<Fact> parse;
    std::vector<Fact> facts;
};

template <class Fact>
int collect(nl_msg* message, void* argument) {
    auto& collector = *static_cast<Collector<Fact>*>(argument);
    auto* head = static_cast<genlmsghdr*>(nlmsg_data(nlmsg_hdr(message)));
    if (nlmsg_datalen(nlmsg_hdr(message)) < static_cast<int>(GENL_HDRLEN) || collector.facts.size() >= max_answers) return NL_OK;
    const auto* first = reinterpret_cast<const std::byte*>(genlmsg_attrdata(head, 0));
    const auto length = static_cast<std::size_t>(genlmsg_attrlen(head, 0));
    if (auto fact = collector.parse({first, length})) collector.facts.push_back(*fact);
    return NL_OK;
}

/// All answers to a dump; nothing if the kernel refuses.
template <class Fact>
std::vector<Fact> dump(nl_sock* socket, int family_id, int command, Parser<Fact> parse) {
    const std::unique_ptr<nl_msg, Release> message(nlmsg_alloc());
    if (!message) return {};
    if (genlmsg_put(message.get(), NL_AUTO_PORT, NL_AUTO_SEQ, family_id, 0, NLM_F_DUMP,
                    static_cast<unsigned char>(command), family::version) == nullptr)
        return {};
    Collector<Fact> collector{parse, {}};
    nl_socket_modify_cb(socket, NL_CB_VALID, NL_CB_CUSTOM, collect<Fact>, &collector);
    if (nl_send_auto(socket, message.get()) < 0) return {};
    if (nl_recvmsgs_default(socket) < 0) return {};
    return std::move(collector.facts);
}

} // namespace

Result<void> read_napi(std::vector<Nic>& nics) {
    const std::unique_ptr<nl_sock, Release> socket(nl_socket_alloc());
    if (!socket) return fail("cannot allocate a netlink socket");
    if (const int code = genl_connect(socket.get()); code < 0)
        return fail(std::string("cannot connect to generic netlink: ") + nl_geterror(code));
    const int family_id = genl_ctrl_resolve(socket.get(), family::name);
    if (family_id < 0) return {}; // before Linux 6.8
    const auto queues = dump<QueueFact>(socket.get(), family_id, family::cmd_queue_get, parse_queue);
    const auto napis = dump<NapiFact>(socket.get(), family_id, family::cmd_napi_get, parse_napi);
    link_queues(nics, queues, napis);
    return {};
}

} // namespace affinityd::netdev
