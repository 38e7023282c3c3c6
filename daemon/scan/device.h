/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides which devices of mapped files are unsafe to touch. */

#include <stdbool.h>
#include <stdint.h>

#include "scan/text/line.h"

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
        uint64_t until_ns, delay_ns; /* until_ns is 0 in a free slot */
    } avoided[DEVICES_AVOIDED_MAX];
    struct {
        Device device;
        bool is_fuse;
        uint64_t until_ns;
    } known[DEVICES_KNOWN_MAX];
    unsigned next_known;
    LineReader *lines; /* borrowed, to read the mount table */
} DeviceTable;

void device_table_init(DeviceTable *table, int proc, LineReader *lines);
/* Whether files on it must not be touched now: it recently did not answer, or it is FUSE according
 * to the process's mount table. */
bool device_is_avoided(DeviceTable *table, Device device, uint32_t pid);
/* It did not answer: avoid it for a while, longer each time. */
void device_avoid(DeviceTable *table, Device device);
