/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/doctor/doctor-check.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "util/text.h"

/*
 * Hardware counters: whether there are any, and which processes use some already. Open perf events
 * are among the descriptors of a process; root sees those of all processes, other users their own.
 */

enum { USERS_SHOWN = 6, COMM_MAX = 64, CPUINFO_READ = 16384 };

typedef bool (*Visit)(Doctor *d, void *userdata, const char *folder, const char *name);

/* Calls visit() for each entry of a folder until it returns false; returns a negative errno on
 * failure. */
static int doctor_counter_each_entry(Doctor *d, const char *folder, Visit visit, void *userdata) {
    char path[PATH_MAX];
    DIR *dir;
    int r = doctor_path(d, folder, path, sizeof(path));

    if (r < 0)
        return r;
    dir = opendir(path);
    if (!dir)
        return -errno;
    for (struct dirent *entry; (entry = readdir(dir));)
        if (entry->d_name[0] != '.' && !visit(d, userdata, folder, entry->d_name))
            break;
    (void)closedir(dir);
    return 0;
}

/* Only PMUs of CPUs: others (uncore, power, breakpoints) cannot sample cycles. */
static bool doctor_counter_find_pmu(Doctor *d, void *userdata, const char *folder,
                                    const char *name) {
    static const char *const of_cpus[] = {"cpu", "cpu_core", "cpu_atom"};
    static const char *const begins[] = {"armv", "cpum_cf", "riscv", "apple_", "loongarch"};
    char *first = userdata;
    bool found = false;

    for (size_t i = 0; i < ARRAY_SIZE(of_cpus); i++)
        found |= strcmp(name, of_cpus[i]) == 0;
    for (size_t i = 0; i < ARRAY_SIZE(begins); i++)
        found |= strncmp(name, begins[i], strlen(begins[i])) == 0;
    if (found)
        (void)doctor_escape(name, first, COMM_MAX);
    return !found;
}

/* On x86 a CPU flag shows a guest; elsewhere the vendor of the machine does. */
static bool doctor_counter_is_guest(const Doctor *d) {
    static const char *const makers[] = {
        "QEMU", "KVM", "VMware", "VirtualBox", "Amazon EC2", "Google Compute", "Bochs", "Xen"};
    _cleanup_free_ char *text = calloc(1, CPUINFO_READ);
    char maker[128];
    int r = text ? doctor_read(d, "/proc/cpuinfo", text, CPUINFO_READ) : -ENOMEM;

    /* Reading the first CPU is enough, since the file is long on large machines. */
    if ((r > 0 || r == -EFBIG) && memmem(text, CPUINFO_READ, " hypervisor", 11))
        return true;
    if (doctor_exists(d, "/sys/hypervisor/type"))
        return true;
    if (doctor_read(d, "/sys/class/dmi/id/sys_vendor", maker, sizeof(maker)) <= 0)
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(makers); i++)
        if (strstr(maker, makers[i]))
            return true;
    return false;
}

void doctor_pmu(Doctor *d) {
    char name[COMM_MAX] = "";
    int r = doctor_counter_each_entry(d, "/sys/bus/event_source/devices", doctor_counter_find_pmu,
                                      name);

    d->has_pmu = name[0] != '\0';
    if (d->has_pmu) {
        doctor_say(d, HEALTH_OK, "the CPUs have hardware counters (%s)", name);
        return;
    }
    if (r < 0) {
        doctor_say(d, HEALTH_WARN, "the kernel's list of counters cannot be read: %s",
                   strerror(-r));
        doctor_mend(d, "mount sysfs at /sys");
        return;
    }
    /* Missing counters are normal in a guest. */
    if (doctor_counter_is_guest(d)) {
        doctor_say(d, HEALTH_OK,
                   "no hardware counters in this virtual machine: profd samples cpu-clock, which "
                   "does not see code that has interrupts off");
        return;
    }
    doctor_say(d, HEALTH_WARN,
               "no hardware counters: profd samples cpu-clock, which does not see code that has "
               "interrupts off");
    doctor_mend(d, "look for 'Performance Events' in the kernel's log, and enable the counters in "
                   "the firmware; to accept this, set Event=cpu-clock");
}

