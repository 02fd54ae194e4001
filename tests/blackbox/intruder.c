// SPDX-License-Identifier: Apache-2.0
// A program on one CPU, and what interrupts it there: intruder KIND CPU OTHER. A thread spins on CPU; on OTHER, another one of the same
// process calls membarrier(2) or munmap(2), counts an event of perf on CPU, or unmounts a file system of its own every 2 ms. With "timer" a POSIX timer interrupts the spinning thread every 5 ms; with "blink"
// nothing spins, and the thread works on CPU for 1 ms of 10; with "spin" nothing else is done.
#define _GNU_SOURCE
#include <linux/membarrier.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void go_to(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) exit(1);
}

static void pause_ms(long time) {
    const struct timespec length = {0, time * 1000000};
    nanosleep(&length, NULL);
}

static void* spin(void* cpu) {
    go_to(*(int*)cpu);
    for (volatile unsigned long count = 0;; ++count) {}
}

static void blink(void) {
    struct timespec begin, now;
    for (;; pause_ms(9)) {
        clock_gettime(CLOCK_MONOTONIC, &begin);
        do
            clock_gettime(CLOCK_MONOTONIC, &now);
        while ((now.tv_sec - begin.tv_sec) * 1000000000L + now.tv_nsec - begin.tv_nsec < 1000000L);
    }
}

static void nothing(int number) { (void)number; }

static void arm(void) {
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    const struct itimerspec often = {{0, 5000000}, {0, 5000000}};
    timer_t timer;
    signal(SIGUSR1, nothing);
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 || timer_settime(timer, 0, &often, NULL) != 0) exit(1);
}

/* The kernel asks CPU to begin and to end it. */
static void count_on(int cpu) {
    struct perf_event_attr event = {.type = PERF_TYPE_SOFTWARE, .size = sizeof event, .config = PERF_COUNT_SW_CPU_MIGRATIONS};
    const long counter = syscall(SYS_perf_event_open, &event, -1, cpu, -1, 0);
    if (counter < 0) exit(1);
    close((int)counter);
}

/* Waits for all CPUs: an expedited grace period of RCU. */
static void unmount(void) {
    if (mount("none", "/mnt", "tmpfs", 0, "size=4k") != 0 || umount2("/mnt", MNT_DETACH) != 0) exit(1);
}

static void unmap(void) {
    char* page = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) exit(1);
    memset(page, 1, 65536);
    munmap(page, 65536);
}

int main(int argc, char** argv) {
    if (argc != 4) return 2;
    int cpu = atoi(argv[2]);
    const int is_barrier = strcmp(argv[1], "membarrier") == 0, is_perf = strcmp(argv[1], "perf") == 0, is_rcu = strcmp(argv[1], "rcu") == 0;
    if (strcmp(argv[1], "blink") == 0) {
        go_to(cpu);
        blink();
    }
    if (strcmp(argv[1], "timer") == 0) {
        go_to(cpu);
        arm();
    }
    if (!is_barrier && !is_perf && !is_rcu && strcmp(argv[1], "munmap") != 0) spin(&cpu);
    pthread_t spinner;
    go_to(atoi(argv[3]));
    if (is_barrier && syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0) return 1;
    if (is_rcu && (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)) return 1;
    if (pthread_create(&spinner, NULL, spin, &cpu) != 0) return 1;
    for (;; pause_ms(2)) {
        if (is_barrier)
            syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
        else if (is_perf)
            count_on(cpu);
        else if (is_rcu)
            unmount();
        else
            unmap();
    }
}
