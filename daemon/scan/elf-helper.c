/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/elf-helper.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "elf/elf-request.h"
#include "elf/sealed-file.h"
#include "util/clock.h"
#include "util/fd-message.h"
#include "util/log.h"

/*
 * profd-elf reads hostile files, and may exit, hang or give false answers. The signal that ended it
 * decides who is to blame: its CPU limit or a crash, the file; SIGKILL or another signal that
 * people and the kernel send, not the file. A file is not to blame either if the helper had ended
 * before it got the file. If the helper does not answer, its state is checked: if it waits for a
 * file system that sends nothing, it is abandoned, since no signal reaches it; if it waits for a
 * slow disk or for a CPU, so do we. After each end it is started later.
 */

enum {
    CHECK_MS = 1000,  /* between two checks of a helper that does not answer */
    STUCK_CHECKS = 4, /* consecutive checks that find it in the same wait */
    CHECKS_MAX = 60,  /* for one answer */
    END_MS = 10,      /* between two queries of its exit status */
    END_TRIES = 200,
    RESTART_FIRST_MS = 100,
    RESTART_LAST_MS = 10000,
    LIVED_WELL_ANSWERS = 64, /* after this many answers the restart delay is reset */
    ENDS_MAX = 3,            /* consecutive ends before it answered anything */
    STATUS_SIZE = 8192,
};

struct ElfHelper {
    Keeper *keeper;
    int proc;
    int socket;   /* -1: it is not running */
    uint32_t pid; /* of the current or the last process */
    uint64_t serial;
    uint64_t cpu_ns, ended_cpu_ns; /* of the current process, and of those before it */
    uint64_t answers;              /* of the current process */
    uint64_t ready_ns, delay_ms;
    unsigned n_ends; /* consecutive, before it answered anything */
};

int elf_helper_new(Keeper *keeper, int proc, ElfHelper **ret) {
    ElfHelper *helper = malloc(sizeof(*helper));

    if (!helper)
        return -ENOMEM;
    *helper =
        (ElfHelper){.keeper = keeper, .proc = proc, .socket = -1, .delay_ms = RESTART_FIRST_MS};
    *ret = helper;
    return 0;
}

ElfHelper *elf_helper_free(ElfHelper *helper) {
    if (!helper)
        return NULL;
    closep(&helper->socket);
    free(helper);
    return NULL;
}

uint64_t elf_helper_ready_ns(const ElfHelper *helper) {
    return helper->ready_ns;
}

uint64_t elf_helper_cpu_ns(const ElfHelper *helper) {
    return helper->ended_cpu_ns + helper->cpu_ns;
}

bool elf_helper_is_missing(const ElfHelper *helper) {
    return helper->n_ends == ENDS_MAX;
}

/* Closes the connection to a helper that has ended or is abandoned. */
static void elf_helper_give_up(ElfHelper *h) {
    closep(&h->socket);
    if (h->answers >= LIVED_WELL_ANSWERS)
        h->delay_ms = RESTART_FIRST_MS;
    h->ready_ns = clock_monotonic_ns() + h->delay_ms * NS_PER_MS;
    h->delay_ms = MIN(h->delay_ms * 2, (uint64_t)RESTART_LAST_MS);
    h->ended_cpu_ns += h->cpu_ns;
    h->n_ends = h->answers > 0 ? 0 : MIN(h->n_ends + 1, (unsigned)ENDS_MAX);
    h->cpu_ns = h->answers = 0;
}

static int elf_helper_start(ElfHelper *h) {
    static LogRate rate = {.interval_ns = 600 * NS_PER_SECOND, .burst = 1};
    int r;

    if (clock_monotonic_ns() < h->ready_ns)
        return -EAGAIN;
    r = keeper_start_elf(h->keeper, &h->pid, &h->socket);
    if (r == 0)
        return 0;
    log_limited(&rate, LOG_LEVEL_WARNING, r,
                "Failed to start profd-elf, which reads build ids, so programs that are seen now "
                "have none: %m");
    elf_helper_give_up(h);
    h->n_ends = ENDS_MAX;
    return r;
}

