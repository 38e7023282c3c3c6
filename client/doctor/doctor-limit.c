/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/doctor/doctor-check.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/timex.h>

#include "client/frame/figure.h"
#include "util/text.h"

/*
 * Resources for processes: capabilities, descriptors, locked memory, disk space and a synchronised
 * clock. If profd runs, its own limits are checked, else those that it would inherit from here.
 */

enum { STATUS_TEXT_MAX = 8192, RING_KIB = 512 };

/* The text after `name` and a colon at the start of a line; NULL: there is none. */
static const char *doctor_limit_value_of(const char *text, const char *name) {
    size_t n = strlen(name);

    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, n) == 0)
            return line + n + strspn(line + n, ": \t");
    }
    return NULL;
}

static bool doctor_limit_read_mask(const char *text, const char *name, uint64_t *ret) {
    const char *value = doctor_limit_value_of(text, name);

    return value && sscanf(value, "%" SCNx64, ret) == 1;
}

/* Reads /proc/PID/… of a process, or of this one; returns the length or a negative errno. */
static int doctor_limit_read_process(const Doctor *d, pid_t pid, const char *file, char *ret,
                                     size_t size) {
    char path[64];

    if (pid)
        (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    else
        (void)snprintf(path, sizeof(path), "/proc/self/%s", file);
    return doctor_read(d, path, ret, size);
}

/* clang-format off */
static const struct { unsigned bit; bool vital; const char *name; } capabilities[] = {
    {CAP_PERFMON,         true,  "CAP_PERFMON"},
    {CAP_SYS_ADMIN,       true,  "CAP_SYS_ADMIN"},
    {CAP_SYS_PTRACE,      false, "CAP_SYS_PTRACE"},
    {CAP_DAC_READ_SEARCH, false, "CAP_DAC_READ_SEARCH"},
    {CAP_SYSLOG,          false, "CAP_SYSLOG"},
    {CAP_CHOWN,           false, "CAP_CHOWN"},
    {CAP_SETUID,          false, "CAP_SETUID"},
    {CAP_SETGID,          false, "CAP_SETGID"},
    {CAP_KILL,            false, "CAP_KILL"},
};
/* clang-format on */

/* The uid map is "0 0 4294967295" in the initial user namespace. */
static bool doctor_limit_is_user_namespace(const Doctor *d) {
    unsigned long inside, outside, n;
    char text[STATUS_TEXT_MAX];

    return doctor_limit_read_process(d, 0, "uid_map", text, sizeof(text)) >= 0 &&
           sscanf(text, "%lu %lu %lu", &inside, &outside, &n) == 3 &&
           !(inside == 0 && outside == 0 && n == UINT32_MAX);
}

void doctor_rights(Doctor *d) {
    char text[STATUS_TEXT_MAX], missing[256] = "";
    int r = doctor_limit_read_process(d, 0, "status", text, sizeof(text));
    uint64_t bound = 0;
    bool vital = false;

    if (r < 0 || !doctor_limit_read_mask(text, "CapBnd", &bound)) {
        doctor_say(d, HEALTH_WARN, "/proc/self/status does not list capabilities");
        doctor_mend(d, "mount /proc");
        return;
    }
    if (doctor_limit_is_user_namespace(d)) {
        doctor_say(d, d->daemon_answers ? HEALTH_WARN : HEALTH_FAIL,
                   "this is a user namespace, whose root has no rights over the host and may not "
                   "record its CPUs");
        doctor_mend(d, "run profd on the host, outside of this container");
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(capabilities); i++)
        if (!(bound & 1ULL << capabilities[i].bit)) {
            size_t n = strlen(missing);

            (void)snprintf(missing + n, sizeof(missing) - n, "%s%s", n ? ", " : "",
                           capabilities[i].name);
            vital |= capabilities[i].vital;
        }
    if (!missing[0]) {
        doctor_say(d, HEALTH_OK, "root has every capability here that profd uses");
        return;
    }
    doctor_say(d, vital && !d->daemon_answers ? HEALTH_FAIL : HEALTH_WARN,
               "not even root can have %s here%s", missing,
               d->daemon_answers ? ", though profd runs" : "");
    doctor_mend(d,
                "run profd on the host rather than in this container, or give the container these "
                "capabilities");
}

/* The soft and hard limit in a row of /proc/PID/limits; UINT64_MAX: unlimited. */
static bool doctor_limit_read(const char *text, const char *name, uint64_t *ret_soft,
                              uint64_t *ret_hard) {
    const char *value = doctor_limit_value_of(text, name);
    char soft[24], hard[24];

    if (!value || sscanf(value, "%23s %23s", soft, hard) != 2)
        return false;
    *ret_soft = *ret_hard = UINT64_MAX;
    return (strcmp(soft, "unlimited") == 0 || sscanf(soft, "%" SCNu64, ret_soft) == 1) &&
           (strcmp(hard, "unlimited") == 0 || sscanf(hard, "%" SCNu64, ret_hard) == 1);
}

/* Estimates a session of four events and what every CPU needs besides. */
static void doctor_limit_judge_descriptors(Doctor *d, uint64_t limit, const char *whose) {
    enum { EVENTS = 5, OTHERS = 256 };
    unsigned cpus = doctor_cpus(d);
    uint64_t want = (uint64_t)cpus * EVENTS + OTHERS;

    if (limit >= want) {
        doctor_say(d, HEALTH_OK,
                   "%s may open %s%" PRIu64 " files; an event takes one on each of "
                   "%u CPUs",
                   whose, limit == UINT64_MAX ? "more than " : "", MIN(limit, (uint64_t)1000000000),
                   cpus);
        return;
    }
    doctor_say(d, HEALTH_WARN,
               "%s may open only %" PRIu64 " files, and an event takes one on each "
               "of %u CPUs",
               whose, limit, cpus);
    doctor_mend(d, "LimitNOFILE=%" PRIu64 " in a drop-in of profd.service, or ulimit -n", want * 4);
}

static void doctor_limit_judge_memory(Doctor *d, uint64_t limit, bool unbound, const char *whose) {
    uint64_t want = (uint64_t)doctor_cpus(d) * RING_KIB * 2 * 1024;
    int64_t free_kib = 0;
    char size[64] = "";
    Buffer b = {};

    (void)doctor_read_number(d, "/proc/sys/kernel/perf_event_mlock_kb", &free_kib);
    figure_size(&b, limit);
    text_putc(&b, '\0');
    if (!buffer_error(&b))
        (void)snprintf(size, sizeof(size), "%s", (const char *)b.data);
    buffer_done(&b);
    if (unbound || limit == UINT64_MAX)
        doctor_say(d, HEALTH_OK, "%s may lock as much memory as its rings take", whose);
    else if (limit >= want || free_kib >= RING_KIB * 2)
        doctor_say(d, HEALTH_OK, "%s may lock %s of memory, and %" PRIi64 " KiB a CPU for rings",
                   whose, size, free_kib);
    else {
        doctor_say(d, HEALTH_WARN,
                   "%s may lock only %s of memory, and %" PRIi64 " KiB a CPU for "
                   "rings, which will be smaller than BufferSize=",
                   whose, size, free_kib);
        doctor_mend(d,
                    "LimitMEMLOCK=infinity in a drop-in of profd.service, or ulimit -l, or sysctl "
                    "kernel.perf_event_mlock_kb=%u",
                    RING_KIB * 2 + 4);
    }
}

void doctor_limits(Doctor *d) {
    char text[STATUS_TEXT_MAX], status[STATUS_TEXT_MAX];
    pid_t pid = d->daemon;
    int r = doctor_limit_read_process(d, pid, "limits", text, sizeof(text));
    uint64_t soft, hard, bound = 0;
    const char *whose;

    if (r < 0 && pid) {
        pid = 0;
        r = doctor_limit_read_process(d, pid, "limits", text, sizeof(text));
    }
    whose = pid ? "profd" : "a program started here";
    if (r < 0)
        return;
    if (doctor_limit_read(text, "Max open files", &soft, &hard))
        doctor_limit_judge_descriptors(d, hard, whose);
    /* The limit does not matter to a process that may exceed it. */
    if (doctor_limit_read_process(d, pid, "status", status, sizeof(status)) > 0)
        (void)doctor_limit_read_mask(status, pid ? "CapEff" : "CapBnd", &bound);
    if (doctor_limit_read(text, "Max locked memory", &soft, &hard))
        doctor_limit_judge_memory(d, hard,
                                  bound & (1ULL << CAP_IPC_LOCK | 1ULL << CAP_SYS_RESOURCE), whose);
}

void doctor_judge_clock(Doctor *d, bool synchronised) {
    if (synchronised) {
        doctor_say(d, HEALTH_OK, "the clock is synchronised");
        return;
    }
    doctor_say(d, HEALTH_WARN,
               "the clock is not synchronised: windows by the time of day differ from those of "
               "other hosts, and MaxRetentionSec= has no effect meanwhile");
    doctor_mend(d, "timedatectl set-ntp true, or run chrony");
}

void doctor_clock(Doctor *d) {
    struct timex timex = {};
    int r = adjtimex(&timex);

    if (r < 0) {
        doctor_say(d, HEALTH_WARN, "the state of the clock cannot be read: %s", strerror(errno));
        doctor_mend(d, "in a container, run this on the host");
    } else
        doctor_judge_clock(d, r != TIME_ERROR && !(timex.status & STA_UNSYNC));
}

void doctor_judge_disk(Doctor *d, const char *path, uint64_t free_bytes, uint64_t all_bytes,
                       bool read_only) {
    enum { MIN_USE = 256 << 20, KEEP_FREE_PERCENT = 15 };
    Buffer b = {};

    figure_size(&b, free_bytes);
    text_puts(&b, " of ");
    figure_size(&b, all_bytes);
    text_putc(&b, '\0');
    if (buffer_error(&b))
        d->failed = true;
    else if (read_only) {
        doctor_say(d, HEALTH_FAIL, "%s lies on a file system that cannot be written", path);
        doctor_mend(d, "mount it writable, or set Storage=volatile");
    } else if (free_bytes < MIN_USE) {
        doctor_say(d, HEALTH_FAIL, "%s has %s free, too little for recordings", path,
                   (const char *)b.data);
        doctor_mend(d, "make room, or put another file system at %s", path);
    } else if (free_bytes / KEEP_FREE_PERCENT < all_bytes / 100) {
        doctor_say(d, HEALTH_WARN,
                   "%s has %s free: below KeepFree=15%%, recordings shrink to "
                   "MinUse=256M",
                   path, (const char *)b.data);
        doctor_mend(d, "make room, or lower KeepFree=");
    } else
        doctor_say(d, HEALTH_OK, "%s has %s free", path, (const char *)b.data);
    buffer_done(&b);
}

/* Checks the folder of the recordings, or its nearest existing parent. */
void doctor_disk(Doctor *d) {
    char path[sizeof(d->store)];
    struct statvfs fs;
    int r;

    (void)snprintf(path, sizeof(path), "%s", d->store);
    while ((r = statvfs(path, &fs)) < 0 && errno == ENOENT && strrchr(path, '/') > path)
        *strrchr(path, '/') = '\0';
    if (r < 0) {
        doctor_say(d, errno == EACCES ? HEALTH_OK : HEALTH_WARN,
                   "the free space at %s is unknown: %s", d->store, strerror(errno));
        return;
    }
    doctor_judge_disk(d, d->store, (uint64_t)fs.f_bavail * fs.f_frsize,
                      (uint64_t)fs.f_blocks * fs.f_frsize, fs.f_flag & ST_RDONLY);
}
