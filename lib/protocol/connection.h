/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A client's end of a Varlink connection: calls, one at a time, and their replies. */

#include <jansson.h>

#include "util/macro.h"

#define CONNECTION_DEFAULT_PATH "/run/profd/io.profd.Control"

typedef struct Connection Connection;

/* path NULL: the default one; of any length. -ENOENT or -ECONNREFUSED: no daemon; -EACCES; -EAGAIN:
 * too many others wait for it, for seconds. */
int connection_open(const char *path, Connection **ret);
Connection *connection_free(Connection *connection);
DEFINE_CLEANUP(Connection *, connection_free);

typedef enum CallFlags { CALL_MORE = 1, CALL_ONEWAY = 2, CALL_UPGRADE = 4 } CallFlags;

/* `method` as in "io.profd.Control.Ping". Takes parameters (NULL: none). Waits at most timeout_ns
 * for the other end to take it. */
int connection_call(Connection *connection, const char *method, json_t *parameters, unsigned flags,
                    uint64_t timeout_ns);

typedef struct Reply {
    json_t *parameters; /* an object; the connection's, until the next reply or call */
    const char *error;  /* NULL: none; else "io.profd.Control.NoSuchSession"; as parameters */
    bool continues;     /* more replies follow */
} Reply;

/*
 * Waits at most timeout_ns (UINT64_MAX: for ever), or until a signal (-EINTR); -ETIMEDOUT, -EPIPE:
 * closed, -EBADMSG: no Varlink, or no reply that the method called last can have (a daemon of
 * another version). Fields that a newer daemon added are passed over.
 */
int connection_receive(Connection *connection, uint64_t timeout_ns, Reply *ret);
/* After the reply to an upgraded call: raw bytes, 0 at their end, or a negative errno; waits as
 * connection_receive() does. */
ssize_t connection_read(Connection *connection, void *buffer, size_t n, uint64_t timeout_ns);
