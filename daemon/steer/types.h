/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Types that programs for the kernel need before libbpf's headers, where no vmlinux.h is generated. Types of the kernel are written by hand, with
 * the members that are used; each is found in the running kernel by its name (CO-RE), so neither the order nor the rest matters, and the
 * machine that builds this needs no BTF. Source: uapi/linux/types.h, uapi/linux/bpf.h. */
#pragma once

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

enum {
    BPF_MAP_TYPE_HASH = 1,
    BPF_MAP_TYPE_ARRAY = 2,
    BPF_MAP_TYPE_PERCPU_ARRAY = 6,
    BPF_MAP_TYPE_LRU_HASH = 9,
    BPF_MAP_TYPE_SOCKHASH = 18,
    BPF_MAP_TYPE_SK_STORAGE = 24,
    BPF_MAP_TYPE_RINGBUF = 27
};
enum { BPF_F_NO_PREALLOC = 1, BPF_F_CLONE = 512, BPF_F_MMAPABLE = 1024, BPF_SK_STORAGE_GET_F_CREATE = 1, BPF_SK_LOOKUP_F_NO_REUSEPORT = 2 };
enum { SK_DROP = 0, SK_PASS = 1 };
enum { BPF_ANY = 0, BPF_NOEXIST = 1 };

#define CORE __attribute__((preserve_access_index))
