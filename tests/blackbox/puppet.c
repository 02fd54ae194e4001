// SPDX-License-Identifier: Apache-2.0
// A program that does as it is told, one command a line on its standard input, and answers each with one
// line: a number, or "-" and the error. The program ends with its input. Threads wait until they are told to spin. TID 0 is the main thread.
//
//   thread NAME         makes a thread; answers its id
//   end TID             the thread ends
//   busy TID 0|1        the thread spins, or waits again
//   mask TID CPU,CPU    sets the thread's mask
//   rename TID NAME     gives the thread a name; that of the main thread is the process's
//   title TEXT          writes over its arguments
//   uid N               changes the user
//   listen PORT         listens on 127.0.0.1
//   fork                makes a child that waits; answers its pid
//   spawn PROGRAM ARG   makes a child that runs a program; answers its pid
//   exec PROGRAM ARG    becomes another program
//   cpus                how many CPUs it may use, as programs count them
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 4096 };
struct slave {
    atomic_int tid, state; // state: 0 waits, 1 spins, 2 ends
    char name[16];
    sem_t told;
};
static struct slave slaves[MOST];
static int count;
static char *arguments, *arguments_end;

static void* live(void* argument) {
    struct slave* self = argument;
    prctl(PR_SET_NAME, self->name);
    atomic_store(&self->tid, (int)syscall(SYS_gettid));
    for (;;) {
        const int state = atomic_load(&self->state);
        if (state == 2) return NULL;
        if (state == 0) sem_wait(&self->told);
    }
}

static int thread(const char* name) {
    if (count == MOST) return -ENOSPC;
    struct slave* self = &slaves[count];
    memset(self, 0, sizeof *self);
    sem_init(&self->told, 0, 0);
    strncpy(self->name, name, sizeof self->name - 1);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    pthread_t made;
    const int error = pthread_create(&made, &small, live, self);
    if (error != 0) return -error;
    pthread_detach(made);
    ++count;
    while (atomic_load(&self->tid) == 0)
        usleep(200);
    return atomic_load(&self->tid);
}

static int set_state(int tid, int state) {
    for (int i = 0; i < count; ++i)
        if (atomic_load(&slaves[i].tid) == tid) {
            atomic_store(&slaves[i].state, state);
            sem_post(&slaves[i].told);
            return 0;
        }
    return -ESRCH;
}

static int mask(int tid, char* cpus) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (char *rest, *one = strtok_r(cpus, ",", &rest); one != NULL; one = strtok_r(NULL, ",", &rest))
        CPU_SET(atoi(one), &set);
    return sched_setaffinity(tid, sizeof set, &set) == 0 ? 0 : -errno;
}

static int rename_task(int tid, const char* name) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/comm", tid == 0 ? getpid() : tid);
    FILE* file = fopen(path, "w");
    if (file == NULL) return -errno;
    fputs(name, file);
    return fclose(file) == 0 ? 0 : -errno;
}

static int child(char** program) {
    const int pid = fork();
    if (pid != 0) return pid > 0 ? pid : -errno;
    signal(SIGCHLD, SIG_DFL);
    const int nothing = 0;
    close(nothing);
    close(1);
    if (program != NULL) {
        execvp(program[0], program);
        _exit(127);
    }
    alarm(600);
    for (;;)
        pause();
}

static int title(const char* text) {
    const size_t room = (size_t)(arguments_end - arguments);
    if (strlen(text) >= room) return -ENOSPC;
    memset(arguments, 0, room);
    strcpy(arguments, text);
    return 0;
}

static int listen_on(int port) {
    const int one = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    if (bind(one, (struct sockaddr*)&address, sizeof address) != 0 || listen(one, 5) != 0) return -errno;
    return 0;
}

static int count_cpus(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : -errno;
}

int main(int argc, char** argv) {
    arguments = argv[0];
    arguments_end = argv[argc - 1] + strlen(argv[argc - 1]);
    signal(SIGCHLD, SIG_IGN);
    char line[4096];
    while (fgets(line, sizeof line, stdin) != NULL) {
        char* words[64] = {NULL};
        int n = 0;
        for (char *rest, *one = strtok_r(line, " \n", &rest); one != NULL && n < 63;
             one = strtok_r(NULL, " \n", &rest))
            words[n++] = one;
        if (n == 0) continue;
        const char* what = words[0];
        const int tid = n > 1 ? atoi(words[1]) : 0;
        int answer = -EINVAL;
        if (strcmp(what, "thread") == 0 && n == 2)
            answer = thread(words[1]);
        else if (strcmp(what, "end") == 0 && n == 2)
            answer = set_state(tid, 2);
        else if (strcmp(what, "busy") == 0 && n == 3)
            answer = set_state(tid, atoi(words[2]));
        else if (strcmp(what, "mask") == 0 && n == 3)
            answer = mask(tid, words[2]);
        else if (strcmp(what, "rename") == 0 && n == 3)
            answer = rename_task(tid, words[2]);
        else if (strcmp(what, "uid") == 0 && n == 2)
            answer = setresuid(tid, tid, tid) == 0 ? 0 : -errno;
        else if (strcmp(what, "fork") == 0)
            answer = child(NULL);
        else if (strcmp(what, "spawn") == 0 && n > 1)
            answer = child(words + 1);
        else if (strcmp(what, "title") == 0 && n == 2)
            answer = title(words[1]);
        else if (strcmp(what, "listen") == 0 && n == 2)
            answer = listen_on(tid);
        else if (strcmp(what, "cpus") == 0)
            answer = count_cpus();
        else if (strcmp(what, "exec") == 0 && n > 1) {
            printf("0\n");
            fflush(stdout);
            execvp(words[1], words + 1);
            return 127;
        }
        if (answer < 0)
            printf("- %s\n", strerror(-answer));
        else
            printf("%d\n", answer);
        fflush(stdout);
    }
    return 0;
}
