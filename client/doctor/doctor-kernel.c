/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/doctor/doctor-check.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/syscall.h>

#include "util/cgroup.h"

/*
 * What the kernel permits profd: whether perf events exist and for whom, kernel addresses,
 * tracepoints, control groups. Sysctls are reported by their effect on profd, which is started as
 * root and keeps CAP_PERFMON and CAP_SYS_ADMIN.
 */

static int doctor_kernel_open_event(pid_t pid, int cpu, bool exclude_kernel) {
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .size = PERF_ATTR_SIZE_VER0,
        .config = PERF_COUNT_SW_CPU_CLOCK,
        .exclude_kernel = exclude_kernel,
        .exclude_hv = exclude_kernel,
        .disabled = true,
    };
    long fd = syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

    return fd < 0 ? -errno : (int)fd;
}

/* When the kernel itself refuses root, the error is EACCES. */
static void doctor_kernel_say_refused_to_root(Doctor *d, int error) {
    if (error == -EPERM) {
        doctor_say(d, HEALTH_FAIL,
                   "a seccomp filter denies perf events to root, as in most "
                   "containers");
        doctor_mend(d, "let the container's seccomp profile pass perf_event_open, or run profd on "
                       "the host");
    } else {
        doctor_say(d, HEALTH_FAIL, "perf events of all CPUs are refused to root: %s",
                   strerror(-error));
        doctor_mend(d, "run profd on the host rather than in a container, or see 'rights' and "
                       "'lockdown' below");
    }
}

static void doctor_kernel_say_refused_to_user(Doctor *d) {
    _cleanup_close_ int own = doctor_kernel_open_event(0, -1, true);

    doctor_say(d, d->daemon_answers ? HEALTH_OK : HEALTH_WARN, "you may record %s%s",
               own >= 0 ? "your own processes, not the whole host" : "nothing yourself",
               d->daemon_answers ? "; profd may" : "");
    if (!d->daemon_answers)
        doctor_mend(d, "start profd as root: systemctl start profd");
}

void doctor_events(Doctor *d) {
    _cleanup_close_ int whole = doctor_kernel_open_event(-1, 0, false);

    if (whole >= 0)
        doctor_say(d, HEALTH_OK, "perf events of all CPUs can be opened");
    else if (whole == -ENOSYS) {
        doctor_say(d, HEALTH_FAIL,
                   "this kernel has no perf events, or a container's seccomp "
                   "filter hides them");
        doctor_mend(d, "let the container's seccomp profile pass perf_event_open; on a host, boot "
                       "a kernel with CONFIG_PERF_EVENTS=y");
    } else if (d->uid == 0)
        doctor_kernel_say_refused_to_root(d, whole);
    else
        doctor_kernel_say_refused_to_user(d);
}

void doctor_paranoid(Doctor *d) {
    static const char *const meanings[] = {
        "users may record all but raw tracepoints",
        "users may record their own processes, the kernel's part too",
        "users may record their own processes, without the kernel's part",
        "users may record nothing",
    };
    int64_t level;
    int r = doctor_read_number(d, "/proc/sys/kernel/perf_event_paranoid", &level);

    if (r < 0) {
        doctor_say(d, HEALTH_FAIL,
                   "kernel.perf_event_paranoid cannot be read, so this kernel has "
                   "no perf events: %s",
                   strerror(-r));
        doctor_mend(d, "boot a kernel with CONFIG_PERF_EVENTS=y");
        return;
    }
    if (level < 0) {
        doctor_say(d, HEALTH_WARN,
                   "kernel.perf_event_paranoid is %" PRIi64 ": every user may "
                   "record the whole host, tracepoints of others included",
                   level);
        doctor_mend(d, "sysctl kernel.perf_event_paranoid=2; profd does not need it lower");
        return;
    }
    doctor_say(d, HEALTH_OK,
               "kernel.perf_event_paranoid is %" PRIi64 ": %s; profd, started as "
               "root, may record all",
               level, meanings[MIN(level, (int64_t)ARRAY_SIZE(meanings) - 1)]);
}

void doctor_kptr(Doctor *d) {
    int64_t level;
    int r = doctor_read_number(d, "/proc/sys/kernel/kptr_restrict", &level);

    if (r < 0) {
        doctor_say(d, HEALTH_WARN, "kernel.kptr_restrict cannot be read: %s", strerror(-r));
        doctor_mend(d, "mount /proc");
    } else if (level >= 2) {
        doctor_say(d, HEALTH_WARN,
                   "kernel.kptr_restrict is %" PRIi64
                   ": no program sees kernel addresses, so kernel functions have no names",
                   level);
        doctor_mend(d, "sysctl kernel.kptr_restrict=1, which hides them from users alone, and keep "
                       "it in /etc/sysctl.d");
    } else {
        doctor_say(d, HEALTH_OK,
                   "kernel.kptr_restrict is %" PRIi64 ": root sees kernel addresses%s", level,
                   level == 0 ? ", and so may others" : "");
    }
}

