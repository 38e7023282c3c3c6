/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/doctor/doctor-check.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "util/clock.h"

/*
 * The tools that read recordings: perf, which must be new enough for ours. perf is executed with a
 * timeout; its output is text from outside.
 */

enum { SAID_MAX = 16384, WAIT_MS = 5000 };

/* The first version that reads our files. */
enum { PERF_MAJOR = 6, PERF_MINOR = 1 };

__attribute__((noreturn)) static void run_tool(char *const argv[], int to) {
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    (void)dup2(null, STDIN_FILENO);
    (void)dup2(to, STDOUT_FILENO);
    (void)dup2(null, STDERR_FILENO);
    (void)setenv("LC_ALL", "C", 1);
    (void)setenv("PERF_PAGER", "cat", 1);
    (void)execvp(argv[0], argv);
    _exit(127);
}

/* Reads until the end or a timeout; returns the number of bytes. */
static size_t doctor_tool_read_all(int fd, char ret[SAID_MAX]) {
    uint64_t end = clock_monotonic_ns() + WAIT_MS * 1000000ULL;
    size_t n = 0;

    while (n < SAID_MAX - 1) {
        uint64_t now = clock_monotonic_ns();
        struct pollfd p = {.fd = fd, .events = POLLIN};
        ssize_t k;

        if (now >= end || poll(&p, 1, (int)((end - now) / 1000000 + 1)) <= 0)
            break;
        k = read(fd, ret + n, SAID_MAX - 1 - n);
        if (k <= 0)
            break;
        n += (size_t)k;
    }
    ret[n] = '\0';
    return n;
}

/* Returns the output of a tool; -ENOENT: it is not installed. */
static int doctor_tool_ask(char *const argv[], char ret[SAID_MAX]) {
    int fds[2], status = 0;
    pid_t pid;

    if (pipe2(fds, O_CLOEXEC) < 0)
        return -errno;
    pid = fork();
    if (pid == 0)
        run_tool(argv, fds[1]);
    (void)close(fds[1]);
    if (pid > 0) {
        (void)doctor_tool_read_all(fds[0], ret);
        (void)kill(pid, SIGKILL);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
    }
    (void)close(fds[0]);
    if (pid < 0)
        return -EAGAIN;
    return WIFEXITED(status) && WEXITSTATUS(status) == 127 ? -ENOENT : 0;
}

/* Looks for "    zstd: [ on  ]" in `perf version --build-options`. */
static bool doctor_tool_lacks_zstd(const char *options) {
    const char *zstd = options ? strstr(options, "zstd: [") : NULL;

    return zstd && strncasecmp(zstd, "zstd: [ off", 11) == 0;
}

void doctor_judge_perf(Doctor *d, const char *version, const char *options) {
    unsigned major = 0, minor = 0;
    const char *number =
        version && strncmp(version, "perf version ", 13) == 0 ? version + 13 : NULL;
    char shown[256], first[128] = "";

    if (!version) {
        doctor_say(d, HEALTH_WARN, "perf, which reads recordings, is not installed here");
        doctor_mend(d, "install it (Debian: linux-perf, Fedora: perf), or copy recordings to a "
                       "host that has it");
        return;
    }
    (void)snprintf(first, sizeof(first), "%.*s", (int)MIN(strcspn(version, "\n"), (size_t)100),
                   version);
    (void)doctor_escape(first, shown, sizeof(shown));
    if (!number || sscanf(number, "%u.%u", &major, &minor) != 2) {
        doctor_say(d, HEALTH_WARN, "perf does not print its version: '%s'", shown);
        doctor_mend(
            d, "run 'perf --version'; Debian's wrapper needs linux-perf of the running kernel");
    } else if (major < PERF_MAJOR || (major == PERF_MAJOR && minor < PERF_MINOR)) {
        doctor_say(d, HEALTH_WARN, "%s is older than 6.1, the first that reads profd's files",
                   shown);
        doctor_mend(d, "install a newer perf; it works with any kernel");
    } else if (doctor_tool_lacks_zstd(options)) {
        doctor_say(d, HEALTH_FAIL, "%s was built without zstd and reads no compressed recording",
                   shown);
        doctor_mend(d, "use 'profctl convert --compress=none', set Compress=none in profd.conf, or "
                       "install another perf");
    } else
        doctor_say(d, HEALTH_OK, "%s reads profd's files", shown);
}

void doctor_perf(Doctor *d) {
    _cleanup_free_ char *version = calloc(2, SAID_MAX);
    char *options = version ? version + SAID_MAX : NULL;
    int r;

    if (!version) {
        d->failed = true;
        return;
    }
    r = doctor_tool_ask((char *[]){"perf", "--version", NULL}, version);
    if (r == 0)
        (void)doctor_tool_ask((char *[]){"perf", "version", "--build-options", NULL}, options);
    doctor_judge_perf(d, r == 0 ? version : NULL, options);
}
