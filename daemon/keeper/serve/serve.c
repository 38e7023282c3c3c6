/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "keeper/serve/serve.h"

#include <errno.h>
#include <signal.h>
#include <inttypes.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "keeper/rights/exec.h"
#include "keeper/rights/sandbox.h"
#include "keeper/serve/proc-copy.h"
#include "keeper/serve/opener.h"
#include "keeper/serve/sealer.h"
#include "util/clock.h"
#include "util/fd-message.h"
#include "util/log.h"

/*
 * One table from kinds to handlers. Requests that open files of other processes are answered by
 * separate processes, the openers, each over its own socket: a file system can block an open() for
 * ever, and neither the keeper nor a recording thread may wait for that. Files of the kernel have
 * another opener than those of processes, and what /proc says of a process is read by yet another,
 * since the process itself can block that. The file system of the store can be as slow, so a sealer
 * changes the owner of finished files; and a closer closes what may take for ever to close. Each of
 * these helpers is a fork of the keeper that holds nothing but its socket and ends when it is
 * closed: all but the sealer also end with the keeper, the sealer only with the recorder, which
 * finishes its segments when the keeper is gone.
 */

typedef struct Answer {
    KeeperReply reply;
    int fd;      /* -1: none */
    bool is_own; /* close the descriptor after it was sent */
    bool later;  /* the reply is sent later, or never */
    bool keeps;  /* the descriptor of the request stays open */
} Answer;

typedef int (*Handler)(ServeLink *link, const KeeperRequest *request, int fd, Answer *answer);

static int serve_answer_fd(Answer *answer, int r, int fd) {
    if (r < 0)
        return r;
    answer->fd = fd;
    answer->is_own = true;
    return 0;
}

/* The process that handles a kind of request: the keeper, or one of its helpers. */
typedef enum Side { KEEPER, SYSTEM, IMAGES, SEALER, MAPS, CLOSER } Side;

/* clang-format off */
static const struct HelperRow {
    Side        side;
    const char *name;
    int       (*sandbox)(const KeeperHost *host);
    bool        has_tracefs, is_silent;
    bool        outlives_keeper; /* the recorder needs it until its segments are finished */
} helpers[] = {
    [KEEPER_LANE_SYSTEM] = { SYSTEM, "profd-opener", sandbox_opener, true,  false, false },
    [KEEPER_LANE_IMAGES] = { IMAGES, "profd-images", sandbox_images, false, true,  false },
    [KEEPER_LANE_SEAL]   = { SEALER, "profd-sealer", sandbox_sealer, false, true,  true  },
    [KEEPER_LANE_MAPS]   = { MAPS,   "profd-maps",   sandbox_maps,   false, true,  false },
    [KEEPER_LANE_CLOSE]  = { CLOSER, "profd-closer", sandbox_closer, false, true,  false },
};
/* clang-format on */

/* See exec_be_killed_first(): the recorder has more memory, and goes before it. The rings are lost
 * with the keeper alone. */
enum { HELPER_KILLED_FIRST = 200 };

/* A silent helper may hang for ever, and then must not keep the log open. */
static void serve_run_helper(const ServeContext *keeper, KeeperLane lane, int socket) {
    const struct HelperRow *row = &helpers[lane];
    ServeContext context = {.host = keeper->host, .life = -1, .listen = -1};
    ServeLink link = {.context = &context, .fd = socket, .kept = -1, .lane = lane};

    (void)prctl(PR_SET_NAME, row->name, 0, 0, 0);
    exec_be_killed_first(HELPER_KILLED_FIRST);
    if (row->sandbox(keeper->host) < 0)
        _exit(EXIT_FAILURE);
    helper_let_go(socket, row->has_tracefs ? keeper->host->tracefs : -1, row->is_silent);
    if (row->outlives_keeper)
        (void)prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
    while (serve_request(&link) == 0)
        ;
    _exit(0);
}

static bool serve_has_elf(const ServeContext *context) {
    return context->elf && access(context->elf, X_OK) == 0;
}

static int serve_open_lane(ServeLink *link, const KeeperRequest *request, int fd _unused_,
                           Answer *answer) {
    KeeperLane lane = (KeeperLane)request->slot;
    ServeContext *context = link->context;
    int pair[2];
    pid_t pid;

    /* The recorder asks for a new helper because the last one failed it. */
    if (link->lanes[lane].pid > 0)
        (void)kill(link->lanes[lane].pid, SIGKILL);
    if (!helpers_have_room(&context->helpers, lane))
        return -EBUSY;
    if (lane == KEEPER_LANE_ELF && !serve_has_elf(context))
        return -ENOENT;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    pid = fork();
    if (pid == 0 && lane == KEEPER_LANE_ELF)
        exec_elf(context->host, context->elf, pair[0]);
    if (pid == 0)
        serve_run_helper(context, lane, pair[0]);
    closep(&pair[0]);
    if (pid < 0) {
        closep(&pair[1]);
        return -EAGAIN;
    }
    helpers_add(&context->helpers, lane, pid);
    link->lanes[lane].pid = pid;
    answer->reply.slot = (uint32_t)pid;
    return serve_answer_fd(answer, 0, pair[1]);
}

