// SPDX-License-Identifier: Apache-2.0
#include "policy/cgroup_path.hpp"

#include <gtest/gtest.h>

namespace {

using affinityd::policy::CgroupNames;
using affinityd::policy::parse_cgroup_path;
using affinityd::policy::system_cgroup_names;

const std::string id = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const std::string other(64, 'e');

struct PathCase {
    std::string path;
    CgroupNames names;
};

// clang-format off
const std::vector<PathCase> path_cases{
    {"", {}},
    {"/", {}},
    {"//..//.", {}},
    {"/init.scope", {"init.scope", {}, "", ""}},
    {"/system.slice/nginx.service", {"nginx.service", {"system.slice"}, "", ""}},
    {"/system.slice/nginx.service/worker", {"nginx.service", {"system.slice"}, "", ""}},
    {"/system.slice/system-getty.slice/getty@tty1.service", {"getty@tty1.service", {"system.slice", "system-getty.slice"}, "", ""}},
    {"/system.slice/system-postgresql.slice/postgresql@15-main.service", {"postgresql@15-main.service", {"system.slice", "system-postgresql.slice"}, "", ""}},
    {"/system.slice/dev-disk-by\\x2duuid.swap", {"dev-disk-by\\x2duuid.swap", {"system.slice"}, "", ""}},
    {"/system.slice/_cpu.service", {"cpu.service", {"system.slice"}, "", ""}},
    {"/system.slice", {"", {"system.slice"}, "", ""}},
    {"/system.slice/.service", {"", {"system.slice"}, "", ""}},
    {"/system.slice/x/nginx.service", {"", {"system.slice"}, "", ""}},
    {"/user.slice/user-1000.slice/session-3.scope", {"session-3.scope", {"user.slice", "user-1000.slice"}, "", ""}},
    {"/user.slice/user-1000.slice/user@1000.service/app.slice/pipewire.service", {"pipewire.service", {"user.slice", "user-1000.slice", "user@1000.service", "app.slice"}, "", ""}},
    {"/user.slice/user-1000.slice/user@1000.service/app.slice/app-gnome.slice/app-gnome-x-1.scope", {"app-gnome-x-1.scope", {"user.slice", "user-1000.slice", "user@1000.service", "app.slice", "app-gnome.slice"}, "", ""}},
    {"/user.slice/user-1000.slice/user@1000.service/init.scope", {"init.scope", {"user.slice", "user-1000.slice", "user@1000.service"}, "", ""}},
    {"/user.slice/user-1000.slice/user@1000.service", {"user@1000.service", {"user.slice", "user-1000.slice"}, "", ""}},
    // docker: cgroupfs and systemd drivers, nested
    {"/docker/" + id, {"", {}, id, "docker"}},
    {"/docker/" + id + "/system.slice/ssh.service", {"", {}, id, "docker"}},
    {"/docker/" + id + "/docker/" + other, {"", {}, other, "docker"}},
    {"/system.slice/docker-" + id + ".scope", {"docker-" + id + ".scope", {"system.slice"}, id, "docker"}},
    {"/system.slice/docker-" + id + ".scope/init.scope", {"docker-" + id + ".scope", {"system.slice"}, id, "docker"}},
    {"/ecs/task-1/" + id, {"", {}, id, "docker"}},
    {"/system.slice/docker.service", {"docker.service", {"system.slice"}, "", ""}},
    {"/docker/buildkit", {"", {}, "", ""}},
    // podman
    {"/machine.slice/libpod-" + id + ".scope/container", {"libpod-" + id + ".scope", {"machine.slice"}, id, "podman"}},
    {"/machine.slice/libpod-conmon-" + id + ".scope", {"libpod-conmon-" + id + ".scope", {"machine.slice"}, "", ""}},
    {"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + id + ".scope", {"libpod-" + id + ".scope", {"user.slice", "user-1000.slice", "user@1000.service", "user.slice"}, id, "podman"}},
    {"/libpod_parent/libpod-" + id, {"", {}, id, "podman"}},
    {"/libpod_parent/" + id, {"", {}, id, "podman"}},
    {"/machine.slice/machine-libpod_pod_" + other + ".slice/libpod-" + id + ".scope", {"libpod-" + id + ".scope", {"machine.slice", "machine-libpod_pod_" + other + ".slice"}, id, "podman"}},
    // containerd below Kubernetes, both drivers, and by itself
    {"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12ab.slice/cri-containerd-" + id + ".scope",
        {"cri-containerd-" + id + ".scope", {"kubepods.slice", "kubepods-burstable.slice", "kubepods-burstable-pod12ab.slice"}, id, "containerd"}},
    {"/kubepods/besteffort/pod12ab-34/" + id, {"", {}, id, ""}},
    {"/system.slice/containerd.service/kubepods-burstable-pod12ab.slice:cri-containerd:" + id, {"containerd.service", {"system.slice"}, id, "containerd"}},
    {"/system.slice/nerdctl-" + id + ".scope", {"nerdctl-" + id + ".scope", {"system.slice"}, id, "containerd"}},
    {"/default/" + id, {"", {}, id, ""}},
    {"/docker/" + other + "/kubelet.slice/kubelet-kubepods.slice/cri-containerd-" + id + ".scope", {"", {}, id, "containerd"}},
    // CRI-O
    {"/kubepods.slice/kubepods-pod12ab.slice/crio-" + id + ".scope", {"crio-" + id + ".scope", {"kubepods.slice", "kubepods-pod12ab.slice"}, id, "crio"}},
    {"/kubepods.slice/kubepods-pod12ab.slice/crio-conmon-" + id + ".scope", {"crio-conmon-" + id + ".scope", {"kubepods.slice", "kubepods-pod12ab.slice"}, "", ""}},
    {"/kubepods/burstable/pod12ab/crio-" + id, {"", {}, id, "crio"}},
    // LXC and nspawn
    {"/lxc/web1", {"", {}, "web1", "lxc"}},
    {"/lxc/web1/system.slice/ssh.service", {"", {}, "web1", "lxc"}},
    {"/lxc.payload/web1/init.scope", {"", {}, "web1", "lxc"}},
    {"/lxc.payload.web1/system.slice/nginx.service", {"", {}, "web1", "lxc"}},
    {"/lxc.monitor.web1", {"", {}, "", ""}},
    {"/lxc.monitor/web1", {"", {}, "", ""}},
    {"/lxc.payload.", {"", {}, "", ""}},
    {"/machine.slice/systemd-nspawn@web.service/payload", {"systemd-nspawn@web.service", {"machine.slice"}, "web", "nspawn"}},
    {"/machine.slice/systemd-nspawn@.service", {"systemd-nspawn@.service", {"machine.slice"}, "", ""}},
    // nearly an id
    {"/docker/" + id.substr(1), {"", {}, "", ""}},
    {"/docker/" + id + "0", {"", {}, "", ""}},
    {"/docker/" + std::string(64, 'G'), {"", {}, "", ""}},
    {"/system.slice/docker-" + id.substr(1) + ".scope", {"docker-" + id.substr(1) + ".scope", {"system.slice"}, "", ""}},
    {std::string("/a\0b/\xff.service", 14), {"", {}, "", ""}},
};
// clang-format on

TEST(CgroupPath, Table) {
    for (const auto& [path, names] : path_cases) {
        const auto got = parse_cgroup_path(path);
        EXPECT_EQ(got.unit, names.unit) << path;
        EXPECT_EQ(got.slices, names.slices) << path;
        EXPECT_EQ(got.container_id, names.container_id) << path;
        EXPECT_EQ(got.container_runtime, names.container_runtime) << path;
    }
}

const std::string users = "/user.slice/user-1000.slice/user@1000.service";

// clang-format off
/// Names that users and containers choose are left out.
const std::vector<PathCase> system_cases{
    {"/system.slice/nginx.service/worker", {"nginx.service", {"system.slice"}, "", ""}},
    {"/user.slice/user-1000.slice/session-3.scope", {"session-3.scope", {"user.slice", "user-1000.slice"}, "", ""}},
    {users, {"user@1000.service", {"user.slice", "user-1000.slice"}, "", ""}},
    {users + "/nginx.service", {"user@1000.service", {"user.slice", "user-1000.slice"}, "", ""}},
    {users + "/app.slice/nginx.service", {"user@1000.service", {"user.slice", "user-1000.slice"}, "", ""}},
    {users + "/system.slice/nginx.service", {"user@1000.service", {"user.slice", "user-1000.slice"}, "", ""}},
    {users + "/system.slice", {"user@1000.service", {"user.slice", "user-1000.slice"}, "", ""}},
    {users + "/docker-" + id + ".scope", {"user@1000.service", {"user.slice", "user-1000.slice"}, "", ""}},
    {users + "/docker/" + id, {"user@1000.service", {"user.slice", "user-1000.slice"}, "", ""}},
    {users + "/lxc/web1", {"user@1000.service", {"user.slice", "user-1000.slice"}, "", ""}},
    {users + "/lxc.payload.web1", {"user@1000.service", {"user.slice", "user-1000.slice"}, "", ""}},
    {users + "/systemd-nspawn@web.service", {"user@1000.service", {"user.slice", "user-1000.slice"}, "", ""}},
    {"/user.slice/user-1000.slice/session-3.scope/lxc/web1", {"session-3.scope", {"user.slice", "user-1000.slice"}, "", ""}},
    {"/machine.slice/machine-guest.scope/payload/system.slice/docker-" + id + ".scope", {"machine-guest.scope", {"machine.slice"}, "", ""}},
    {"/machine.slice/machine-guest.scope/payload/lxc/victim", {"machine-guest.scope", {"machine.slice"}, "", ""}},
    {"/machine.slice/machine-qemu\\x2d1.scope/libvirt/lxc/victim", {"machine-qemu\\x2d1.scope", {"machine.slice"}, "", ""}},
    {"/docker/" + id + "/docker/" + other, {"", {}, id, "docker"}},
    {"/system.slice/docker-" + id + ".scope/docker-" + other + ".scope", {"docker-" + id + ".scope", {"system.slice"}, id, "docker"}},
    {"/lxc.payload.web1/lxc/db1", {"", {}, "web1", "lxc"}},
    {"/lxc/web1/lxc/db1", {"", {}, "web1", "lxc"}},
    {"/machine.slice/libpod-" + id + ".scope/container", {"libpod-" + id + ".scope", {"machine.slice"}, id, "podman"}},
    {"/kubepods.slice/kubepods-pod12ab.slice/crio-" + id + ".scope", {"crio-" + id + ".scope", {"kubepods.slice", "kubepods-pod12ab.slice"}, id, "crio"}},
    {"/", {}},
};
// clang-format on

TEST(CgroupPath, NamesThatOnlyRootCanHaveGiven) {
    for (const auto& [path, names] : system_cases)
        EXPECT_EQ(system_cgroup_names(path), names) << path << ": " << system_cgroup_names(path).unit;
}

} // namespace
