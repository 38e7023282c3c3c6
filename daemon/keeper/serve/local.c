/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "keeper/serve/local.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "keeper/rights/keeper-host.h"
#include "keeper/serve/serve.h"

/*
 * A child process that answers like the keeper of a recorder, so that a check opens events with the
 * same code. It has no rights of its own, holds no rings, and ends when its socket is closed.
 */

static void local_serve_until_closed(int fd, int life) {
    KeeperHost host;
    ServeContext context = {.host = &host, .life = life, .listen = -1};
    ServeLink link = {.context = &context, .fd = fd, .may_take_over = true};
    struct pollfd readable = {.fd = fd, .events = POLLIN};

    keeper_host_find(&host);
    if (slots_new(&context.slots) < 0)
        return;
    while (poll(&readable, 1, -1) >= 0 || errno == EINTR)
        if (serve_request(&link) < 0)
            return;
}

int keeper_local(Keeper **ret) {
    int pair[2], life[2];
    pid_t pid;

    if (pipe2(life, O_CLOEXEC) < 0)
        return -errno;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
        closep(&life[0]);
        closep(&life[1]);
        return -errno;
    }
    pid = fork();
    if (pid == 0) {
        closep(&pair[0]);
        local_serve_until_closed(pair[1], life[0]);
        _exit(0);
    }
    closep(&pair[1]);
    closep(&life[0]);
    closep(&life[1]);
    if (pid < 0) {
        closep(&pair[0]);
        return -errno;
    }
    return keeper_connect(pair[0], ret);
}
