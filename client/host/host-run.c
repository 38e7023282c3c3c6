/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/host/host-words.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "client/host/host-print.h"
#include "util/text.h"

/*
 * Starts one ssh for each host, a limited number at a time, and reads from all of them in one loop.
 * Results are printed in the order of the hosts on the command line; a host whose turn has not come
 * is read until its share of memory is full, and then has to wait. Errors are printed at once, on
 * stderr. An ssh that has ended may have left a master connection behind that keeps the pipes open,
 * so its process shows the end, not its pipes.
 *
 * All of them have the same pipe as stdin, into which nothing is ever written: when we end, for any
 * reason, it closes, and the remote commands end too.
 */

enum {
    PARALLEL_MAX = 64,
    AHEAD_MAX = 256, /* hosts that may send output before their turn */
    HELD_MAX = 256 * 1024,
    CHUNK = 64 * 1024,
    FDS_A_HOST = 3,
};

typedef struct Host {
    const char *name;
    pid_t pid;
    int process, out, err; /* descriptors; -1: closed */
    bool begun, ended;     /* of its ssh process */
    int status;
    HostLines lines, remarks;
} Host;

typedef struct Run {
    Context *c;
    const HostWork *work;
    Host *hosts;
    size_t n, n_begun, n_running, turn;
    char *line; /* for the shell of the remote host */
    int leash;  /* the pipe that is their stdin */
    bool failed;
} Run;

__attribute__((noreturn)) static void become_ssh(const Run *run, const Host *host, int out,
                                                 int err) {
    /* Several ssh processes cannot ask for passwords on one terminal. */
    const char *batch = run->n > 1 ? "-oBatchMode=yes" : "-T";
    const char *argv[] = {
        "ssh",      "-T",      batch, "-oConnectTimeout=10", "-oServerAliveInterval=15", "--",
        host->name, run->line, NULL};

    if (!run->work->reads_stdin)
        (void)dup2(run->leash, STDIN_FILENO);
    if (out >= 0)
        (void)dup2(out, STDOUT_FILENO);
    (void)dup2(err, STDERR_FILENO);
    (void)execvp(argv[0], (char *const *)argv);
    (void)!write(STDERR_FILENO, "there is no ssh here\n", 21);
    _exit(HOST_STATUS_UNREACHABLE);
}

static int host_run_begin_host(Run *run, Host *host) {
    int out[2] = {-1, -1}, err[2] = {-1, -1};
    int r = 0;

    host->begun = true;
    if (pipe2(err, O_CLOEXEC) < 0 || (!run->work->streams && pipe2(out, O_CLOEXEC) < 0))
        r = -errno;
    if (r == 0)
        host->pid = fork();
    if (r == 0 && host->pid == 0)
        become_ssh(run, host, out[1], err[1]);
    if (r == 0 && host->pid < 0)
        r = -errno;
    closep(&out[1]);
    closep(&err[1]);
    host->out = out[0];
    host->err = err[0];
    if (r < 0)
        return r;
    (void)fcntl(host->err, F_SETFL, O_NONBLOCK);
    if (host->out >= 0)
        (void)fcntl(host->out, F_SETFL, O_NONBLOCK);
    host->process = (int)syscall(SYS_pidfd_open, host->pid, 0);
    return host->process < 0 ? -errno : 0;
}

static void host_run_begin_more(Run *run) {
    while (run->n_begun < run->n && run->n_running < PARALLEL_MAX &&
           run->n_begun - run->turn < AHEAD_MAX) {
        Host *host = &run->hosts[run->n_begun++];
        int r = host_run_begin_host(run, host);

        if (r == 0) {
            run->n_running++;
            continue;
        }
        closep(&host->out);
        closep(&host->err);
        host->ended = true;
        host->status =
            complain(STATUS_FAILED, "Failed to start ssh for '%s': %s.", host->name, strerror(-r));
    }
}

