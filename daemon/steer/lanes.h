/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The tables of lanes.bpf.c, for it and for the program that loads it. */
#pragma once

enum {
    steer_most_listeners = 4096, /* of a network namespace */
    steer_most_strangers = 4096, /* addresses that others have under one that is steered as a whole */
    steer_most_services = 8192,  /* addresses that are steered */
    steer_most_slots = 8192,
    steer_most_lanes = 16384,    /* services times CPUs */
    steer_most_processes = 16384, /* whose listeners matter */
    steer_most_places = 2,       /* slots of one listener: of IPv6, and of IPv4 that it takes, too */
    steer_whole = 65536,         /* all connections, where a share of them is told */
};

/* An address and port where connections or datagrams come in, of a network namespace. */
struct steer_address {
    unsigned int space;      /* its inode */
    unsigned int address[4]; /* network order, IPv4 mapped into IPv6 */
    unsigned short port;     /* host order */
    unsigned short protocol; /* IPPROTO_TCP or IPPROTO_UDP */
};

/* Listeners on an address that others have. */
struct steer_stranger {
    unsigned long long opened; /* when the last one began to listen, in ns of the monotonic clock */
    unsigned long long number; /* of those whose end the kernel tells, and one more if the daemon listed it */
};

struct steer_service {
    unsigned int id;
    unsigned int slots;   /* 0: the kernel chooses */
    unsigned int pass_on; /* of steer_whole: so many are left to the kernel's choice in any case */
    unsigned int is_dual; /* IPv4 of a listener of IPv6: one of IPv4's own takes it from that one */
};

/* Where connections and datagrams that arrive on one CPU go. */
struct steer_lane_key {
    unsigned int service, cpu;
};
struct steer_lane {
    unsigned int first, count; /* slots */
    unsigned int pass_on;      /* of steer_whole: so many go to any slot, as the lane has more than its share */
};

struct steer_slot {
    unsigned int service, slot;
};

/* Where the listener with some cookie is to be put. */
struct steer_places {
    unsigned int count;
    struct steer_slot at[steer_most_places];
};

/* A listener, or a socket of UDP that shares its port, as servers open for each worker. */
struct steer_found {
    unsigned long long cookie;
    unsigned long long inode;  /* as descriptors of it show it; 0: none has it open */
    struct steer_address at;
    unsigned int device;       /* SO_BINDTODEVICE; 0: none */
    int refused;               /* a negative errno: the kernel did not put it where it is wanted */
    unsigned char is_dual;     /* IPv6 that takes IPv4, too */
    unsigned char has_program; /* its group chooses by a program of its own */
    unsigned char unused[6];
};

/* A listener that matters was opened. */
struct steer_opened {
    unsigned int process;
    unsigned int is_paused; /* there was no room to note it, and its port is left to the kernel */
};

/* Storage at a listener, which the kernel copies to each of its connections. */
struct steer_origin {
    unsigned long long listener; /* cookie */
    unsigned int is_read, unused;
};

/* A task that takes connections from a listener, or reads a socket of UDP. */
struct steer_taker {
    unsigned long long listener;
    unsigned int process, thread;
};

/* So many connections; after these, the same of datagrams. */
enum { steer_to_lane, steer_to_next, steer_to_kernel, steer_full, steer_notes };
