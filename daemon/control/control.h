/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The control socket: connections, frames, limits, authorisation, introspection. What methods do
 * is not known here: the daemon brings one table of them, which has to agree with the interface.
 * All of it lives on the main thread.
 */

#include <jansson.h>
#include <sys/types.h>

#include "control/right.h"
#include "loop/loop.h"

/*
 * A call under way. Its parameters were checked against the interface: those that it demands are
 * there, each of its type, and no other. It ends by exactly one call_reply…(), call_fail…() or
 * call_stream(); until then it may wait for as long as it likes, and its connection is not idle.
 * All of these take their json_t.
 */
typedef struct Call Call;

const Peer *call_peer(const Call *call);
/* An object; borrowed, until the call ends. */
json_t *call_parameters(const Call *call);
/* Several replies may be given. */
bool call_wants_more(const Call *call);
/* A number of its own for each connection, never used again. */
uint64_t call_connection(const Call *call);

/* The last reply; NULL, for want of memory, makes it Failed. Frees the call. 0, for handlers to
 * return. */
int call_reply(Call *call, json_t *parameters);
/* One of several. -EPIPE: nobody waits any more; -ENOBUFS: the client does not read, and it was not
 * sent. The call lives on in both cases. */
int call_continue(Call *call, json_t *parameters);
/* `error` without a dot is one of io.profd.Control. Frees the call. 0, for handlers to return. */
int call_fail(Call *call, const char *error, json_t *parameters);
/* The standard InvalidParameter, and beside the parameter the reason, a clause with a subject and a
 * verb. Clients that know of no reason look past it. */
int call_fail_parameter(Call *call, const char *parameter, const char *reason);
/*
 * A reply for each object that next() gives (1 and the object; 0: no more; a negative errno ends
 * the call as Failed), as fast as the client reads; one without parameters where there is none.
 * free() follows, also when the client went away. For lists of any length.
 */
int call_stream(Call *call, int (*next)(void *userdata, json_t **ret), void (*free)(void *userdata),
                void *userdata);
/*
 * Of upgraded calls: the reply, then `bytes` of fd from its start (taken), on a thread of its own,
 * then the connection ends; Busy where too many are sent already. Frees the call. 1: the file is
 * under way, and what its reader holds may go when the connection does; 0: it is not, and the
 * connection may live on.
 */
int call_reply_file(Call *call, json_t *parameters, int fd, uint64_t bytes);
/* Called once, just before the call is freed because the client went away or the daemon ends:
 * whatever works for it stops. */
void call_on_gone(Call *call, void (*on_gone)(void *userdata), void *userdata);

/* From here on it ends with its client even where no reply is to be given: for what may wait for as
 * long as somebody says. Calls without a reply live on by themselves else. */
void call_end_with_client(Call *call);

/* How a method has to be called. */
typedef enum MethodMode {
    METHOD_PLAIN,    /* one reply, `more` or not */
    METHOD_MAY_MORE, /* call_wants_more() tells */
    METHOD_MORE,     /* refused without `more` */
    METHOD_UPGRADE,  /* refused without `upgrade`; ends by call_reply_file() or call_fail() */
} MethodMode;

typedef struct ControlMethod {
    const char *name; /* "Ping" */
    Right right;
    MethodMode mode;
    bool changes; /* told in the log with uid and pid */
    /* 0; a negative errno ends the call as Failed, unless it has ended. */
    int (*run)(void *userdata, Call *call);
} ControlMethod;

typedef struct ControlOptions {
    Loop *loop;
    int fd; /* listening; taken */
    const ControlMethod *methods;
    size_t n_methods;
    Groups groups;
    const char *version;
    uint64_t idle_ns; /* 0: 45 s */
    /* May be NULL. */
    void (*on_connection_gone)(void *userdata, uint64_t connection);
    void *userdata;
} ControlOptions;

typedef struct Control Control;

/* -EINVAL, and told in the log: a method of io.profd.Control has no row, or a row no method. */
int control_new(const ControlOptions *options, Control **ret);
/* Calls that wait go, their on_gone() is called. */
Control *control_free(Control *control);
DEFINE_CLEANUP(Control *, control_free);