/* Reads what is available, up to the host's share; closes the descriptor at the end. */
static void host_run_take(Run *run, Host *host, int *fd, HostLines *lines) {
    size_t most = lines->held.size + HELD_MAX;

    while (*fd >= 0 && lines->held.size < most) {
        uint8_t *room = buffer_reserve(&lines->held, CHUNK);
        ssize_t n;

        if (!room) {
            run->failed = true;
            closep(fd);
            return;
        }
        n = read(*fd, room, CHUNK);
        if (n > 0)
            buffer_commit(&lines->held, (size_t)n);
        /* Nothing more will come from an ssh that has ended, even if another process holds the
         * pipe. */
        else if (n == 0 || (errno != EAGAIN && errno != EINTR) || host->ended)
            closep(fd);
        else if (errno == EAGAIN)
            return;
    }
}

static bool host_run_is_at_turn(const Run *run, const Host *host) {
    return run->work->live || host == &run->hosts[run->turn];
}

/* Prints what may be printed now. */
static void host_run_report(Run *run, Host *host) {
    int r = host_print_lines(run->c, &host->remarks, host->err < 0, true);

    if (r == 0 && host_run_is_at_turn(run, host))
        r = host_print_lines(run->c, &host->lines, host->out < 0, false);
    if (r < 0)
        host->status = host_worse(host->status, STATUS_FAILED);
}

static void host_run_reap(Run *run, Host *host) {
    int status = 0;

    while (waitpid(host->pid, &status, 0) < 0 && errno == EINTR)
        ;
    closep(&host->process);
    host->ended = true;
    run->n_running--;
    host->status =
        host_worse(host->status, WIFEXITED(status) ? WEXITSTATUS(status) : HOST_STATUS_UNREACHABLE);
}

/* Whether there is room for more output of this host. */
static bool host_run_wants_more(const Run *run, const Host *host) {
    return host->lines.held.size < HELD_MAX || host_run_is_at_turn(run, host);
}

static void host_run_serve(Run *run, Host *host, const struct pollfd *fds) {
    if (host->process >= 0 && fds[0].revents)
        host_run_reap(run, host);
    if (fds[1].revents || host->ended)
        host_run_take(run, host, &host->err, &host->remarks);
    if ((fds[2].revents || host->ended) && host_run_wants_more(run, host))
        host_run_take(run, host, &host->out, &host->lines);
    host_run_report(run, host);
}

static bool host_run_is_done(const Host *host) {
    return host->ended && host->out < 0 && host->err < 0;
}

/* Starts the turn of the next hosts and prints what they have sent so far. */
static void host_run_pass_turn(Run *run) {
    while (run->turn < run->n && host_run_is_done(&run->hosts[run->turn])) {
        host_run_report(run, &run->hosts[run->turn]);
        host_lines_done(&run->hosts[run->turn].lines);
        host_lines_done(&run->hosts[run->turn].remarks);
        run->turn++;
        if (run->turn < run->n && run->hosts[run->turn].begun)
            host_run_report(run, &run->hosts[run->turn]);
    }
}

/* Whether to continue without waiting, to read what an ssh that has ended left in its pipes. */
static bool host_run_fill_fds(const Run *run, struct pollfd *fds) {
    bool at_once = false;

    for (size_t i = 0; i < run->n; i++) {
        const Host *host = &run->hosts[i];
        bool more = host_run_wants_more(run, host);

        fds[i * FDS_A_HOST] = (struct pollfd){.fd = host->process, .events = POLLIN};
        fds[i * FDS_A_HOST + 1] = (struct pollfd){.fd = host->err, .events = POLLIN};
        fds[i * FDS_A_HOST + 2] = (struct pollfd){.fd = more ? host->out : -1, .events = POLLIN};
        at_once |= host->ended && (host->err >= 0 || (host->out >= 0 && more));
    }
    return at_once;
}

