/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "keeper/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "keeper/child.h"
#include "keeper/control-socket.h"
#include "keeper/folder.h"
#include "keeper/rights/priority.h"
#include "keeper/rights/sandbox.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/notify-socket.h"

/*
 * One loop over a signalfd and the sockets of at most two recorders: the current one, and one that
 * is to follow it. Only wait() tells how a recorder ended; a socket that closes just ends its link.
 * When a recorder ends before any recorder has ever recorded, its exit status becomes ours. After
 * that, a recorder that exits with success was asked to; any other is started again, with growing
 * delays, because the rings fill and must be drained.
 */

#define ELF_PROGRAM "profd-elf"

enum {
    RESTART_FIRST_MS = 100,
    RESTART_LAST_MS = 10000,
    RESTART_READY_MS = 400, /* the longest delay after a recorder that had recorded, since its
                             * rings are filling */
    LIVED_WELL_SEC = 1,     /* a ring holds only some seconds */
    LEAVE_MS = 30000,       /* for a recorder to finish its segments before the next one takes
                             * over */
    ASK_MS = 60000,         /* for the next one to start up */
    ABORT_MS = 20000,       /* for a recorder to write its core dump */
    UMASK = 027,
};

typedef struct Keeping {
    const KeeperOptions *options;
    char program[4096], elf[4096 + sizeof(ELF_PROGRAM)];
    KeeperHost host;
    ServeContext context;
    Child current, next;
    int signals;
    int life[2];
    uint64_t restart_at_ns; /* 0: no restart is scheduled */
    uint64_t restart_delay_ms;
    bool has_recorded, is_stopping, is_over;
    int status;
} Keeping;