void doctor_lockdown(Doctor *d) {
    char text[128];
    int r = doctor_read(d, "/sys/kernel/security/lockdown", text, sizeof(text));

    if (r < 0)
        doctor_say(d, HEALTH_OK, "the kernel has no lockdown");
    else if (strstr(text, "[confidentiality]")) {
        doctor_say(d, HEALTH_WARN,
                   "the kernel is locked down for confidentiality: tracepoints and "
                   "the kernel's memory are closed even to root");
        doctor_mend(d, "boot with lockdown=integrity, or without lockdown=");
    } else
        doctor_say(d, HEALTH_OK, "lockdown is %s, which leaves perf events alone",
                   strstr(text, "[integrity]") ? "integrity" : "none");
}

void doctor_rate(Doctor *d) {
    enum { RATE_USUAL = 1000 };
    int64_t rate, percent = 0;
    int r = doctor_read_number(d, "/proc/sys/kernel/perf_event_max_sample_rate", &rate);

    if (r < 0)
        return;
    (void)doctor_read_number(d, "/proc/sys/kernel/perf_cpu_time_max_percent", &percent);
    if (rate >= RATE_USUAL) {
        doctor_say(d, HEALTH_OK, "the kernel allows %" PRIi64 " samples a second on each CPU",
                   rate);
        return;
    }
    doctor_say(d, HEALTH_WARN, "the kernel allows only %" PRIi64 " samples a second on each CPU%s",
               rate,
               percent > 0 && percent < 100 ? ", probably because sampling took too long" : "");
    doctor_mend(d, "sysctl kernel.perf_event_max_sample_rate=100000%s",
                percent > 0 && percent < 100
                    ? ", and kernel.perf_cpu_time_max_percent=0 to keep the kernel from lowering it"
                    : "");
}

void doctor_tracefs(Doctor *d) {
    char where[256], shown[256];

    if (doctor_mount(d, "tracefs", where, sizeof(where)))
        doctor_say(d, HEALTH_OK, "tracefs is mounted at %s, so tracepoints can be recorded",
                   doctor_escape(where, shown, sizeof(shown)));
    else if (doctor_exists(d, "/sys/kernel/debug/tracing/events"))
        doctor_say(d, HEALTH_OK, "tracepoints are at /sys/kernel/debug/tracing");
    else {
        doctor_say(d, HEALTH_WARN, "tracefs is not mounted: no tracepoint can be recorded");
        doctor_mend(d, "mount -t tracefs tracefs /sys/kernel/tracing");
    }
}

/* Also reports version 1 if some of its controllers are mounted. */
static void doctor_kernel_say_cgroup2(Doctor *d, const char *where) {
    char any[256];

    if (!doctor_mount(d, "cgroup", any, sizeof(any))) {
        doctor_say(d, HEALTH_OK, "control groups are of version 2, at %s", where);
        return;
    }
    doctor_say(
        d, HEALTH_WARN,
        "control groups are mixed: samples contain, and --cgroup takes, groups of version 2, at %s",
        where);
    doctor_mend(d,
                "put services into groups there, or boot with systemd.unified_cgroup_hierarchy=1");
}

void doctor_cgroup(Doctor *d) {
    _cleanup_free_ CgroupTree *tree = malloc(sizeof(*tree));
    char shown[256], any[256];

    if (!tree) {
        d->failed = true;
        return;
    }
    if (cgroup_tree_find(d->root, tree) < 0) {
        bool others = doctor_mount(d, "cgroup", any, sizeof(any)) ||
                      doctor_mount(d, "cgroup2", any, sizeof(any));

        doctor_say(d, HEALTH_WARN,
                   "%s: samples do not contain their group, and --cgroup takes none",
                   others ? "no control groups are mounted that perf events follow"
                          : "no control groups are mounted");
        doctor_mend(
            d,
            others
                ? "boot with systemd.unified_cgroup_hierarchy=1, or see CONTROL GROUPS in profd(7)"
                : "mount -t cgroup2 cgroup2 /sys/fs/cgroup");
        return;
    }
    (void)doctor_escape(tree->mount, shown, sizeof(shown));
    if (tree->version == 2) {
        doctor_kernel_say_cgroup2(d, shown);
        return;
    }
    doctor_say(d, HEALTH_WARN,
               "control groups are of version 1: samples contain, and --cgroup takes, groups of "
               "the controller perf_event, at %s, where systemd puts no service",
               shown);
    doctor_mend(d, "boot with systemd.unified_cgroup_hierarchy=1, or put processes into groups "
                   "there yourself");
}
