/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/plan/limit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "keeper/request/keeper-client.h"
#include "util/file.h"
#include "util/log.h"
#include "util/macro.h"
#include "util/parse.h"

/*
 * The host's limits are read when they are needed, since administrators and the kernel itself
 * change them. What the kernel answers to perf_event_open is terse, so its reasons are looked up
 * here, where the remedy differs by host.
 */

enum { OTHER_DESCRIPTORS = 64, MS_PER_SEC = 1000 };

uint64_t limit_sample_rate(void) {
    char text[32];
    uint64_t rate;

    if (file_read_text("/proc/sys/kernel/perf_event_max_sample_rate", text, sizeof(text)) < 0 ||
        sscanf(text, "%" SCNu64, &rate) != 1)
        return 0;
    return rate;
}

static uint64_t limit_least_set(uint64_t a, uint64_t b) {
    return a == 0 ? b : b == 0 ? a : MIN(a, b);
}

uint64_t limit_frequency(uint64_t wanted_hz, uint64_t configured_hz, uint64_t kernel_hz) {
    return limit_least_set(limit_least_set(wanted_hz, configured_hz), kernel_hz);
}

uint64_t limit_ring_bytes_min(void) {
    return LIMIT_RING_PAGES_MIN * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t limit_ring_bytes(uint64_t wanted, size_t n_rings, uint64_t budget) {
    uint64_t size = limit_ring_bytes_min(), most = MIN(wanted, (uint64_t)KEEPER_RING_BYTES_MAX);

    n_rings = MAX(n_rings, (size_t)1);
    while (size * 2 <= most && size * 2 <= budget / n_rings)
        size *= 2;
    return size;
}

uint64_t limit_ring_bytes_for(uint64_t bytes) {
    uint64_t size = limit_ring_bytes_min();

    while (size < bytes && size < KEEPER_RING_BYTES_MAX)
        size *= 2;
    return size;
}

uint64_t limit_ring_span_ms(uint64_t ring_bytes, uint64_t bytes_per_sec) {
    return ring_bytes * MS_PER_SEC / MAX(bytes_per_sec, 1ULL);
}

/* The kernel lets a user have so much for each CPU, and counts what is beyond it for each process
 * on its own. */
uint64_t limit_locked_bytes(void) {
    long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t kib = 0, each;
    struct rlimit limit;
    char text[32];

    if (getrlimit(RLIMIT_MEMLOCK, &limit) < 0)
        limit.rlim_cur = 0;
    if (limit.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX / 2;
    if (file_read_text("/proc/sys/kernel/perf_event_mlock_kb", text, sizeof(text)) < 0 ||
        parse_u64(text, &kib) < 0)
        kib = 0;
    each = MIN(kib, 1ULL << 30) * 1024 * (uint64_t)MAX(n_cpus, 1L);
    return each / 2 + MIN((uint64_t)limit.rlim_cur, 1ULL << 40);
}

int limit_descriptors(uint64_t needed, uint64_t *ret_limit) {
    struct rlimit limit;
    uint64_t all = needed + OTHER_DESCRIPTORS;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return -errno;
    if (all > limit.rlim_cur && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = MIN((rlim_t)all, limit.rlim_max);
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (all <= limit.rlim_cur)
        return 0;
    *ret_limit = limit.rlim_cur;
    return -EMFILE;
}

/* "none [integrity] confidentiality": the one in brackets holds. */
static bool limit_is_locked_down(void) {
    char text[128];

    return file_read_text("/sys/kernel/security/lockdown", text, sizeof(text)) >= 0 &&
           strstr(text, "[confidentiality]");
}

/* "0 0 4294967295" where uids mean what they mean to the host. */
static bool limit_is_user_namespace(void) {
    unsigned long inside, outside, n;
    char text[128];

    return file_read_text("/proc/self/uid_map", text, sizeof(text)) >= 0 &&
           sscanf(text, "%lu %lu %lu", &inside, &outside, &n) == 3 &&
           !(inside == 0 && outside == 0 && n == UINT32_MAX);
}

static const char *limit_why_refused(int error, bool is_side_band) {
    static _Thread_local char why[256];
    char level[16] = "?";

    if (limit_is_locked_down())
        return "the kernel is locked down for confidentiality, boot it with lockdown=integrity";
    /* The kernel itself says EACCES here. */
    if (error == -EPERM && is_side_band)
        return "a seccomp filter denies perf_event_open, as in most containers, let it pass or run "
               "profd on the host";
    if (limit_is_user_namespace())
        return "this is a user namespace, whose root has no rights over the host, run profd "
               "outside of it";
    (void)file_read_text("/proc/sys/kernel/perf_event_paranoid", level, sizeof(level));
    snprintf(why, sizeof(why),
             "kernel.perf_event_paranoid is %s, start profd as root or with CAP_PERFMON (and "
             "CAP_SYS_ADMIN where it is 3), which most containers lack",
             level);
    return why;
}

void limit_log_followed(bool with_kernel) {
    char level[16] = "?";

    (void)file_read_text("/proc/sys/kernel/perf_event_paranoid", level, sizeof(level));
    log_warning(0,
                "Only processes of user %u are recorded%s, since kernel.perf_event_paranoid is %s, "
                "%s to record whole CPUs",
                (unsigned)geteuid(), with_kernel ? "" : ", outside of the kernel", level,
                limit_is_user_namespace() ? "start profd outside of this user namespace"
                : geteuid() == 0          ? "give profd CAP_SYS_ADMIN, which most containers lack"
                                          : "start profd as root");
}

static const char *limit_remedy_for(int error, bool is_side_band) {
    /* clang-format off */
    static const struct { int error; const char *text; } rows[] = {
        { EMFILE,     "too few file descriptors, raise LimitNOFILE= or ulimit -n"                },
        { ENFILE,     "the host is out of file descriptors, raise fs.file-max"                   },
        { ENOENT,     "this CPU has no such event, `perf list` shows what there is"              },
        { EBUSY,      "another program holds the counter, see `perf list` and the NMI watchdog"  },
        { ENODEV,     "the CPU or its counters are gone, see /sys/devices/system/cpu/online"     },
        { EOPNOTSUPP, "the counter cannot sample like that, try cpu-clock or fewer modifiers"    },
        { EINVAL,     "the kernel knows no such event or option, try cpu-clock"                  },
        { ESRCH,      "the process is gone, give the pid of one that runs"                       },
        { ETIMEDOUT,  "the process waits in the kernel, perhaps for a file system, see its wchan"},
        { ENOMEM,     "no memory for the ring, lower BufferSize="                                },
        { EPIPE,      "the keeper is gone, restart profd"                                        },
        { ENOSYS,     "this kernel has no perf events, or a container's seccomp filter hides "
                      "them, let it pass perf_event_open or run profd on the host"               },
    };
    /* clang-format on */

    if (error == -EACCES || error == -EPERM)
        return limit_why_refused(error, is_side_band);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (rows[i].error == -error)
            return rows[i].text;
    return NULL;
}

const char *limit_remedy(int error) {
    return limit_remedy_for(error, false);
}

int limit_log_open_failure(int error, const char *who, const char *event, unsigned cpu) {
    const char *text = limit_remedy_for(error, !who), *what = who ? who : "all sessions";

    if (!text)
        return log_error(error, "Failed to open '%s' on CPU %u for %s: %m", event, cpu, what);
    return log_error(error, "Failed to open '%s' on CPU %u for %s (%s): %m", event, cpu, what,
                     text);
}
