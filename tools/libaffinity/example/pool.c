/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that say what they are: two for input and output, two that compute. Build it:
 *     cc -o pool pool.c $(pkg-config --cflags --libs libaffinity) -pthread
 * with this policy, as /etc/affinityd/policies.d/pool.yaml:
 *     version: 1
 *     match: {comm: pool}
 *     allow_join: [io, worker]
 *     threads:
 *       - {slot: io, cpus: "0", bind: cpu}
 *       - {slot: worker, cpus: "!0", spread: core, bind: core}
 */
#include <affinity.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static void *work(void *slot) {
    struct affinity_place place;
    const int joined = affinity_join(slot); /* 0: no daemon runs; the thread works all the same */
    if (joined < 0) fprintf(stderr, "%s: not joined: %s\n", (const char *)slot, strerror(-joined));
    if (affinity_where(&place, sizeof place) >= 0)
        printf("%-6s  CPUs %s, on CPU %d, policy %s\n", (const char *)slot, place.cpus, place.cpu,
               place.policy[0] != '\0' ? place.policy : "none");
    return NULL;
}

int main(void) {
    const char *const slots[] = {"io", "io", "worker", "worker"};
    enum { threads = sizeof slots / sizeof *slots };
    pthread_t thread[threads];
    int made = 0;
    while (made < threads && pthread_create(&thread[made], NULL, work, (void *)slots[made]) == 0)
        ++made;
    for (int i = 0; i < made; ++i)
        pthread_join(thread[i], NULL);
    return made == threads ? 0 : 1;
}
