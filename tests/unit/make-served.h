/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A keeper that serves requests in a process of its own, and recorders that it serves. */

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper/request/keeper-client.h"
#include "keeper/rights/capability.h"
#include "keeper/serve/serve.h"
#include "util/file.h"
#include "test.h"

enum { RING_BYTES = 64 * 1024, LINKS = 2, RECORDER = 64990, STRANGER = 64991 };

typedef struct Served {
    pid_t pid;
    int sockets[LINKS];
    Keeper *keeper;
} Served;

/* uid 0: the recorder's user is found as usual. */
static inline void serve(const int *sockets, uid_t uid) {
    KeeperHost host;
    ServeContext context = {.host = &host, .listen = -1};
    int life[2];

    keeper_host_find(&host);
    if (uid != 0) {
        host.uid = host.gid = uid;
        host.has_user = true;
    }
    if (slots_new(&context.slots) < 0 || pipe2(life, O_CLOEXEC) < 0)
        _exit(1);
    context.life = life[0];
    for (size_t i = 0; i < LINKS; i++) {
        ServeLink link = {.context = &context, .fd = sockets[i], .may_take_over = true};

        while (serve_request(&link) == 0)
            ;
        (void)close(sockets[i]);
    }
    slots_free(context.slots);
    _exit(0);
}

static inline int served_begin_for(uid_t uid, Served *ret) {
    Served served = {};
    int ends[LINKS];

    for (size_t i = 0; i < LINKS; i++) {
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
            return -errno;
        served.sockets[i] = pair[0];
        ends[i] = pair[1];
    }
    (void)fflush(stdout);
    served.pid = fork();
    if (served.pid == 0) {
        for (size_t i = 0; i < LINKS; i++)
            (void)close(served.sockets[i]);
        serve(ends, uid);
    }
    for (size_t i = 0; i < LINKS; i++)
        (void)close(ends[i]);
    *ret = served;
    return keeper_connect(TAKE_FD(ret->sockets[0]), &ret->keeper);
}

static inline int served_begin(Served *ret) {
    return served_begin_for(0, ret);
}

/* The status with which the keeper ended. */
static inline int served_end(Served *served) {
    int status = -1;

    keeper_disconnect(served->keeper);
    for (size_t i = 0; i < LINKS; i++)
        closep(&served->sockets[i]);
    (void)waitpid(served->pid, &status, 0);
    return status;
}

static inline int reconnect(Served *served) {
    served->keeper = keeper_disconnect(served->keeper);
    return keeper_connect(TAKE_FD(served->sockets[1]), &served->keeper);
}

/* A process with the user of a recorder and without capabilities, from whose root paths are
 * resolved; it ends with the test. If the test does not run as root, it is such a process
 * itself. */
static inline uint32_t begin_recorder(uid_t uid) {
    int ready[2];
    char byte;
    pid_t pid;

    if (geteuid() != 0)
        return (uint32_t)getpid();
    if (pipe2(ready, O_CLOEXEC) < 0)
        return 0;
    (void)fflush(stdout);
    pid = fork();
    if (pid == 0) {
        if ((uid != 0 && (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 ||
                          setresuid(uid, uid, uid) < 0)) ||
            capabilities_limit(0) < 0 || prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0 ||
            prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || write(ready[1], "", 1) != 1)
            _exit(1);
        for (;;)
            (void)pause();
    }
    (void)close(ready[1]);
    if (pid > 0 && read(ready[0], &byte, 1) != 1)
        pid = 0;
    (void)close(ready[0]);
    return pid > 0 ? (uint32_t)pid : 0;
}

static inline void end_recorder(uint32_t pid) {
    if (pid == 0 || pid == (uint32_t)getpid())
        return;
    (void)kill((pid_t)pid, SIGKILL);
    (void)waitpid((pid_t)pid, NULL, 0);
}

/* A unique name. */
static inline const char *own_path(const char *name) {
    static char path[256];

    snprintf(path, sizeof(path), "/tmp/test-keeper.%d.%s", (int)getpid(), name);
    return path;
}

static inline int make_file(const char *path, mode_t mode) {
    _cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    return fd < 0 || fchmod(fd, mode) < 0 ? -errno : 0;
}
