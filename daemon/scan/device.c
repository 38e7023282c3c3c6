/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/device.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "util/clock.h"
#include "util/macro.h"

/*
 * Opening or reading a file can block for ever on some file systems: FUSE, whose server is any
 * user's program, and network file systems. The maps of a process show the device of a file before
 * it is touched, and the mount table shows which devices are FUSE. Other devices are tried; one
 * that did not answer is avoided for a minute, and twice as long each further time, so that a hung
 * server costs one attempt and not one for each of its files.
 */

#define AVOID_FIRST_NS (60 * NS_PER_SECOND)
#define AVOID_LAST_NS  (3600 * NS_PER_SECOND)
/* Device numbers are reused after an unmount. */
#define KNOWN_NS (10 * NS_PER_SECOND)

enum { MOUNTS_MAX = 10000 }; /* lines of the mount table that are read */

void device_table_init(DeviceTable *table, int proc, LineReader *lines) {
    *table = (DeviceTable){.proc = proc, .lines = lines};
}

static bool device_is(Device a, Device b) {
    return a.major == b.major && a.minor == b.minor;
}

/* "ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAG...] - TYPE SOURCE OPTIONS", spaces escaped. */
static bool device_is_mount_of(const char *line, Device device, bool *ret_is_fuse) {
    const char *type = strstr(line, " - ");
    Device found;

    if (!type ||
        sscanf(line, "%*u %*u %" SCNu32 ":%" SCNu32 " ", &found.major, &found.minor) != 2 ||
        !device_is(found, device))
        return false;
    *ret_is_fuse = strncmp(type + 3, "fuse", 4) == 0;
    return true;
}

static bool device_find_fuse(DeviceTable *t, Device device, uint32_t pid) {
    _cleanup_close_ int fd = -1;
    bool is_fuse = false;
    char path[32], *line;
    size_t size;

    snprintf(path, sizeof(path), "%" PRIu32 "/mountinfo", pid);
    fd = openat(t->proc, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    line_reader_init(t->lines, fd);
    for (size_t i = 0; i < MOUNTS_MAX && line_reader_next(t->lines, &line, &size) > 0; i++)
        if (device_is_mount_of(line, device, &is_fuse))
            break;
    return is_fuse;
}

static bool device_is_fuse(DeviceTable *t, Device device, uint32_t pid) {
    uint64_t now_ns = clock_monotonic_ns();
    unsigned slot;

    for (size_t i = 0; i < DEVICES_KNOWN_MAX; i++)
        if (t->known[i].until_ns > now_ns && device_is(t->known[i].device, device))
            return t->known[i].is_fuse;
    slot = t->next_known++ % DEVICES_KNOWN_MAX;
    t->known[slot].device = device;
    t->known[slot].is_fuse = device_find_fuse(t, device, pid);
    t->known[slot].until_ns = now_ns + KNOWN_NS;
    return t->known[slot].is_fuse;
}

bool device_is_avoided(DeviceTable *table, Device device, uint32_t pid) {
    uint64_t now_ns = clock_monotonic_ns();

    for (size_t i = 0; i < DEVICES_AVOIDED_MAX; i++)
        if (device_is(table->avoided[i].device, device) && table->avoided[i].until_ns > now_ns)
            return true;
    return device_is_fuse(table, device, pid);
}

/* The device's slot, a free one, or the one that expires first. */
static size_t device_place_of(const DeviceTable *t, Device device) {
    size_t best = 0;

    for (size_t i = 0; i < DEVICES_AVOIDED_MAX; i++) {
        if (t->avoided[i].until_ns > 0 && device_is(t->avoided[i].device, device))
            return i;
        if (t->avoided[i].until_ns < t->avoided[best].until_ns)
            best = i;
    }
    return best;
}

void device_avoid(DeviceTable *table, Device device) {
    size_t i = device_place_of(table, device);
    bool is_known = table->avoided[i].until_ns > 0 && device_is(table->avoided[i].device, device);
    uint64_t delay_ns = is_known ? table->avoided[i].delay_ns * 2 : AVOID_FIRST_NS;

    table->avoided[i].device = device;
    table->avoided[i].delay_ns = MIN(delay_ns, (uint64_t)AVOID_LAST_NS);
    table->avoided[i].until_ns = clock_monotonic_ns() + table->avoided[i].delay_ns;
}