static int host_run_serve_all(Run *run) {
    _cleanup_free_ struct pollfd *fds = calloc(run->n, FDS_A_HOST * sizeof(*fds));

    if (!fds)
        return -ENOMEM;
    for (;;) {
        host_run_begin_more(run);
        host_run_pass_turn(run);
        if (output_flush(&run->c->out) < 0)
            return -EPIPE; /* the frame reports it */
        if (run->turn == run->n)
            return run->failed ? -ENOMEM : 0;
        if (poll(fds, run->n * FDS_A_HOST, host_run_fill_fds(run, fds) ? 0 : -1) < 0 &&
            errno != EINTR)
            return -errno;
        for (size_t i = 0; i < run->n; i++)
            if (run->hosts[i].begun && !host_run_is_done(&run->hosts[i]))
                host_run_serve(run, &run->hosts[i], fds + i * FDS_A_HOST);
    }
}

static int host_run_judge(const Run *run) {
    int worst = STATUS_OK;

    for (size_t i = 0; i < run->n; i++) {
        host_print_failure(run->hosts[i].name, run->hosts[i].status, run->n == 1);
        worst = host_worse(worst, host_known_status(run->hosts[i].status));
    }
    return worst;
}

static int host_run_make_line(Run *run) {
    _cleanup_(buffer_done) Buffer line = {};

    text_printf(&line, "profctl --remote=%s", run->work->reads_stdin ? "stdin" : "leash");
    host_quote_words(&line, &run->c->hosts, run->c->argc, run->c->argv);
    text_putc(&line, '\0');
    if (buffer_error(&line) < 0)
        return buffer_error(&line);
    run->line = (char *)TAKE_PTR(line.data);
    return 0;
}

static void host_run_close_all(Run *run) {
    for (size_t i = 0; run->hosts && i < run->n; i++) {
        Host *host = &run->hosts[i];

        closep(&host->process);
        closep(&host->out);
        closep(&host->err);
        host_lines_done(&host->lines);
        host_lines_done(&host->remarks);
    }
    free(run->hosts);
    free(run->line);
}

/* Pads names to the longest one, so that all output begins in the same column. */
static void host_run_name_hosts(Run *run) {
    size_t width = 0;

    for (size_t i = 0; i < run->n; i++)
        width = MAX(width, strlen(run->c->hosts.names[i]));
    for (size_t i = 0; i < run->n; i++) {
        const char *name = run->c->hosts.names[i];

        run->hosts[i] = (Host){
            .name = name,
            .process = -1,
            .out = -1,
            .err = -1,
            .lines = {.host = name, .width = (int)width},
            .remarks = {.host = name, .width = (int)width},
        };
    }
}

int host_run(Context *c, const HostWork *work) {
    Run run = {.c = c, .work = work, .n = c->hosts.n, .leash = -1};
    int pipe[2] = {-1, -1}, status, r;

    if ((work->streams || work->reads_stdin) && run.n > 1)
        return complain(
            STATUS_USAGE,
            "A recording on standard %s works with one host only; name a file, or one host.",
            work->streams ? "output" : "input");
    if (work->streams && isatty(STDOUT_FILENO))
        return complain(STATUS_FAILED,
                        "A recording cannot be written to a terminal; redirect stdout.");
    run.hosts = calloc(run.n, sizeof(*run.hosts));
    r = run.hosts ? host_run_make_line(&run) : -ENOMEM;
    if (r == 0 && pipe2(pipe, O_CLOEXEC) < 0)
        r = -errno;
    run.leash = pipe[0];
    if (r == 0)
        host_run_name_hosts(&run);
    /* No pager: it would catch Ctrl-C, which has to end the remote commands. */
    if (r == 0)
        r = host_run_serve_all(&run);
    status = r == 0 ? host_run_judge(&run)
             : r == -EPIPE
                 ? STATUS_FAILED
                 : complain(STATUS_FAILED, "Failed to ask other hosts: %s.", strerror(-r));
    closep(&pipe[0]);
    closep(&pipe[1]);
    host_run_close_all(&run);
    return status;
}