static int serve_end_of_lane(ServeLink *link, const KeeperRequest *request, int fd _unused_,
                             Answer *answer) {
    if (link->lanes[request->slot].pid > 0)
        return -EINPROGRESS;
    answer->reply.slot = (uint32_t)link->lanes[request->slot].status;
    return 0;
}

bool serve_helper_ended(ServeLink *link, pid_t pid, int status) {
    for (size_t i = 0; i < KEEPER_LANES; i++)
        if (link->lanes[i].pid == pid) {
            link->lanes[i].pid = 0;
            link->lanes[i].status = status;
            return true;
        }
    return false;
}

static int serve_open_life(ServeLink *link, const KeeperRequest *request _unused_, int fd _unused_,
                           Answer *answer) {
    answer->fd = link->context->life;
    return 0;
}

static int serve_open_event(ServeLink *link, const KeeperRequest *request, int fd _unused_,
                            Answer *answer) {
    _cleanup_close_ int cgroup = -1;
    int r = opener_cgroup(link->context->host, request, &cgroup);

    return r < 0 ? r
                 : slots_open(link->context->slots, &request->event, cgroup, &answer->reply.slot,
                              &answer->fd);
}

static int serve_open_memory(ServeLink *link, const KeeperRequest *request, int fd _unused_,
                             Answer *answer) {
    return slots_open_memory(link->context->slots, &request->event, &answer->reply.slot,
                             &answer->fd);
}

static int serve_close_event(ServeLink *link, const KeeperRequest *request, int fd _unused_,
                             Answer *answer _unused_) {
    return slots_close(link->context->slots, request->slot);
}

static int serve_next_event(ServeLink *link, const KeeperRequest *request, int fd _unused_,
                            Answer *answer) {
    return slots_next(link->context->slots, request->slot, &answer->reply.slot,
                      &answer->reply.event, &answer->fd);
}

static int serve_open_file(ServeLink *link _unused_, const KeeperRequest *request, int fd _unused_,
                           Answer *answer) {
    int found = -1, r = opener_file(request, &found);

    return serve_answer_fd(answer, r, found);
}

static int serve_open_mapped(ServeLink *link _unused_, const KeeperRequest *request,
                             int fd _unused_, Answer *answer) {
    int found = -1, r = opener_mapped(request, &answer->reply.id, &found);

    return serve_answer_fd(answer, r, found);
}

static int serve_open_image(ServeLink *link _unused_, const KeeperRequest *request, int fd _unused_,
                            Answer *answer) {
    int found = -1, r = opener_image(request, &answer->reply.id, &found);

    return serve_answer_fd(answer, r, found);
}

static int serve_open_code_map(ServeLink *link _unused_, const KeeperRequest *request,
                               int fd _unused_, Answer *answer) {
    int found = -1, r = opener_code_map(request, &found);

    return serve_answer_fd(answer, r, found);
}

static int serve_open_tracefs(ServeLink *link, const KeeperRequest *request, int fd _unused_,
                              Answer *answer) {
    int found = -1, r = opener_tracefs(link->context->host, request, &found);

    return serve_answer_fd(answer, r, found);
}

static int serve_read_namespaces(ServeLink *link _unused_, const KeeperRequest *request,
                                 int fd _unused_, Answer *answer) {
    return opener_namespaces(request, answer->reply.namespaces);
}

static int serve_read_process(ServeLink *link _unused_, const KeeperRequest *request,
                              int fd _unused_, Answer *answer) {
    int found = -1, r = proc_copy_read(request, &answer->reply.slot, &found);

    return serve_answer_fd(answer, r, found);
}

static int serve_seal(ServeLink *link, const KeeperRequest *request, int fd,
                      Answer *answer _unused_) {
    return sealer_seal(link->context->host, fd, request->sensitive != 0);
}

/* The recorder still has the descriptor when it comes here, and has closed it when the next one
 * comes. */
static int serve_close(ServeLink *link, const KeeperRequest *request _unused_, int fd,
                       Answer *answer) {
    closep(&link->kept);
    link->kept = fd;
    answer->later = answer->keeps = true;
    return 0;
}

static int serve_give_listening(ServeLink *link, const KeeperRequest *request _unused_,
                                int fd _unused_, Answer *answer) {
    if (link->context->listen < 0)
        return -ENOENT;
    answer->fd = link->context->listen;
    return 0;
}

