// SPDX-License-Identifier: Apache-2.0
// Preloaded into a daemon on a made-up machine (see machines.py): what it writes into a file replaces the
// file's text, as it does in the kernel's own; a file named FILE.error holds the number of the error that a
// write fails with.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

ssize_t write(int fd, const void* data, size_t size) {
    static ssize_t (*real)(int, const void*, size_t);
    if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, "write");
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(link, path, sizeof path - 8);
    if (length > 0) {
        path[length] = '\0';
        if (strstr(path, "/smp_affinity_list") != NULL || strstr(path, "ps_cpus") != NULL) {
            strcat(path, ".error");
            char text[16] = "";
            const int file = open(path, O_RDONLY | O_CLOEXEC);
            if (file >= 0) {
                if (read(file, text, sizeof text - 1) < 0) text[0] = '\0';
                close(file);
                errno = atoi(text);
                return -1;
            }
            if (ftruncate(fd, 0) != 0) return -1;
        }
    }
    return real(fd, data, size);
}
