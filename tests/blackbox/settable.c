// SPDX-License-Identifier: Apache-2.0
// Preloaded into a daemon on a made-up machine (see machines.py): what it writes into a file of /proc/irq, of
// a queue or of workqueues replaces the file's text, as it does in the kernel's own. FILE.error, "ERRNO" or
// "ERRNO VALUE", makes writes fail: all, or those of that value; FILE.tries gets a byte for each.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

ssize_t write(int fd, const void* data, size_t size) {
    static ssize_t (*real)(int, const void*, size_t);
    if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, "write");
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(link, path, sizeof path - 8);
    if (length <= 0) return real(fd, data, size);
    path[length] = '\0';
    if (strstr(path, "smp_affinity") == NULL && strstr(path, "ps_cpus") == NULL &&
        strstr(path, "/workqueue/") == NULL)
        return real(fd, data, size);
    FILE* file = fopen(strcat(path, ".error"), "re");
    if (file != NULL) {
        int number = 0;
        char value[64] = "";
        const int words = fscanf(file, "%d %63s", &number, value);
        fclose(file);
        if (words == 1 || (words == 2 && strlen(value) == size && memcmp(value, data, size) == 0)) {
            strcpy(path + length, ".tries");
            if ((file = fopen(path, "ae")) != NULL) {
                fputc('.', file);
                fclose(file);
            }
            errno = number;
            return -1;
        }
    }
    if (ftruncate(fd, 0) != 0) return -1;
    return real(fd, data, size);
}
