/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The checks of `doctor`: a table of functions, each of which reads what it needs below `root` and
 * reports findings and remedies. To add one, write the function next to similar ones, declare it
 * here and give it a row in doctor.c.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/frame/command.h"

typedef enum Health { HEALTH_OK, HEALTH_WARN, HEALTH_FAIL, N_HEALTHS } Health;

typedef struct Diagnosis {
    const char *check; /* constant */
    Health health;
    char *text, *remedy; /* escaped; remedy may be NULL */
} Diagnosis;

typedef struct Doctor {
    const char *root; /* "": this host */
    const Context *context;
    uid_t uid;
    const char *check; /* the running check */
    Diagnosis *items;
    size_t n;
    size_t counts[N_HEALTHS];
    bool failed; /* memory ran out: findings are missing */

    /* Results of earlier checks that later ones need. */
    bool daemon_answers, has_pmu;
    pid_t daemon;    /* a process of profd; 0: none found */
    char store[512]; /* the folder of the recordings */
} Doctor;

typedef struct DoctorCheck {
    const char *name;
    bool live; /* queries the running host instead of files, and is skipped with --root */
    void (*run)(Doctor *d);
} DoctorCheck;

/* Adds a finding of the running check. Text from outside must pass doctor_escape() first, unless
 * the daemon has escaped it. */
void doctor_say(Doctor *d, Health health, const char *format, ...) _printf_(3, 4);
/* Adds a remedy to the last finding. */
void doctor_mend(Doctor *d, const char *format, ...) _printf_(2, 3);
void doctor_done(Doctor *d);

/* Reads the file `path` of the host, cut to size - 1 bytes, without its last newline; returns its
 * length or a negative errno. */
int doctor_read(const Doctor *d, const char *path, char *ret, size_t size);
/* Reads a file that contains one number. */
int doctor_read_number(const Doctor *d, const char *path, int64_t *ret);
/* Prefixes `path` with the root; -ENAMETOOLONG. */
int doctor_path(const Doctor *d, const char *path, char *ret, size_t size);
bool doctor_exists(const Doctor *d, const char *path);
/* Escapes `text` into at most size - 1 bytes, never a part of an escape; returns `ret`. */
const char *doctor_escape(const char *text, char *ret, size_t size);
/* The number of online CPUs, at least 1. */
unsigned doctor_cpus(const Doctor *d);

/* Finds a mount of this type; its path is in the form of /proc/self/mounts. */
bool doctor_mount(const Doctor *d, const char *type, char *ret, size_t size);

/* In doctor-daemon.c: profd itself. */
void doctor_daemon(Doctor *d);
void doctor_groups(Doctor *d);
/* In doctor-kernel.c: what the kernel permits. */
void doctor_events(Doctor *d);
void doctor_paranoid(Doctor *d);
void doctor_kptr(Doctor *d);
void doctor_lockdown(Doctor *d);
void doctor_rate(Doctor *d);
void doctor_tracefs(Doctor *d);
void doctor_cgroup(Doctor *d);
/* In doctor-counter.c: hardware counters and their users. */
void doctor_pmu(Doctor *d);
void doctor_counters(Doctor *d);
/* In doctor-limit.c: rights and limits of processes, disk space, time. */
void doctor_rights(Doctor *d);
void doctor_limits(Doctor *d);
void doctor_clock(Doctor *d);
void doctor_disk(Doctor *d);
/* In doctor-tool.c: the tools that read recordings. */
void doctor_perf(Doctor *d);
/* In doctor-program.c: running programs whose stacks lack something. */
void doctor_programs(Doctor *d);
/* In doctor-debuginfo.c: where these tools find symbols. */
void doctor_debuginfo(Doctor *d);

/* Evaluations of checks that query the running host, separate from the query for tests. */
void doctor_judge_clock(Doctor *d, bool synchronised);
void doctor_judge_disk(Doctor *d, const char *path, uint64_t free_bytes, uint64_t all_bytes,
                       bool read_only);
void doctor_judge_perf(Doctor *d, const char *version, const char *options);
