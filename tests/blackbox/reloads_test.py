# SPDX-License-Identifier: Apache-2.0
"""nginx and HAProxy are reloaded while `affinity: full` is in force, under clients that never pause: no connection is lost, and the workers of
each generation have a CPU each."""
import os
import signal
import time

from house import allowed, children, comm, policy, python, report, wait_for
from nets import Net

NGINX = """daemon off;
worker_processes 2;
pid {folder}/pid;
error_log {folder}/error.log;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    server {{ listen 10.99.0.1:7001{reuseport}; location / {{ return 200 "hello"; }} }}
}}
"""
HAPROXY = """global
    nbthread {threads}
    stats socket {folder}/stats expose-fd listeners
defaults
    mode http
    timeout client 10s
    timeout server 10s
    timeout connect 10s
frontend web
    bind 10.99.0.1:7001{shards}
    http-request return status 200 content-type text/plain string hello
"""
# A connection for each request, one after the other, until its input ends; then how many were answered, and the first that was not.
CLIENT = """import select, socket, sys
answered, lost = 0, ""
while not select.select([sys.stdin], [], [], 0)[0]:
    try:
        with socket.create_connection(("10.99.0.1", 7001), 20) as one:
            one.sendall(b"GET / HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n")
            text = b""
            while part := one.recv(4096):
                text += part
            assert text.startswith(b"HTTP/1.1 200"), text
            answered += 1
    except (OSError, AssertionError) as error:
        lost = lost or repr(error)
print(answered, lost)
"""


class Reloads(Net):
    RELOADS = 3

    def run_reloads(self, start, workers, number, **keys):
        nic = self.pair(queues=2)
        daemon = self.inside({"reconcile": "1s"}, web=policy("server", affinity="full", nics=[nic], spread="core", bind="core", **keys))
        server = start()
        wait_for(lambda: "10.99.0.1:7001" in self.near.run("ss", "-Hltn"), "it listens")
        clients = [self.spawn(*self.far.command(*python(CLIENT)), stdin=-1, stdout=-1, text=True) for _ in range(2)]

        def apart(old=frozenset()):
            now = set(workers(server)) - old
            return now if sorted(allowed(pid, tid) for pid, tid in now) == ["0", "1"] else None
        generation = wait_for(apart, lambda: f"each worker has a CPU: {[allowed(*worker) for worker in workers(server)]}")
        for _ in range(self.RELOADS):
            os.kill(server.pid, number)
            generation = wait_for(lambda old=generation: apart(old), lambda: f"each new worker has a CPU: {[allowed(*worker) for worker in workers(server)]}")
            time.sleep(0.3)
        answered, lost = 0, []
        for client in clients:
            out = client.process.communicate("\n", timeout=60)[0].split(" ", 1)
            answered, lost = answered + int(out[0]), lost + [out[1].strip()]
        report(f"{type(self).__name__} {self._testMethodName}: {answered} connections during {self.RELOADS} reloads, lost: {sum(map(bool, lost))}")
        self.assertEqual((["", ""], True), (lost, answered > 100))
        daemon.stop()
        self.assertEqual({self.everywhere}, {allowed(*worker) for worker in generation})


    def nginx(self, stem="server", reuseport=""):
        path = self.bin / "nginx.conf"
        path.write_text(NGINX.format(folder=self.bin, reuseport=reuseport), encoding="utf-8")
        self.bin.chmod(0o755)
        return self.spawn(*self.near.command(self.copy_of("/usr/sbin/nginx", stem), "-p", self.bin, "-c", path))

    def nginx_workers(self, master):
        return [(pid, pid) for pid in children(master.pid) if "worker process\0" in open(f"/proc/{pid}/cmdline", encoding="utf-8").read()]

    def haproxy(self, stem="server", port="7001", counts=False):
        path = self.bin / "haproxy.cfg"
        text = HAPROXY.format(folder=self.bin, threads=2, shards=" shards by-thread").replace("7001", port)
        path.write_text(text.replace("    nbthread 2\n", "") if counts else text, encoding="utf-8")
        return self.spawn(*self.near.command(self.copy_of("/usr/sbin/haproxy", stem), "-W", "-f", path))

    def haproxy_workers(self, master):
        # The newest child: those before it end when their clients have gone.
        pid = max((child for child in children(master.pid) if comm(child) == comm(master.pid)), default=None)
        return [(pid, tid) for tid in map(int, os.listdir(f"/proc/{pid}/task"))] if pid else []


class Nginx(Reloads):

    def test_nginx_with_one_listener(self):
        self.run_reloads(self.nginx, self.nginx_workers, signal.SIGHUP)

    def test_nginx_with_a_listener_for_each_worker(self):
        self.run_reloads(lambda: self.nginx(reuseport=" reuseport"), self.nginx_workers, signal.SIGHUP)


class HAProxy(Reloads):
    def test_two_threads(self):
        self.run_reloads(self.haproxy, self.haproxy_workers, signal.SIGUSR2)


class Counted(Reloads):
    """HAProxy runs itself anew at a reload, and makes a thread for each CPU that it has then."""

    def reload(self, **keys):
        daemon = self.inside({"reconcile": "1s"}, proxy=policy("proxy", spread="core", bind="core", **keys))
        master = self.haproxy("proxy", counts=True)

        def is_known():
            reason = daemon.explain(master.pid)["threads"][0].get("reason", "")
            return "it starts the programs" in reason and allowed(master.pid) == "0-1"
        for _ in range(3):
            wait_for(lambda: sorted(allowed(*worker) for worker in self.haproxy_workers(master)) == ["0", "1"],
                     lambda: f"there are two threads, with a core each: {self.haproxy_workers(master)}")
            wait_for(is_known, lambda: f"its master has all CPUs, and not only while it settles: {allowed(master.pid)}")
            former = self.haproxy_workers(master)
            os.kill(master.pid, signal.SIGUSR2)
            wait_for(lambda old=former: self.haproxy_workers(master) not in ([], old), "new workers are there")

    def test_haproxy_has_all_its_threads_after_a_reload(self):
        self.pair(queues=2)
        self.reload()

    def test_haproxy_has_all_its_threads_after_a_reload_under_full(self):
        self.reload(affinity="full", nics=[self.pair(queues=2)])


class Restarts(Reloads):
    def test_nginx_and_haproxy_restarted_together_have_a_worker_on_each_cpu(self):
        """Under the placement of the shipped examples."""
        self.pair(queues=2)
        shipped = {"affinity": "full", "nics": "auto", "spread": "core", "bind": "core"}
        self.inside({"reconcile": "1s"}, web=policy("web", **shipped), proxy=policy("proxy", **shipped))
        for _ in range(3):
            masters = self.nginx("web"), self.haproxy("proxy", "7002")
            places = [(self.nginx_workers, masters[0]), (self.haproxy_workers, masters[1])]

            def apart():
                return [sorted(allowed(*worker) for worker in workers(master)) for workers, master in places]
            wait_for(lambda now=apart: now() == [["0", "1"], ["0", "1"]], lambda now=apart: f"each server has a worker on each CPU: {now()}")
            for master in masters:
                os.kill(master.pid, signal.SIGTERM)
            wait_for(lambda: "10.99.0.1:700" not in self.near.run("ss", "-Hltn"), "both have ended")