/* Signals that people and the kernel send regardless of what the program does. */
static bool elf_helper_is_from_outside(int number) {
    static const int numbers[] = {SIGKILL, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
        if (number == numbers[i])
            return true;
    return false;
}

/* It did not live to say what the file cost: at most the time that has passed, and no more than its
 * limit, at which SIGPROF ends it. */
static void elf_helper_charge_end(ElfHelper *h, int status, uint64_t asked_ns) {
    const uint64_t limit_ns = ELF_LIMIT_S * NS_PER_SECOND;

    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF)
        h->cpu_ns += limit_ns;
    else
        h->cpu_ns += MIN(clock_monotonic_ns() - asked_ns, limit_ns);
}

/* Returns -EAGAIN or -ECANCELED. asked_ns: when it got the request and may have begun to read; 0:
 * it had ended before. */
static int elf_helper_judge_end(ElfHelper *h, uint64_t asked_ns) {
    bool had_file = asked_ns > 0, is_from_outside;
    int status = 0, r = -EINPROGRESS;

    for (unsigned i = 0; r == -EINPROGRESS && i < END_TRIES; i++) {
        r = keeper_elf_end(h->keeper, &status);
        if (r == -EINPROGRESS)
            (void)usleep(END_MS * 1000);
    }
    is_from_outside = r < 0 ||
                      (WIFSIGNALED(status) && elf_helper_is_from_outside(WTERMSIG(status))) ||
                      (WIFEXITED(status) && WEXITSTATUS(status) == 0);
    if (had_file && !is_from_outside)
        elf_helper_charge_end(h, status, asked_ns);
    elf_helper_give_up(h);
    if (is_from_outside) {
        log_info("Another program ended profd-elf, profd starts it again when it is needed");
        return -EAGAIN;
    }
    log_warning(0, "profd-elf died of %s %d %s, it is started again when it is needed",
                WIFSIGNALED(status) ? "signal" : "status",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
                had_file ? "over a file" : "between two files");
    return had_file ? -ECANCELED : -EAGAIN;
}

/* The state of a helper that has not answered yet. */
typedef struct HelperState {
    bool is_in_kernel; /* in an uninterruptible wait */
    uint64_t n_waits;  /* the number of its waits so far: if it grows, the file system sends data */
} HelperState;

static HelperState elf_helper_state(const ElfHelper *h) {
    static const char state[] = "\nState:\t", waits[] = "\nvoluntary_ctxt_switches:\t";
    char path[32], text[STATUS_SIZE];
    _cleanup_close_ int fd = -1;
    HelperState helper = {};
    const char *found;
    ssize_t n;

    snprintf(path, sizeof(path), "%" PRIu32 "/status", h->pid);
    fd = openat(h->proc, path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);
    text[MAX(n, (ssize_t)0)] = '\0';
    found = strstr(text, state);
    helper.is_in_kernel = found && found[strlen(state)] == 'D';
    found = strstr(text, waits);
    if (found)
        helper.n_waits = strtoull(found + strlen(waits), NULL, 10);
    return helper;
}

/* 0: an answer can be received. */
static int elf_helper_wait_for_answer(const ElfHelper *h) {
    HelperState last = {};
    unsigned stuck = 0;

    for (unsigned i = 0; i < CHECKS_MAX; i++) {
        struct pollfd fds[] = {{.fd = h->socket, .events = POLLIN},
                               {.fd = keeper_stop_fd(h->keeper), .events = POLLIN}};
        HelperState state;

        if (poll(fds, ARRAY_SIZE(fds), CHECK_MS) > 0)
            return fds[0].revents != 0 ? 0 : -EAGAIN;
        state = elf_helper_state(h);
        if (!state.is_in_kernel)
            stuck = 0;
        else
            stuck = state.n_waits == last.n_waits ? stuck + 1 : 1;
        if (stuck == STUCK_CHECKS)
            return -ETIMEDOUT;
        last = state;
    }
    return -EAGAIN;
}

static int elf_helper_receive(ElfHelper *h, const ElfRequest *request, ElfReply *ret, int *ret_fd) {
    uint8_t bytes[sizeof(ElfReply)];
    _cleanup_close_ int fd = -1;
    int r = elf_helper_wait_for_answer(h);

    if (r < 0)
        return r;
    r = message_receive(h->socket, bytes, sizeof(bytes), &fd);
    if (r >= 0)
        r = elf_reply_check(bytes, (size_t)r, fd >= 0, request, ret);
    if (r == 0)
        *ret_fd = TAKE_FD(fd);
    return r;
}

