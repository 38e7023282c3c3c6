/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Why a session or the whole is less than asked for; a set. */
typedef enum Degraded {
    DEGRADED_LOST = 1 << 0,
    DEGRADED_THROTTLED = 1 << 1,
    DEGRADED_DISK_FULL = 1 << 2,
    DEGRADED_WRITER_BLOCKED = 1 << 3,
    DEGRADED_PARTIAL_CPUS = 1 << 4,
    DEGRADED_FALLBACK_EVENT = 1 << 5,
    DEGRADED_SHORT_REACH = 1 << 6,
    DEGRADED_CONFIG = 1 << 7,
    DEGRADED_RATE_LOWERED = 1 << 8,
    DEGRADED_SMALL_RINGS = 1 << 9,
    DEGRADED_NO_KERNEL = 1 << 10,
    DEGRADED_OWN_PROCESSES = 1 << 11,
    DEGRADED_PARTIAL_PROCESSES = 1 << 12,
    DEGRADED_SMALL_MEMORY = 1 << 13,
    DEGRADED_MISSING_EVENTS = 1 << 14,
    DEGRADED_FALLBACK_CALL_GRAPH = 1 << 15,
    DEGRADED_ABSENT_GROUP = 1 << 16,
    /* A session of these records nothing, and no sampler knows of it. */
    DEGRADED_STOPPED = 1 << 17,
    DEGRADED_PAUSED = 1 << 18,
    DEGRADED_FAILED = 1 << 19,
    DEGRADED_LATE_START = 1 << 20,
    DEGRADED_NO_CPUS = 1 << 21,
    DEGRADED_SCAN_STUCK = 1 << 22,
    DEGRADED_NO_BUILD_IDS = 1 << 23,
    DEGRADED_SHORT_STACKS = 1 << 24,
} Degraded;
