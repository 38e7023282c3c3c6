/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Devices of files that other processes have mapped, as far as it may be unwise to touch them. */

#include <stdbool.h>
#include <stdint.h>

#include "scan/line.h"

enum {
    DEVICES_AVOIDED_MAX = 64,
    DEVICES_KNOWN_MAX = 64,
};

typedef struct Device {
    uint32_t major, minor;
} Device;

typedef struct DeviceTable {
    int proc; /* a descriptor of /proc, borrowed */
    struct {
        Device device;
        uint64_t until_ns, delay_ns; /* 0: a free place */
    } avoided[DEVICES_AVOIDED_MAX];
    struct {
        Device device;
        bool is_fuse;
        uint64_t until_ns;
    } known[DEVICES_KNOWN_MAX];
    unsigned next_known;
    LineReader *lines; /* borrowed, to read mounts by */
} DeviceTable;

void device_table_init(DeviceTable *table, int proc, LineReader *lines);
/* Whether files on it are left alone now: it did not answer lately, or the mounts that the process
 * sees say that it is FUSE. */
bool device_is_avoided(DeviceTable *table, Device device, uint32_t pid);
/* It did not answer: for a while nobody is to touch it, and longer each time. */
void device_avoid(DeviceTable *table, Device device);
