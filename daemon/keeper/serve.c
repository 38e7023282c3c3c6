/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "keeper/serve.h"

#include <errno.h>
#include <signal.h>
#include <inttypes.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "keeper/message.h"
#include "keeper/opener.h"
#include "keeper/sandbox.h"
#include "util/log.h"

/*
 * One table from kinds to handlers. Requests that look into other processes are answered by a
 * process of their own, the opener, over a socket of its own: somebody's file system can let an
 * open() wait for ever, and then neither the keeper nor what records may wait with it. The opener
 * is a fork of the keeper that holds nothing but that socket and ends with it.
 */

enum { OPENERS_MAX = 16 }; /* more than one is alive where some wait for a file system */

typedef struct Answer {
    KeeperReply reply;
    int fd;      /* -1: none */
    bool is_own; /* the descriptor is closed when it was sent */
    bool later;  /* somebody else answers */
} Answer;

typedef int (*Handler)(ServeLink *link, const KeeperRequest *request, int fd, Answer *answer);

static int answer_fd(Answer *answer, int r, int fd) {
    if (r < 0)
        return r;
    answer->fd = fd;
    answer->is_own = true;
    return 0;
}

/* Events that a fork holds would live on when they are closed here. */
static void close_others(int a, int b) {
    int low = MIN(a, b), high = MAX(a, b);

    if (low > STDERR_FILENO + 1)
        (void)close_range(STDERR_FILENO + 1, (unsigned)low - 1, 0);
    if (high > MAX(low, STDERR_FILENO) + 1)
        (void)close_range((unsigned)MAX(low, STDERR_FILENO) + 1, (unsigned)high - 1, 0);
    (void)close_range((unsigned)high + 1, ~0U, 0);
}

static void run_opener(const KeeperHost *host, int socket) {
    ServeContext context = {.host = host, .life = -1, .listen = -1};
    ServeLink link = {.context = &context, .fd = socket};

    (void)prctl(PR_SET_NAME, "profd-opener", 0, 0, 0);
    close_others(socket, host->tracefs);
    (void)sandbox_opener();
    while (serve_request(&link) == 0)
        ;
    _exit(0);
}

static int open_lane(ServeLink *link, const KeeperRequest *request _unused_, int fd _unused_,
                     Answer *answer) {
    int pair[2];
    pid_t opener;

    /* Who asks for another was let down by the last one. */
    if (link->opener > 0)
        (void)kill(link->opener, SIGKILL);
    if (link->context->openers >= OPENERS_MAX)
        return -EBUSY;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    opener = fork();
    if (opener == 0)
        run_opener(link->context->host, pair[0]);
    closep(&pair[0]);
    if (opener < 0) {
        closep(&pair[1]);
        return -EAGAIN;
    }
    link->context->openers++;
    link->opener = opener;
    return answer_fd(answer, 0, pair[1]);
}

static int open_life(ServeLink *link, const KeeperRequest *request _unused_, int fd _unused_,
                     Answer *answer) {
    answer->fd = link->context->life;
    return 0;
}

static int open_event(ServeLink *link, const KeeperRequest *request, int fd _unused_,
                      Answer *answer) {
    _cleanup_close_ int cgroup = -1;
    int r = opener_cgroup(link->context->host, request, &cgroup);

    return r < 0 ? r
                 : slots_open(link->context->slots, &request->event, cgroup, &answer->reply.slot,
                              &answer->fd);
}

static int close_event(ServeLink *link, const KeeperRequest *request, int fd _unused_,
                       Answer *answer _unused_) {
    return slots_close(link->context->slots, request->slot);
}

static int next_event(ServeLink *link, const KeeperRequest *request, int fd _unused_,
                      Answer *answer) {
    return slots_next(link->context->slots, request->slot, &answer->reply.slot,
                      &answer->reply.event, &answer->fd);
}

static int open_file(ServeLink *link _unused_, const KeeperRequest *request, int fd _unused_,
                     Answer *answer) {
    int found = -1, r = opener_file(request, &found);

    return answer_fd(answer, r, found);
}

static int open_mapped(ServeLink *link _unused_, const KeeperRequest *request, int fd _unused_,
                       Answer *answer) {
    int found = -1, r = opener_mapped(request, &found);

    return answer_fd(answer, r, found);
}

static int open_image(ServeLink *link _unused_, const KeeperRequest *request, int fd _unused_,
                      Answer *answer) {
    int found = -1, r = opener_image(request, &found);

    return answer_fd(answer, r, found);
}

static int open_tracefs(ServeLink *link, const KeeperRequest *request, int fd _unused_,
                        Answer *answer) {
    int found = -1, r = opener_tracefs(link->context->host, request, &found);

    return answer_fd(answer, r, found);
}

static int read_namespaces(ServeLink *link _unused_, const KeeperRequest *request, int fd _unused_,
                           Answer *answer) {
    return opener_namespaces(request, answer->reply.namespaces);
}