/* Only a helper that the file has compromised sends an invalid answer. */
static int elf_helper_disbelieve(ElfHelper *h) {
    log_warning(0, "profd-elf gave an answer that makes no sense over a file, which is not read "
                   "again");
    elf_helper_give_up(h);
    return -ECANCELED;
}

/* 0, or the error of asking or of the answer. *ret_fd: the descriptor that comes with the reply, or
 * -1. */
static int elf_helper_ask(ElfHelper *h, ElfWant want, int fd, ElfReply *ret, int *ret_fd) {
    ElfRequest request = {.protocol = ELF_PROTOCOL, .want = want, .serial = ++h->serial};
    int r = h->socket < 0 ? elf_helper_start(h) : 0;
    uint64_t asked_ns = clock_monotonic_ns();

    if (r < 0)
        return r;
    r = message_send(h->socket, &request, sizeof(request), fd, 0);
    if (r == -EPIPE)
        return elf_helper_judge_end(h, 0);
    if (r == 0)
        r = elf_helper_receive(h, &request, ret, ret_fd);
    if (r == 0) {
        h->answers++;
        h->n_ends = 0;
        h->cpu_ns = MAX(h->cpu_ns, ret->cpu_ns);
        return MIN(ret->result, 0);
    }
    if (r == -EPIPE)
        return elf_helper_judge_end(h, asked_ns);
    if (r == -EBADMSG || r == -EMSGSIZE)
        return elf_helper_disbelieve(h);
    if (r == -ETIMEDOUT)
        log_warning(0,
                    "profd-elf waits for a file system that does not answer, starting another one");
    elf_helper_give_up(h);
    /* A helper of another version, while an installation is replaced. */
    return r == -EPROTO ? -EAGAIN : r;
}

int elf_helper_build_id(ElfHelper *helper, int fd, BuildId *ret) {
    _cleanup_close_ int none = -1;
    ElfReply reply;
    int r = elf_helper_ask(helper, ELF_BUILD_ID, fd, &reply, &none);

    if (r < 0)
        return r;
    ret->size = reply.build_id_size;
    memcpy(ret->bytes, reply.build_id, reply.build_id_size);
    return 0;
}

int elf_helper_table(ElfHelper *helper, int fd, MappedTable **ret) {
    _cleanup_close_ int file = -1;
    ElfReply reply;
    int r = elf_helper_ask(helper, ELF_UNWIND, fd, &reply, &file);

    if (r < 0)
        return r;
    r = mapped_table_new(file, reply.file_size, ret);
    if (r == -EBADMSG)
        return elf_helper_disbelieve(helper);
    /* The recorder has no memory; the file is not to blame. */
    return r < 0 ? -EAGAIN : 0;
}

static int elf_helper_file(ElfHelper *helper, ElfWant want, int fd, ElfReply *reply, int *ret_fd) {
    _cleanup_close_ int file = -1;
    int r = elf_helper_ask(helper, want, fd, reply, &file);

    if (r < 0)
        return r;
    if (!sealed_file_stays(file, reply->file_size))
        return elf_helper_disbelieve(helper);
    *ret_fd = TAKE_FD(file);
    return 0;
}

int elf_helper_symbols(ElfHelper *helper, int fd, BuildId *ret_id, int *ret_fd,
                       uint64_t *ret_size) {
    ElfReply reply;
    int r = elf_helper_file(helper, ELF_SYMBOLS, fd, &reply, ret_fd);

    if (r < 0)
        return r;
    ret_id->size = reply.build_id_size;
    memcpy(ret_id->bytes, reply.build_id, reply.build_id_size);
    *ret_size = reply.file_size;
    return 0;
}

int elf_helper_code_map(ElfHelper *helper, int fd, int *ret_fd, uint64_t *ret_size) {
    ElfReply reply;
    int r = elf_helper_file(helper, ELF_CODE_MAP, fd, &reply, ret_fd);

    if (r == 0)
        *ret_size = reply.file_size;
    return r;
}
