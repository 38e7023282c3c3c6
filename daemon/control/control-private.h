/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of this room share: the control socket, its connections and their calls. */

#include <sys/queue.h>

#include "control/control.h"
#include "protocol/interface.h"
#include "protocol/message.h"
#include "util/clock.h"

#define CONTROL_TICK_NS NS_PER_SECOND
#define CONTROL_RATE_NS 60000000000ULL /* the period of all log rate limits */

enum {
    CALLER_READ_BYTES = 64 * 1024, /* read at a time; a buffer that grew beyond twice this size is
                                    * freed when empty */
    /* While more output than this waits for a client, its lists and later calls pause. */
    OUTPUT_PAUSE_BYTES = 64 * 1024,
    /* Beyond this, replies of a stream that cannot wait are dropped. */
    OUTPUT_MAX_BYTES = 1 << 20,
};

typedef struct Caller Caller;
typedef struct Transfer Transfer;

struct Call {
    Caller *caller;
    const ControlMethod *method; /* NULL: a method of org.varlink.service */
    Interface *interface;        /* borrowed */
    const char *member;          /* for example "Ping"; points into the message */
    json_t *message;
    json_t *parameters; /* points into the message or to `nothing` */
    json_t *nothing;
    bool more, oneway, upgrade;
    bool is_audited;       /* its outcome will be logged */
    bool ends_with_client; /* even if it is oneway */
    void (*on_gone)(void *userdata);
    void *gone_userdata;
    /* For call_stream(): */
    int (*next)(void *userdata, json_t **ret);
    void (*free_stream)(void *userdata);
    void *stream_userdata;
    json_t *held; /* sent when it is known whether another reply follows */
};

/* One connection. */
struct Caller {
    Control *control;
    LIST_ENTRY(Caller) list;
    uint64_t number;
    Peer peer;
    int fd;
    LoopSource *readable, *writable, *turn;
    Buffer in;
    size_t taken;   /* bytes of `in` that belong to handled messages */
    size_t scanned; /* bytes of `in` that are known to hold no NUL after `taken` */
    Buffer out;
    size_t sent; /* bytes of `out` that are sent */
    Call *call;  /* NULL: no call is in progress */
    Transfer *transfer;
    bool streams;            /* it is no file */
    uint64_t idle_since_ns;  /* when the last call or transfer ended */
    uint64_t stuck_since_ns; /* when the socket last took output that waits */
    bool has_ended;          /* the client sends no more */
    bool is_gone;            /* the client does not read either */
    bool is_ending;          /* close it when its output is sent */
    bool is_done;
    bool is_awake;    /* its turn is scheduled */
    uint64_t cost_ns; /* CPU time of the last message */
    TAILQ_ENTRY(Caller) heavy;
    bool is_heavy; /* in the queue of heavy messages */
};

struct Control {
    ControlOptions options;
    Interface *interface, *service;
    LoopSource *listening, *tick, *heavy_turn;
    bool has_tick;
    LIST_HEAD(, Caller) callers;
    TAILQ_HEAD(CallerQueue, Caller) heavy; /* those with a heavy message, in order */
    uint64_t heavy_from_ns;                /* no heavy message is handled before this time */
    uint64_t connections;                  /* the number of connections so far */
    uint64_t idle_ns;
};

/* A new connection; takes ownership of fd. */
int caller_new(Control *control, int fd, const Peer *peer);
Caller *caller_free(Caller *caller);
/* Schedules a turn for the connection, behind those of others. */
void caller_wake(Caller *caller);
/* Handles the first heavy message. */
int caller_on_heavy_turn(void *control);
/* Queues a message. -ENOBUFS: more than `limit` bytes wait already. */
int caller_send(Caller *caller, const json_t *message, size_t limit);
size_t caller_waiting(const Caller *caller);
/* Sends as much as the socket takes. */
void caller_flush(Caller *caller);
/* Drops unsent output and frees the buffer of a long reply. */
void caller_drop_output(Caller *caller);
/* Called once a second: closes a connection that is idle, stuck, or gone without notice. */
void caller_tick(Caller *caller, uint64_t now_ns);
/* Whether another file may be sent to it now. */
bool caller_may_transfer(const Caller *caller);
/* Sends the waiting output, then the file, then closes the connection. */
int caller_transfer(Caller *caller, int fd, uint64_t bytes, const CallStream *stream);

/* Handles a message: makes it the connection's call, or answers at once. */
int call_begin(Caller *caller, Bytes bytes);
/* Sends a part of a stream; 1: more is left to send. */
int call_pump(Call *call);
void call_fail_errno(Call *call, int error);
/* Frees the call of a client that is gone. */
Call *call_abandon(Call *call);
/* Refuses a message that is not a call, with "io.profd.Control.BadMessage". */
int call_refuse_message(Caller *caller, MessageFault fault);

/* Handles calls of org.varlink.service. */
int service_call(Call *call);

typedef struct TransferOptions {
    Loop *loop;
    int socket;   /* borrowed; only the transfer may write to it */
    Buffer first; /* sent before the file; taken */
    int fd;       /* taken */
    uint64_t bytes, stuck_ns;
    CallStream stream; /* instead of a file; its userdata stays with the caller if this fails */
    int (*on_end)(void *userdata); /* runs on the main thread */
    void *userdata;
} TransferOptions;

/* Sends a part of a file, on a thread of its own. */
int transfer_new(const TransferOptions *options, Transfer **ret);
/* The number of sending threads, including those that hang in a read although their client is
 * gone. */
unsigned transfer_running(void);
/* Cuts off a running transfer without waiting for its thread. */
Transfer *transfer_free(Transfer *transfer);