static int seal(ServeLink *link, const KeeperRequest *request, int fd, Answer *answer _unused_) {
    return opener_seal(link->context->host, fd, request->sensitive != 0);
}

static int give_listening(ServeLink *link, const KeeperRequest *request _unused_, int fd _unused_,
                          Answer *answer) {
    if (link->context->listen < 0)
        return -ENOENT;
    answer->fd = link->context->listen;
    return 0;
}

static int take_over(ServeLink *link, const KeeperRequest *request _unused_, int fd _unused_,
                     Answer *answer) {
    link->is_waiting = answer->later = !link->may_take_over;
    return 0;
}

static int ready(ServeLink *link, const KeeperRequest *request _unused_, int fd _unused_,
                 Answer *answer _unused_) {
    link->is_ready = true;
    return 0;
}

static int status(ServeLink *link, const KeeperRequest *request _unused_, int fd _unused_,
                  Answer *answer) {
    answer->reply.n_events = slots_count(link->context->slots);
    answer->reply.restarts = link->context->restarts;
    answer->reply.upgraded = link->upgraded;
    return 0;
}

/* clang-format off */
static const struct HandlerRow {
    bool    is_opener; /* the opener answers it, and nobody else */
    Handler handle;
} handlers[] = {
    [KEEPER_OPEN_LANE]       = { false, open_lane       },
    [KEEPER_OPEN_LIFE]       = { false, open_life       },
    [KEEPER_OPEN_EVENT]      = { false, open_event      },
    [KEEPER_CLOSE_EVENT]     = { false, close_event     },
    [KEEPER_NEXT_EVENT]      = { false, next_event      },
    [KEEPER_OPEN_FILE]       = { true,  open_file       },
    [KEEPER_OPEN_MAPPED]     = { true,  open_mapped     },
    [KEEPER_OPEN_IMAGE]      = { true,  open_image      },
    [KEEPER_OPEN_TRACEFS]    = { true,  open_tracefs    },
    [KEEPER_READ_NAMESPACES] = { true,  read_namespaces },
    [KEEPER_SEAL]            = { false, seal            },
    [KEEPER_TAKE_OVER]       = { false, take_over       },
    [KEEPER_READY]           = { false, ready           },
    [KEEPER_STATUS]          = { false, status          },
    [KEEPER_LISTEN]          = { false, give_listening  },
};
/* clang-format on */

static_assert(ARRAY_SIZE(handlers) == KEEPER_KINDS, "a handler for each kind");

/* A recorder that asks for what it must not have is broken or fallen. It hears so, and so does the
 * log, but not each time. */
static int refuse(ServeLink *link, const char *what, int error) {
    if ((link->refused & (link->refused + 1)) == 0)
        log_warning(error, "Refused the recorder a request (%s): %m, %" PRIu64 " so far", what,
                    link->refused + 1);
    link->refused++;
    return error;
}

static int handle(ServeLink *link, const KeeperRequest *request, int fd, Answer *answer) {
    const char *name = keeper_request_name((KeeperKind)request->kind);
    const struct HandlerRow *row = &handlers[request->kind];

    if (row->is_opener != !link->context->slots)
        return refuse(link, name, -EOPNOTSUPP);
    if (keeper_request_has_fd((KeeperKind)request->kind) != (fd >= 0))
        return refuse(link, name, -EBADMSG);
    return row->handle(link, request, fd, answer);
}

/* The answer never waits: a recorder that does not read has no use for it. */
static int send_answer(ServeLink *link, Answer *answer, int result) {
    int r;

    answer->reply.protocol = KEEPER_PROTOCOL;
    answer->reply.result = result;
    r = message_send(link->fd, &answer->reply, sizeof(answer->reply), answer->fd, MSG_DONTWAIT);
    if (answer->is_own)
        closep(&answer->fd);
    return r < 0 ? -EPIPE : 0;
}

int serve_request(ServeLink *link) {
    uint8_t bytes[sizeof(KeeperRequest)];
    _cleanup_close_ int fd = -1;
    Answer answer = {.fd = -1};
    KeeperRequest request;
    int n = message_receive(link->fd, bytes, sizeof(bytes), &fd), r;

    if (n < 0 && n != -EMSGSIZE)
        return n == -EAGAIN ? 0 : -EPIPE;
    r = n < 0 ? n : keeper_request_check(bytes, (size_t)n, &request);
    if (r < 0)
        r = refuse(link, "malformed", r);
    else
        r = handle(link, &request, fd, &answer);
    return answer.later ? 0 : send_answer(link, &answer, r);
}

int serve_let_go(ServeLink *link) {
    Answer answer = {.fd = -1};

    link->is_waiting = false;
    link->may_take_over = true;
    return send_answer(link, &answer, 0);
}
