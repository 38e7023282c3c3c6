/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of this room share: the socket, who is connected to it, and what they called. */

#include "control/control.h"
#include "protocol/interface.h"
#include "protocol/message.h"
#include "util/clock.h"

#define CONTROL_TICK_NS NS_PER_SECOND
#define CONTROL_RATE_NS 60000000000ULL /* in which so many lines of a kind are logged */

enum {
    CALLER_READ_BYTES =
        64 * 1024, /* at a time; buffers that grew beyond twice that are given back */
    /* Output that waits for a client beyond this holds up lists, and what it called next. */
    OUTPUT_PAUSE_BYTES = 64 * 1024,
    /* Beyond this a stream that cannot wait is not told any more. */
    OUTPUT_MAX_BYTES = 1 << 20,
};

typedef struct Caller Caller;
typedef struct Transfer Transfer;

struct Call {
    Caller *caller;
    const ControlMethod *method; /* NULL: of org.varlink.service */
    Interface *interface;        /* borrowed */
    const char *member;          /* "Ping", within the message */
    json_t *message;
    json_t *parameters; /* within the message, or `nothing` */
    json_t *nothing;
    bool more, oneway, upgrade;
    bool is_audited;       /* what becomes of it is logged */
    bool ends_with_client; /* although it is oneway */
    void (*on_gone)(void *userdata);
    void *gone_userdata;
    /* call_stream() */
    int (*next)(void *userdata, json_t **ret);
    void (*free_stream)(void *userdata);
    void *stream_userdata;
    json_t *held; /* sent when it is known whether another follows */
};

/* One connection. */
struct Caller {
    Control *control;
    Caller *next, *previous;
    uint64_t number;
    Peer peer;
    int fd;
    LoopSource *readable, *writable, *turn;
    Buffer in;
    size_t taken;   /* of `in`: messages that were handled */
    size_t scanned; /* of `in`: holds no NUL behind `taken` */
    Buffer out;
    size_t sent; /* of `out` */
    Call *call;  /* NULL: none is under way */
    Transfer *transfer;
    uint64_t idle_since_ns;  /* when something was last under way */
    uint64_t stuck_since_ns; /* when output last moved, while some waits */
    bool has_ended;          /* the other end sends no more */
    bool is_gone;            /* nor does it read */
    bool is_ending;          /* as soon as its output is out */
    bool is_done;
    bool is_awake;    /* its turn comes */
    uint64_t cost_ns; /* of the last message, on a CPU */
    Caller *next_heavy;
    bool is_heavy; /* it waits among those whose messages take long */
};

struct Control {
    ControlOptions options;
    Interface *interface, *service;
    LoopSource *listening, *tick, *heavy_turn;
    bool has_tick;
    Caller *callers, *heavy; /* the latter in order of coming */
    uint64_t heavy_from_ns;  /* the next of them is not handled before */
    uint64_t connections;    /* so far */
    uint64_t idle_ns;
};

/* A connection that was taken; fd is the caller's from here on. */
int caller_new(Control *control, int fd, const Peer *peer);
Caller *caller_free(Caller *caller);
/* What is ready to be done is done in its turn, behind what others do. */
void caller_wake(Caller *caller);
/* The first of those whose messages take long. */
int caller_on_heavy_turn(void *control);
/* Queues a message; beyond `limit` bytes that wait: -ENOBUFS. */
int caller_send(Caller *caller, const json_t *message, size_t limit);
size_t caller_waiting(const Caller *caller);
/* As much as the socket takes. */
void caller_flush(Caller *caller);
/* Drops what is left to send, and the memory of long replies. */
void caller_drop_output(Caller *caller);
/* Once a second: ends what idles, is stuck, or went away unseen. */
void caller_tick(Caller *caller, uint64_t now_ns);
/* Whether a file may be sent to it now. */
bool caller_may_transfer(const Caller *caller);
/* Its output, then the file, then its end. */
int caller_transfer(Caller *caller, int fd, uint64_t bytes);

/* Handles a message: it becomes the caller's call, or is answered right away. */
int call_begin(Caller *caller, Bytes bytes);
/* Sends some of a stream: 1 when there is more to send. */
int call_pump(Call *call);
void call_fail_errno(Call *call, int error);
/* The other end is gone. */
Call *call_abandon(Call *call);
/* "io.profd.Control.BadMessage" for what is no call. */
int call_refuse_message(Caller *caller, MessageFault fault);

/* org.varlink.service */
int service_call(Call *call);

typedef struct TransferOptions {
    Loop *loop;
    int socket;   /* borrowed; nobody else writes to it */
    Buffer first; /* sent before the file; taken */
    int fd;       /* taken */
    uint64_t bytes, stuck_ns;
    int (*on_end)(void *userdata); /* on the main thread */
    void *userdata;
} TransferOptions;

/* Sends bytes of a file on a thread of its own. */
int transfer_new(const TransferOptions *options, Transfer **ret);
/* The threads that send a file, also those whose client is gone and that hang in a read. */
unsigned transfer_running(void);
/* Cuts off a transfer that has not ended, and does not wait for its thread. */
Transfer *transfer_free(Transfer *transfer);
