/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The control socket: connections, messages, limits, authorisation, introspection. This room does
 * not know what the methods do: the daemon passes a table of them, which must agree with the
 * interface. Everything here runs on the main thread.
 */

#include <jansson.h>
#include <sys/types.h>

#include "control/right.h"
#include "loop/loop.h"
#include "util/bytes.h"

/*
 * A call in progress. Its parameters were checked against the interface: required ones are present,
 * each has its type, and there are no others. The call must end with exactly one call_reply…(),
 * call_fail…() or call_stream(). Until then it may wait for any time, and its connection does not
 * count as idle. All these functions take ownership of their json_t.
 */
typedef struct Call Call;

const Peer *call_peer(const Call *call);
/* The parameters: an object, borrowed until the call ends. */
json_t *call_parameters(const Call *call);
/* Whether the client accepts several replies. */
bool call_wants_more(const Call *call);
/* A number that is unique to the connection and never reused. */
uint64_t call_connection(const Call *call);

/* Sends the last reply and frees the call. NULL parameters mean that memory ran out; the call then
 * fails. Returns 0, for the handler to return. */
int call_reply(Call *call, json_t *parameters);
/* Sends one of several replies. -EPIPE: the client is gone; -ENOBUFS: the client does not read, so
 * nothing was sent. The call goes on in both cases. */
int call_continue(Call *call, json_t *parameters);
/* An `error` without a dot is one of io.profd.Control. Frees the call. Returns 0, for the handler
 * to return. */
int call_fail(Call *call, const char *error, json_t *parameters);
/* Fails with the standard error InvalidParameter and adds a reason, a clause with a subject and a
 * verb. Clients that do not know this field ignore it. */
int call_fail_parameter(Call *call, const char *parameter, const char *reason);
/*
 * Streams one reply for each object that next() returns (1: an object; 0: the end; a negative errno
 * ends the call as Failed), as fast as the client reads. Sends one reply without parameters if
 * there are no objects. Calls free() at the end, also when the client goes away. Suitable for lists
 * of any length.
 */
int call_stream(Call *call, int (*next)(void *userdata, json_t **ret), void (*free)(void *userdata),
                void *userdata);
/*
 * For upgraded calls: sends the reply, then `bytes` bytes of fd from its start, on a thread of its
 * own, then closes the connection. Takes ownership of fd and frees the call. Fails with Busy if too
 * many transfers run. Returns 1: the transfer has begun, and resources for it can be released when
 * the connection ends; 0: it has not, and the connection may stay open.
 */
int call_reply_file(Call *call, json_t *parameters, int fd, uint64_t bytes);
/* Where a stream goes. `socket` is for poll() only: POLLHUP and POLLRDHUP mean that the client is
 * gone; -1: it is gone already. send() waits for the client, and not for ever; a negative errno
 * means that it takes no more. */
typedef struct CallSink {
    int socket;
    int (*send)(void *to, Bytes bytes);
    void *to;
} CallSink;
/* Runs on a thread of its own until there is no more to send. */
typedef struct CallStream {
    void (*run)(void *userdata, const CallSink *sink);
    void *userdata;
} CallStream;
/* Likewise with a stream; the number of streams is up to the caller. 1: run() is called in any
 * case. */
int call_reply_stream(Call *call, json_t *parameters, const CallStream *stream);
/* on_gone is called once, just before the call is freed because the client went away or the daemon
 * ends; it must stop the work for this call. */
void call_on_gone(Call *call, void (*on_gone)(void *userdata), void *userdata);

/* Makes the call end together with its client even if it is oneway; for calls whose wait the client
 * chooses. Other oneway calls outlive their client. */
void call_end_with_client(Call *call);

/* The mode in which a method must be called. */
typedef enum MethodMode {
    METHOD_PLAIN,    /* one reply, with or without `more` */
    METHOD_MAY_MORE, /* the handler asks call_wants_more() */
    METHOD_MORE,     /* refused without `more` */
    METHOD_UPGRADE,  /* refused without `upgrade`; must end with call_reply_file(),
                      * call_reply_stream()  or call_fail() */
} MethodMode;

typedef struct ControlMethod {
    const char *name; /* for example "Ping" */
    Right right;
    MethodMode mode;
    bool changes; /* each call is logged with uid and pid */
    /* Returns 0; a negative errno ends the call as Failed, unless it has ended already. */
    int (*run)(void *userdata, Call *call);
} ControlMethod;

typedef struct ControlOptions {
    Loop *loop;
    int fd; /* the listening socket; taken */
    const ControlMethod *methods;
    size_t n_methods;
    Groups groups;
    const char *version;
    uint64_t idle_ns; /* 0: the default of 45 s */
    /* May be NULL. */
    void (*on_connection_gone)(void *userdata, uint64_t connection);
    /* Takes over a connection in which descriptors wait: closing it may take for ever. */
    void (*dispose)(void *userdata, int fd);
    void *userdata;
} ControlOptions;

typedef struct Control Control;

/* -EINVAL, which is logged: a method of io.profd.Control has no row, or a row has no method. */
int control_new(const ControlOptions *options, Control **ret);
/* Frees waiting calls and calls their on_gone(). */
Control *control_free(Control *control);
DEFINE_CLEANUP(Control *, control_free);