static const char *keeper_describe_end(int status, char *text, size_t size) {
    if (WIFSIGNALED(status))
        snprintf(text, size, "died of signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(text, size, "ended with status %d", WEXITSTATUS(status));
    return text;
}

static void keeper_finish(Keeping *k, int status) {
    k->is_over = true;
    k->status = status;
}

static int keeper_start(Keeping *k, Child *child, bool may_take_over) {
    return child_start(child, &k->context, k->program, k->options->argv, may_take_over);
}

/* A failed fork is retried like a recorder that died. */
static void keeper_restart_later(Keeping *k, const char *why) {
    char restarts[16];

    k->restart_at_ns = clock_monotonic_ns() + k->restart_delay_ms * NS_PER_MS;
    snprintf(restarts, sizeof(restarts), "%" PRIu32, k->context.restarts + 1);
    log_struct(LOG_LEVEL_WARNING, 0,
               LOG_FIELDS({"PROFD_EVENT", "recorder-died"}, {"PROFD_RESTARTS", restarts}),
               "The recorder %s, starting it again in %" PRIu64 " ms (restart %" PRIu32
               "), meanwhile its rings are kept",
               why, k->restart_delay_ms, k->context.restarts + 1);
    k->restart_delay_ms = MIN(k->restart_delay_ms * 2, (uint64_t)RESTART_LAST_MS);
}

static void keeper_restart(Keeping *k) {
    k->restart_at_ns = 0;
    k->context.restarts++;
    notify_socket_send("WATCHDOG=1", 0);
    if (keeper_start(k, &k->current, true) < 0)
        keeper_restart_later(k, "could not be started");
}

/* The next recorder becomes the current one. */
static void keeper_promote(Keeping *k) {
    k->current = k->next;
    k->next = (Child){.link.fd = -1};
    k->current.leave_by_ns = 0;
    k->current.link.upgraded = true;
    k->current.link.may_take_over = true;
    log_struct(LOG_LEVEL_INFO, 0, LOG_FIELDS({"PROFD_EVENT", "recorder-replaced"}),
               "The new recorder takes over");
    if (k->current.link.is_waiting)
        (void)serve_let_go(&k->current.link);
}

static void keeper_on_current_end(Keeping *k, int status) {
    bool is_well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    bool lived_well = k->current.ready_ns != 0 &&
                      clock_monotonic_ns() - k->current.ready_ns >= LIVED_WELL_SEC * NS_PER_SECOND;
    bool was_leaving = k->current.leave_by_ns != 0;
    bool was_ready = k->current.ready_ns != 0;
    char text[96];

    keeper_describe_end(status, text, sizeof(text));
    child_close(&k->current);
    if (k->is_stopping) {
        /* A recorder that has not installed its handlers yet dies of SIGTERM. */
        is_well |= WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM;
        if (!is_well)
            log_error(0, "The recorder %s while it stopped, what it had not written is lost", text);
        keeper_finish(k, is_well ? 0 : WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE);
        return;
    }
    if (lived_well)
        k->restart_delay_ms = RESTART_FIRST_MS;
    else if (was_ready)
        k->restart_delay_ms = MIN(k->restart_delay_ms, (uint64_t)RESTART_READY_MS);
    if (k->next.pid > 0) {
        if (!is_well)
            log_warning(0, "The recorder %s before another took over", text);
        keeper_promote(k);
    } else if (!k->has_recorded) {
        if (WIFSIGNALED(status))
            log_error(0, "The recorder %s before it recorded anything", text);
        keeper_finish(k, WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE);
    } else if (is_well && !was_leaving) {
        log_notice("The recorder was asked to end, so the keeper ends too");
        keeper_finish(k, 0);
    } else
        keeper_restart_later(k, text);
}

static void keeper_on_next_end(Keeping *k, int status) {
    char text[96];

    child_close(&k->next);
    if (!k->is_stopping)
        log_struct(LOG_LEVEL_WARNING, 0, LOG_FIELDS({"PROFD_EVENT", "upgrade-failed"}),
                   "The new recorder %s before it took over, the old one goes on",
                   keeper_describe_end(status, text, sizeof(text)));
}

static void keeper_on_helper_end(Keeping *k, pid_t pid, int status, const struct rusage *usage) {
    helpers_ended(&k->context.helpers, pid,
                  (uint64_t)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * NS_PER_SECOND +
                      (uint64_t)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * 1000);
    if (!serve_helper_ended(&k->current.link, pid, status))
        (void)serve_helper_ended(&k->next.link, pid, status);
}

static void keeper_reap(Keeping *k) {
    struct rusage usage;
    int status;
    pid_t pid;

    while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0)
        if (pid == k->current.pid)
            keeper_on_current_end(k, status);
        else if (pid == k->next.pid)
            keeper_on_next_end(k, status);
        else
            keeper_on_helper_end(k, pid, status, &usage);
}

static void keeper_on_stop(Keeping *k) {
    k->is_stopping = true;
    child_signal(&k->current, SIGTERM);
    child_signal(&k->next, SIGTERM);
    if (k->current.pid > 0)
        return;
    log_error(0, "Told to stop while no recorder runs, what the rings hold is lost");
    keeper_finish(k, EXIT_FAILURE);
}

static uint64_t keeper_moment_in(uint64_t ms, uint64_t usual_ms) {
    return clock_monotonic_ns() + (ms ? ms : usual_ms) * NS_PER_MS;
}

/* systemd's watchdog sends SIGABRT for a recorder that hangs; pass it on. Wait for the recorder:
 * systemd kills the rest of the service when we exit, and a core dump takes time. */
static void keeper_on_abort(Keeping *k) {
    log_struct(LOG_LEVEL_ERROR, 0, LOG_FIELDS({"PROFD_EVENT", "watchdog"}),
               "Received SIGABRT, which systemd sends when the recorder has not reported for "
               "WatchdogSec=, aborting the recorder");
    k->is_stopping = true;
    child_signal(&k->current, SIGABRT);
    child_signal(&k->next, SIGKILL);
    k->current.leave_by_ns = keeper_moment_in(0, ABORT_MS);
    if (k->current.pid <= 0)
        keeper_finish(k, EXIT_FAILURE);
}