typedef struct Users {
    Buffer text;
    size_t n, n_hidden;
    /* of the current process */
    size_t events;
} Users;

static bool doctor_counter_count_event(Doctor *d, void *userdata, const char *folder,
                                       const char *name) {
    Users *u = userdata;
    char path[PATH_MAX], target[64];
    ssize_t n;

    if (doctor_path(d, folder, path, sizeof(path)) < 0 ||
        strlen(path) + strlen(name) + 2 > sizeof(path))
        return true;
    strcat(strcat(path, "/"), name);
    n = readlink(path, target, sizeof(target) - 1);
    if (n > 0) {
        target[n] = '\0';
        u->events += strcmp(target, "anon_inode:[perf_event]") == 0;
    }
    return true;
}

static bool doctor_counter_check_process(Doctor *d, void *userdata, const char *folder,
                                         const char *name) {
    char path[64], comm[COMM_MAX], shown[COMM_MAX * 4];
    Users *u = userdata;
    int r;

    if (name[0] < '1' || name[0] > '9' || strlen(name) > 10)
        return true;
    (void)snprintf(path, sizeof(path), "/proc/%s/comm", name);
    if (doctor_read(d, path, comm, sizeof(comm)) < 0)
        return true;
    if (strcmp(comm, "profd") == 0) {
        d->daemon = (pid_t)strtol(name, NULL, 10);
        return true;
    }
    u->events = 0;
    (void)snprintf(path, sizeof(path), "/proc/%s/fd", name);
    r = doctor_counter_each_entry(d, path, doctor_counter_count_event, u);
    u->n_hidden += r == -EACCES || r == -EPERM;
    if (u->events == 0)
        return true;
    if (u->n < USERS_SHOWN)
        text_printf(&u->text, "%s%s (pid %s) has %zu", u->n > 0 ? ", " : "",
                    doctor_escape(comm, shown, sizeof(shown)), name, u->events);
    u->n++;
    return true;
}

static void doctor_counter_judge_users(Doctor *d, Users *u) {
    text_putc(&u->text, '\0');
    if (buffer_error(&u->text)) {
        d->failed = true;
        return;
    }
    if (u->n > USERS_SHOWN)
        doctor_say(d, d->has_pmu ? HEALTH_WARN : HEALTH_OK,
                   "other programs have perf events open: %s, and %zu more", (char *)u->text.data,
                   u->n - USERS_SHOWN);
    else if (u->n > 0)
        doctor_say(d, d->has_pmu ? HEALTH_WARN : HEALTH_OK,
                   "other programs have perf events open: %s", (char *)u->text.data);
    else
        doctor_say(d, HEALTH_OK, "%s has perf events open%s",
                   u->n_hidden > 0 ? "none of your processes" : "no other program",
                   u->n_hidden > 0 ? "; ask as root to see those of others" : "");
    if (u->n > 0 && d->has_pmu)
        doctor_mend(d, "if the CPUs have too few counters, end these programs: the kernel "
                       "otherwise gives each event only a share of the time");
}

void doctor_counters(Doctor *d) {
    Users u = {};
    int64_t watchdog = 0;

    (void)doctor_counter_each_entry(d, "/proc", doctor_counter_check_process, &u);
    doctor_counter_judge_users(d, &u);
    buffer_done(&u.text);
    if (d->has_pmu && doctor_read_number(d, "/proc/sys/kernel/nmi_watchdog", &watchdog) == 0 &&
        watchdog == 1)
        doctor_say(d, HEALTH_OK,
                   "the NMI watchdog holds one hardware counter of each CPU; if there are too few, "
                   "sysctl kernel.nmi_watchdog=0 frees it");
}
