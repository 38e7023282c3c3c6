/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What `doctor` looks at: a table of checks, each a function that reads what it needs below
 * `root` and says what it found, and what mends it. To add one, write the function beside its
 * like, declare it here and give it a row in doctor.c.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/frame/command.h"

typedef enum Health { HEALTH_OK, HEALTH_WARN, HEALTH_FAIL, N_HEALTHS } Health;

typedef struct Diagnosis {
    const char *check; /* constant */
    Health health;
    char *text, *remedy; /* safe to show; remedy may be NULL */
} Diagnosis;

typedef struct Doctor {
    const char *root; /* "": this host */
    const Context *context;
    uid_t uid;
    const char *check; /* that is being made */
    Diagnosis *items;
    size_t n;
    size_t counts[N_HEALTHS];
    bool failed; /* memory ran out: some are missing */

    /* What one check learns and later ones need. */
    bool daemon_answers, has_pmu;
    pid_t daemon;    /* a process of profd; 0: none seen */
    char store[512]; /* where recordings lie */
} Doctor;

typedef struct DoctorCheck {
    const char *name;
    bool live; /* asks the host rather than its files, and is left out for another root */
    void (*run)(Doctor *d);
} DoctorCheck;

/* A diagnosis of the check under way. What comes from outside passes doctor_escape() first, but for
 * what the daemon has escaped. */
void doctor_say(Doctor *d, Health health, const char *format, ...) _printf_(3, 4);
/* How to mend what was said last. */
void doctor_mend(Doctor *d, const char *format, ...) _printf_(2, 3);
void doctor_done(Doctor *d);

/* The file `path` of the host, cut at size - 1 bytes, without its last newline; its length or a
 * negative errno. */
int doctor_read(const Doctor *d, const char *path, char *ret, size_t size);
/* A file that holds one number. */
int doctor_read_number(const Doctor *d, const char *path, int64_t *ret);
/* `path` below the root; -ENAMETOOLONG. */
int doctor_path(const Doctor *d, const char *path, char *ret, size_t size);
bool doctor_exists(const Doctor *d, const char *path);
/* At most size - 1 bytes of `text` escaped, whole escapes only; `ret`. */
const char *doctor_escape(const char *text, char *ret, size_t size);
/* CPUs that are online, at least 1. */
unsigned doctor_cpus(const Doctor *d);

/* A mount of this type: where, as it is written in /proc/self/mounts. */
bool doctor_mount(const Doctor *d, const char *type, char *ret, size_t size);

/* doctor-daemon.c: profd itself. */
void doctor_daemon(Doctor *d);
void doctor_groups(Doctor *d);
/* doctor-kernel.c: what the kernel lets us see. */
void doctor_events(Doctor *d);
void doctor_paranoid(Doctor *d);
void doctor_kptr(Doctor *d);
void doctor_lockdown(Doctor *d);
void doctor_rate(Doctor *d);
void doctor_tracefs(Doctor *d);
void doctor_cgroup(Doctor *d);
/* doctor-counter.c: hardware counters, and who else has them. */
void doctor_pmu(Doctor *d);
void doctor_counters(Doctor *d);
/* doctor-limit.c: rights and limits of processes, room, time. */
void doctor_rights(Doctor *d);
void doctor_limits(Doctor *d);
void doctor_clock(Doctor *d);
void doctor_disk(Doctor *d);
/* doctor-tool.c: what looks at recordings. */
void doctor_perf(Doctor *d);
/* doctor-debuginfo.c: and what it finds names by. */
void doctor_debuginfo(Doctor *d);

/* The verdicts of checks that ask the host, apart from the asking. */
void doctor_judge_clock(Doctor *d, bool synchronised);
void doctor_judge_disk(Doctor *d, const char *path, uint64_t free_bytes, uint64_t all_bytes,
                       bool read_only);
void doctor_judge_perf(Doctor *d, const char *version, const char *options);
