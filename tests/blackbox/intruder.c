// SPDX-License-Identifier: Apache-2.0
// A program on one CPU, and what interrupts it there: intruder KIND CPU OTHER. A thread spins on CPU; on OTHER, another one of the same
// process calls membarrier(2) or munmap(2) every 2 ms. With "timer" a POSIX timer interrupts the spinning thread every 5 ms; with "blink"
// nothing spins, and the thread works on CPU for 1 ms of 10; with "spin" nothing else is done.
#define _GNU_SOURCE
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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

int main(int argc, char** argv) {
    if (argc != 4) return 2;
    int cpu = atoi(argv[2]);
    const int is_barrier = strcmp(argv[1], "membarrier") == 0;
    if (strcmp(argv[1], "blink") == 0) {
        go_to(cpu);
        blink();
    }
    if (strcmp(argv[1], "timer") == 0) {
        go_to(cpu);
        arm();
    }
    if (!is_barrier && strcmp(argv[1], "munmap") != 0) spin(&cpu);
    pthread_t spinner;
    go_to(atoi(argv[3]));
    if (is_barrier && syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0) return 1;
    if (pthread_create(&spinner, NULL, spin, &cpu) != 0) return 1;
    for (;; pause_ms(2)) {
        if (is_barrier) {
            syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
            continue;
        }
        char* page = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED) return 1;
        memset(page, 1, 65536);
        munmap(page, 65536);
    }
}