static int serve_take_over(ServeLink *link, const KeeperRequest *request _unused_, int fd _unused_,
                           Answer *answer) {
    link->is_waiting = answer->later = !link->may_take_over;
    return 0;
}

static int serve_ready(ServeLink *link, const KeeperRequest *request _unused_, int fd _unused_,
                       Answer *answer _unused_) {
    link->is_ready = true;
    return 0;
}

static int serve_status(ServeLink *link, const KeeperRequest *request _unused_, int fd _unused_,
                        Answer *answer) {
    answer->reply.n_events = slots_count(link->context->slots);
    answer->reply.restarts = link->context->restarts;
    answer->reply.upgraded = link->upgraded;
    answer->reply.slot = (serve_has_elf(link->context) ? 0 : KEEPER_LACKS_ELF) |
                         (sandbox_may_lock() ? 0 : KEEPER_LACKS_LOCKING);
    answer->reply.cpu_ns =
        clock_ns(CLOCK_PROCESS_CPUTIME_ID) + helpers_cpu_ns(&link->context->helpers);
    return 0;
}

/* clang-format off */
static const struct HandlerRow {
    Side    side;
    Handler handle;
} handlers[] = {
    [KEEPER_OPEN_LANE]       = { KEEPER, serve_open_lane       },
    [KEEPER_END_OF_LANE]     = { KEEPER, serve_end_of_lane     },
    [KEEPER_OPEN_LIFE]       = { KEEPER, serve_open_life       },
    [KEEPER_OPEN_EVENT]      = { KEEPER, serve_open_event      },
    [KEEPER_CLOSE_EVENT]     = { KEEPER, serve_close_event     },
    [KEEPER_NEXT_EVENT]      = { KEEPER, serve_next_event      },
    [KEEPER_OPEN_FILE]       = { SYSTEM, serve_open_file       },
    [KEEPER_OPEN_MAPPED]     = { IMAGES, serve_open_mapped     },
    [KEEPER_OPEN_IMAGE]      = { IMAGES, serve_open_image      },
    [KEEPER_OPEN_TRACEFS]    = { SYSTEM, serve_open_tracefs    },
    [KEEPER_READ_NAMESPACES] = { MAPS,   serve_read_namespaces },
    [KEEPER_SEAL]            = { SEALER, serve_seal            },
    [KEEPER_TAKE_OVER]       = { KEEPER, serve_take_over       },
    [KEEPER_READY]           = { KEEPER, serve_ready           },
    [KEEPER_STATUS]          = { KEEPER, serve_status          },
    [KEEPER_LISTEN]          = { KEEPER, serve_give_listening  },
    [KEEPER_OPEN_MEMORY]     = { KEEPER, serve_open_memory     },
    [KEEPER_OPEN_CODE_MAP]   = { IMAGES, serve_open_code_map   },
    [KEEPER_READ_PROCESS]    = { MAPS,   serve_read_process    },
    [KEEPER_CLOSE]           = { CLOSER, serve_close           },
};
/* clang-format on */

static_assert(ARRAY_SIZE(handlers) == KEEPER_KINDS, "a handler for each kind");

/* A recorder that asks for something forbidden is broken or compromised. It gets an error; the log
 * gets a line whenever the number of refusals has doubled. */
static int serve_refuse(ServeLink *link, const char *what, int error) {
    if ((link->refused & (link->refused + 1)) == 0)
        log_warning(error, "Refused a request of the recorder (%s): %m, %" PRIu64 " so far", what,
                    link->refused + 1);
    link->refused++;
    return error;
}

static Side serve_side_of(const ServeLink *link) {
    return link->context->slots ? KEEPER : helpers[link->lane].side;
}

static int serve_handle(ServeLink *link, const KeeperRequest *request, int fd, Answer *answer) {
    const char *name = keeper_request_name((KeeperKind)request->kind);
    const struct HandlerRow *row = &handlers[request->kind];

    if (row->side != serve_side_of(link))
        return serve_refuse(link, name, -EOPNOTSUPP);
    if (keeper_request_has_fd((KeeperKind)request->kind) != (fd >= 0))
        return serve_refuse(link, name, -EBADMSG);
    return row->handle(link, request, fd, answer);
}

/* Sending never blocks: a recorder that does not read does not need the answer. */
static int serve_send_answer(ServeLink *link, Answer *answer, int result) {
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
        r = serve_refuse(link, "malformed", r);
    else
        r = serve_handle(link, &request, fd, &answer);
    if (answer.keeps)
        fd = -1;
    return answer.later ? 0 : serve_send_answer(link, &answer, r);
}

int serve_let_go(ServeLink *link) {
    Answer answer = {.fd = -1};

    link->is_waiting = false;
    link->may_take_over = true;
    return serve_send_answer(link, &answer, 0);
}