static void keeper_on_upgrade(Keeping *k) {
    if (k->is_stopping || k->next.pid > 0)
        return;
    if (k->current.pid <= 0) {
        k->restart_at_ns = clock_monotonic_ns();
        return;
    }
    log_info("Starting '%s' to take over from the recorder", k->program);
    if (keeper_start(k, &k->next, false) == 0)
        k->next.leave_by_ns = keeper_moment_in(k->options->ask_ms, ASK_MS);
}

/* Process a stop signal before the exit of the recorder that it caused. */
static void keeper_on_signals(Keeping *k) {
    struct signalfd_siginfo info;
    bool has_ended = false;

    while (read(k->signals, &info, sizeof(info)) == sizeof(info))
        switch (info.ssi_signo) {
        case SIGTERM:
        case SIGINT:
            keeper_on_stop(k);
            break;
        case SIGABRT:
            keeper_on_abort(k);
            break;
        case SIGHUP:
            child_signal(&k->current, SIGHUP);
            break;
        case SIGUSR1:
            keeper_on_upgrade(k);
            break;
        default:
            has_ended = true;
        }
    if (has_ended)
        keeper_reap(k);
}

static void keeper_on_request(Keeping *k, Child *child) {
    if (serve_request(&child->link) < 0) {
        closep(&child->link.fd);
        return;
    }
    if (child->link.is_ready && child->ready_ns == 0) {
        child->ready_ns = clock_monotonic_ns();
        k->has_recorded = true;
    }
    if (child == &k->next && child->link.is_waiting && k->current.leave_by_ns == 0) {
        k->current.leave_by_ns = keeper_moment_in(k->options->leave_ms, LEAVE_MS);
        child_signal(&k->current, SIGUSR1);
    }
}

static void keeper_kill_if_late(Child *child, uint64_t now, const char *what) {
    if (child->pid <= 0 || child->leave_by_ns == 0 || now < child->leave_by_ns)
        return;
    log_warning(0, "The %s in time, killing it", what);
    child_signal(child, SIGKILL);
    child->leave_by_ns = UINT64_MAX;
}

static void keeper_on_time(Keeping *k) {
    uint64_t now = clock_monotonic_ns();

    if (k->restart_at_ns != 0 && now >= k->restart_at_ns && !k->is_stopping)
        keeper_restart(k);
    keeper_kill_if_late(&k->current, now,
                        k->is_stopping ? "recorder did not end" : "recorder did not hand over");
    if (!k->next.link.is_waiting)
        keeper_kill_if_late(&k->next, now, "new recorder did not get ready to take over");
}

static int keeper_timeout_ms(const Keeping *k) {
    uint64_t moments[] = {k->restart_at_ns, k->current.leave_by_ns,
                          k->next.link.is_waiting ? 0 : k->next.leave_by_ns};
    uint64_t at = UINT64_MAX, now = clock_monotonic_ns();

    for (size_t i = 0; i < ARRAY_SIZE(moments); i++)
        if (moments[i] != 0)
            at = MIN(at, moments[i]);
    if (at == UINT64_MAX)
        return -1;
    return at <= now ? 0 : (int)MIN((at - now) / NS_PER_MS + 1, (uint64_t)60000);
}

static int keeper_loop(Keeping *k) {
    while (!k->is_over) {
        struct pollfd fds[] = {
            {.fd = k->signals, .events = POLLIN},
            {.fd = k->current.link.fd, .events = POLLIN},
            {.fd = k->next.link.fd, .events = POLLIN},
        };

        if (poll(fds, ARRAY_SIZE(fds), keeper_timeout_ms(k)) < 0 && errno != EINTR)
            return log_error(-errno, "Failed to wait for the recorder: %m");
        if (fds[2].revents)
            keeper_on_request(k, &k->next);
        if (fds[1].revents)
            keeper_on_request(k, &k->current);
        if (fds[0].revents)
            keeper_on_signals(k);
        keeper_on_time(k);
    }
    return 0;
}

static int keeper_block_signals(int *ret) {
    static const int numbers[] = {SIGTERM, SIGINT, SIGABRT, SIGHUP, SIGUSR1, SIGCHLD};
    sigset_t set;
    int fd;

    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
        sigaddset(&set, numbers[i]);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return -errno;
    fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return -errno;
    *ret = fd;
    return 0;
}

