/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/doctor/doctor-check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/text.h"

/*
 * Programs that run now and whose own functions profd cannot name or walk through, since an option
 * of their runtime is missing. The option may stand in the command line, which everybody may read,
 * or in the environment, which only root may read of other users' processes. The scan is bounded,
 * and the busiest programs are named.
 */

enum {
    PROCESSES_MAX = 8192,
    TEXT_BYTES = 128 << 10, /* of a command line or an environment; the rest is not looked at */
    NAMED_MAX = 3,
};

/* Lists end with NULL. */
typedef struct Runtime {
    const char *kind, *lacks, *remedy;
    const char *options[5];   /* of the command line, and in the variables; one of them suffices */
    const char *variables[4]; /* which hold options */
    const char *switches[2];  /* which suffice if they are set and not 0 */
} Runtime;

enum {
    RUNTIME_UNKNOWN = -2, /* python of a version that cannot be seen */
    RUNTIME_NONE,
    RUNTIME_JVM,
    RUNTIME_NODE,
    RUNTIME_OLD_PYTHON,
    RUNTIME_PYTHON,
    N_RUNTIMES
};

/* clang-format off */
static const Runtime runtimes[N_RUNTIMES] = {
    [RUNTIME_JVM] = {
        "a JVM", "without -XX:+PreserveFramePointer: stacks end in their compiled code",
        "start them with -XX:+PreserveFramePointer, as by JAVA_TOOL_OPTIONS in the environment",
        {"-XX:+PreserveFramePointer"}, {"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"}, {NULL}},
    [RUNTIME_NODE] = {
        "node", "without --perf-basic-prof: their functions have no names",
        "start them with --perf-basic-prof, as by NODE_OPTIONS in the environment",
        {"--perf-basic-prof", "--perf-basic-prof-only-functions", "--perf-prof", "--interpreted-frames-native-stack"},
        {"NODE_OPTIONS"}, {NULL}},
    [RUNTIME_OLD_PYTHON] = {
        "python before 3.12", ": stacks show the interpreter and no Python functions",
        "run them with python 3.12 or later and -X perf", {NULL}, {NULL}, {NULL}},
    [RUNTIME_PYTHON] = {
        "python", "without -X perf: stacks show the interpreter and no Python functions",
        "start them with -X perf, or with PYTHONPERFSUPPORT=1 in the environment",
        {"-Xperf", "-Xperf_jit"}, {NULL}, {"PYTHONPERFSUPPORT"}},
};
/* clang-format on */

typedef struct Candidate {
    char pid[16], comm[32];
    uint64_t ticks; /* of CPU time */
    int runtime;
    bool is_certain; /* its environment was read */
} Candidate;

typedef struct Programs {
    const Doctor *doctor;
    char *text; /* TEXT_BYTES + 1 */
    Candidate *found;
    size_t n_found, n_seen, n_unseen;
    bool is_cut;
} Programs;

static int doctor_program_path(const Programs *p, const char *pid, const char *file,
                               char ret[PATH_MAX]) {
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%s/%s", pid, file);
    return doctor_path(p->doctor, path, ret, PATH_MAX);
}

/* Reads into p->text, ended by two NULs; returns the length or a negative errno. */
static ssize_t doctor_program_read(Programs *p, const char *pid, const char *file) {
    char path[PATH_MAX];
    _cleanup_close_ int fd = -1;
    ssize_t n = 0, k;

    if (doctor_program_path(p, pid, file, path) < 0)
        return -ENAMETOOLONG;
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    while ((k = read(fd, p->text + n, TEXT_BYTES - (size_t)n)) > 0)
        n += k;
    if (k < 0)
        return -errno;
    p->text[n] = p->text[n + 1] = '\0';
    return n;
}