/* Next to this program, as in a build folder, or where it is installed. */
static void keeper_find_elf(Keeping *k) {
    const char *slash = strrchr(k->program, '/');

    snprintf(k->elf, sizeof(k->elf), "%.*s/%s", slash ? (int)(slash - k->program) : 0, k->program,
             ELF_PROGRAM);
    if (access(k->elf, X_OK) < 0)
        snprintf(k->elf, sizeof(k->elf), "%s/%s", PROFD_LIBEXECDIR, ELF_PROGRAM);
    k->context.elf = k->elf;
}

static int keeper_prepare(Keeping *k) {
    ssize_t n = readlink("/proc/self/exe", k->program, sizeof(k->program) - 1);
    int r;

    if (n < 0)
        return log_error(-errno, "Failed to find out which program this is: %m");
    k->program[n] = '\0';
    keeper_find_elf(k);
    if (pipe2(k->life, O_CLOEXEC) < 0)
        return log_error(-errno, "Failed to make a pipe: %m");
    k->context.life = k->life[0];
    r = keeper_block_signals(&k->signals);
    if (r == 0)
        r = slots_new(&k->context.slots);
    return r < 0 ? log_error(r, "Failed to set up the keeper: %m") : 0;
}

static int keeper_prepare_folders(Keeping *k) {
    /* Any user must be able to reach the control socket in the runtime folder. */
    const struct {
        const char *path;
        mode_t mode;
    } rows[] = {{k->options->store, 0750}, {k->options->runtime, 0755}};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        int r = rows[i].path ? folder_prepare(&k->host, rows[i].path, rows[i].mode) : 0;

        if (r == -EROFS)
            return log_error(r,
                             "Failed to make the folder '%s', in a service systemd-tmpfiles "
                             "--create or ReadWritePaths= of its unit helps: %m",
                             rows[i].path);
        if (r < 0)
            return log_error(r, "Failed to make the folder '%s': %m", rows[i].path);
    }
    return 0;
}

static int keeper_give_up_rights(const Keeping *k) {
    int r;

    sandbox_raise_limits();
    sandbox_log_missing();
    if (k->host.has_user)
        log_info("The recorder runs as user %u without any capability", (unsigned)k->host.uid);
    else if (geteuid() == 0)
        log_info(
            "There is no user 'profd', so the recorder runs as root, but without any capability");
    r = sandbox_keeper();
    return r < 0 ? log_error(r, "Failed to give up rights that profd does not need: %m") : 0;
}

static int keeper_run_loop(Keeping *k) {
    int r;

    (void)umask(UMASK);
    priority_raise();
    keeper_host_find(&k->host);
    r = keeper_prepare(k);
    if (r == 0)
        r = keeper_prepare_folders(k);
    if (r == 0 && k->options->runtime)
        r = control_socket_open(k->options->runtime, &k->context.listen);
    if (r == 0)
        r = keeper_give_up_rights(k);
    if (r == 0)
        r = keeper_start(k, &k->current, true);
    return r == 0 ? keeper_loop(k) : r;
}

int keeper_run(const KeeperOptions *options) {
    Keeping k = {
        .options = options,
        .host = {.cgroup = -1, .tracefs = -1},
        .context = {.host = &k.host, .life = -1, .listen = -1},
        .current.link.fd = -1,
        .next.link.fd = -1,
        .signals = -1,
        .life = {-1, -1},
        .restart_delay_ms = RESTART_FIRST_MS,
    };
    int r = keeper_run_loop(&k);

    helpers_kill(&k.context.helpers);
    child_close(&k.current);
    child_close(&k.next);
    slots_free(k.context.slots);
    keeper_host_done(&k.host);
    closep(&k.context.listen);
    closep(&k.signals);
    closep(&k.life[0]);
    closep(&k.life[1]);
    return r < 0 ? EXIT_FAILURE : k.status;
}