static const char *doctor_program_base_of(const char *path) {
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* "python3.11"; "python3" and "python" hide the version, other names are no interpreters. */
static int doctor_program_python(const char *name) {
    unsigned major, minor;

    if (sscanf(name, "python%u.%u", &major, &minor) != 2)
        return strspn(name + strlen("python"), "0123456789") == strlen(name) - strlen("python")
                   ? RUNTIME_UNKNOWN
                   : RUNTIME_NONE;
    return major < 3 || (major == 3 && minor < 12) ? RUNTIME_OLD_PYTHON : RUNTIME_PYTHON;
}

static int doctor_program_runtime_of(const char *name) {
    if (strcmp(name, "java") == 0)
        return RUNTIME_JVM;
    if (strcmp(name, "node") == 0 || strcmp(name, "nodejs") == 0)
        return RUNTIME_NODE;
    return strncmp(name, "python", strlen("python")) == 0 ? doctor_program_python(name)
                                                          : RUNTIME_NONE;
}

/* By the file that runs; where that may not be read, by the first word of the command line, which
 * may be a link: then the file behind it counts. */
static int doctor_program_identify(Programs *p, const char *pid) {
    char path[PATH_MAX], target[PATH_MAX];
    ssize_t n = doctor_program_path(p, pid, "exe", path) < 0
                    ? -1
                    : readlink(path, target, sizeof(target) - 1);

    if (n < 0) {
        if (p->text[0] != '/' || doctor_path(p->doctor, p->text, path, sizeof(path)) < 0 ||
            !realpath(path, target))
            (void)snprintf(target, sizeof(target), "%.4000s", p->text);
    } else {
        target[n] = '\0';
        target[strcspn(target, " ")] = '\0'; /* " (deleted)" */
    }
    return doctor_program_runtime_of(doctor_program_base_of(target));
}

static bool doctor_program_is_option(const Runtime *runtime, const char *word, size_t n) {
    for (size_t i = 0; i < ARRAY_SIZE(runtime->options) && runtime->options[i]; i++)
        if (strlen(runtime->options[i]) == n && strncmp(runtime->options[i], word, n) == 0)
            return true;
    return false;
}

/* Looks in a command line. An option such as "-X perf" is two words there. */
static bool doctor_program_has_option(const Runtime *runtime, const char *text, ssize_t size) {
    const char *before = "";

    for (const char *word = text; word < text + size; word += strlen(word) + 1) {
        char joined[16];

        (void)snprintf(joined, sizeof(joined), "%.2s%.12s", before, word);
        if (doctor_program_is_option(runtime, word, strlen(word)) ||
            (strcmp(before, "-X") == 0 &&
             doctor_program_is_option(runtime, joined, strlen(joined))))
            return true;
        before = word;
    }
    return false;
}

/* The value of the variable that the entry sets, if it is that one. */
static const char *doctor_program_value_of(const char *entry, const char *variable) {
    size_t n = strlen(variable);

    return strncmp(entry, variable, n) == 0 && entry[n] == '=' ? entry + n + 1 : NULL;
}

static bool doctor_program_lists_option(const Runtime *runtime, const char *value) {
    for (const char *word = value; *word;) {
        size_t n;

        word += strspn(word, " ");
        n = strcspn(word, " ");
        if (doctor_program_is_option(runtime, word, n))
            return true;
        word += n;
    }
    return false;
}

static bool doctor_program_is_set(const Runtime *runtime, const char *text, ssize_t size) {
    for (const char *entry = text; entry < text + size; entry += strlen(entry) + 1) {
        const char *value;

        for (size_t i = 0; i < ARRAY_SIZE(runtime->variables) && runtime->variables[i]; i++) {
            value = doctor_program_value_of(entry, runtime->variables[i]);
            if (value && doctor_program_lists_option(runtime, value))
                return true;
        }
        value = runtime->switches[0] ? doctor_program_value_of(entry, runtime->switches[0]) : NULL;
        if (value && *value && strcmp(value, "0") != 0)
            return true;
    }
    return false;
}

/* The 14th and 15th words of stat, after the name in parentheses. */
static uint64_t doctor_program_ticks(const char *stat) {
    const char *end = strrchr(stat, ')');
    uint64_t user, kernel;

    return end && sscanf(end + 1,
                         " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64, &user,
                         &kernel) == 2
               ? user + kernel
               : 0;
}

static void doctor_program_keep(Programs *p, const char *pid, int runtime, bool is_certain) {
    Candidate *c = &p->found[p->n_found++];

    *c = (Candidate){.runtime = runtime, .is_certain = is_certain};
    (void)snprintf(c->pid, sizeof(c->pid), "%s", pid);
    if (doctor_program_read(p, pid, "stat") > 0)
        c->ticks = doctor_program_ticks(p->text);
    if (doctor_program_read(p, pid, "comm") > 0) {
        p->text[strcspn(p->text, "\n")] = '\0';
        (void)doctor_escape(p->text, c->comm, sizeof(c->comm));
    }
}

static void doctor_program_look(Programs *p, const char *pid) {
    ssize_t n = doctor_program_read(p, pid, "cmdline");
    bool is_certain = true;
    int runtime;

    /* It ended meanwhile, or it is a thread of the kernel. */
    p->n_unseen += n == -EACCES || n == -EPERM;
    if (n <= 0)
        return;
    p->n_seen++;
    runtime = doctor_program_identify(p, pid);
    p->n_unseen += runtime == RUNTIME_UNKNOWN;
    if (runtime < 0 || doctor_program_has_option(&runtimes[runtime], p->text, n))
        return;
    if (runtime != RUNTIME_OLD_PYTHON) {
        n = doctor_program_read(p, pid, "environ");
        if (n == -ENOENT || n == -ESRCH)
            return;
        is_certain = n >= 0;
        if (n > 0 && doctor_program_is_set(&runtimes[runtime], p->text, n))
            return;
    }
    doctor_program_keep(p, pid, runtime, is_certain);
}

static void doctor_program_scan(Programs *p) {
    struct dirent *entry;
    char path[PATH_MAX];
    size_t n = 0;
    DIR *dir = doctor_path(p->doctor, "/proc", path, sizeof(path)) < 0 ? NULL : opendir(path);

    while (dir && (entry = readdir(dir))) {
        if (strspn(entry->d_name, "0123456789") != strlen(entry->d_name) ||
            strlen(entry->d_name) >= sizeof(p->found[0].pid))
            continue;
        p->is_cut = n == PROCESSES_MAX;
        if (p->is_cut)
            break;
        n++;
        doctor_program_look(p, entry->d_name);
    }
    if (dir)
        (void)closedir(dir);
}

static int doctor_program_compare(const void *a, const void *b) {
    const Candidate *x = a, *y = b;

    return x->ticks != y->ticks ? (x->ticks < y->ticks) - (x->ticks > y->ticks)
                                : strcmp(x->pid, y->pid);
}

static void doctor_program_report(Doctor *d, const Programs *p, int kind) {
    const Runtime *runtime = &runtimes[kind];
    _cleanup_(buffer_done) Buffer names = {};
    size_t n = 0, n_uncertain = 0;

    for (size_t i = 0; i < p->n_found; i++) {
        const Candidate *c = &p->found[i];

        if (c->runtime != kind)
            continue;
        if (n++ < NAMED_MAX)
            text_printf(&names, "%s%s (%s)", n > 1 ? ", " : "", c->comm, c->pid);
        n_uncertain += !c->is_certain;
    }
    if (n == 0)
        return;
    if (n > NAMED_MAX)
        text_printf(&names, " and %zu more", n - NAMED_MAX);
    if (n_uncertain > 0)
        text_printf(&names,
                    "; root alone can read the environment of %zu of them, which may have "
                    "the option",
                    n_uncertain);
    text_putc(&names, '\0');
    if (buffer_error(&names) < 0) {
        d->failed = true;
        return;
    }
    doctor_say(d, HEALTH_WARN, "%zu program%s run%s on %s%s%s, among them %s", n, n == 1 ? "" : "s",
               n == 1 ? "s" : "", runtime->kind, runtime->lacks[0] == ':' ? "" : " ",
               runtime->lacks, (const char *)names.data);
    doctor_mend(d, "%s", runtime->remedy);
}

/* With hidepid the processes of others are not even listed. */
static bool doctor_program_sees_others(const Doctor *d) {
    char path[PATH_MAX];

    return doctor_path(d, "/proc/1", path, sizeof(path)) == 0 && access(path, F_OK) == 0;
}

static void doctor_program_report_all(Doctor *d, const Programs *p) {
    for (int kind = 0; kind < N_RUNTIMES; kind++)
        doctor_program_report(d, p, kind);
    if (p->n_found == 0)
        doctor_say(d, HEALTH_OK, "no program of the %zu that run needs an option for whole stacks",
                   p->n_seen);
    if (!doctor_program_sees_others(d))
        doctor_say(d, HEALTH_OK,
                   "processes of other users are hidden and were not looked at; root "
                   "sees them");
    else if (p->n_unseen > 0)
        doctor_say(d, HEALTH_OK, "%zu process%s could not be looked at%s", p->n_unseen,
                   p->n_unseen == 1 ? "" : "es", d->uid == 0 ? "" : "; root can");
    if (p->is_cut)
        doctor_say(d, HEALTH_OK, "more than %d processes run, and the others were not looked at",
                   PROCESSES_MAX);
}

void doctor_programs(Doctor *d) {
    Programs p = {.doctor = d,
                  .text = malloc(TEXT_BYTES + 2),
                  .found = calloc(PROCESSES_MAX, sizeof(*p.found))};

    if (p.text && p.found) {
        doctor_program_scan(&p);
        qsort(p.found, p.n_found, sizeof(*p.found), doctor_program_compare);
        doctor_program_report_all(d, &p);
    } else
        d->failed = true;
    free(p.text);
    free(p.found);
}
