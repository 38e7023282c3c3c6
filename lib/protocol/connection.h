/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A client's side of a Varlink connection: calls, one at a time, and their replies. */

#include <jansson.h>

#include "util/macro.h"

#define CONNECTION_DEFAULT_PATH "/run/profd/io.profd.Control"

typedef struct Connection Connection;

/* path NULL: the default one; it may have any length. -ENOENT or -ECONNREFUSED: no daemon; -EACCES;
 * -EAGAIN: too many clients have been connecting for seconds. */
int connection_open(const char *path, Connection **ret);
Connection *connection_free(Connection *connection);
DEFINE_CLEANUP(Connection *, connection_free);

typedef enum CallFlags { CALL_MORE = 1, CALL_ONEWAY = 2, CALL_UPGRADE = 4 } CallFlags;

/* `method` is a full name like "io.profd.Control.Ping". Takes ownership of parameters (NULL: none).
 * Waits at most timeout_ns until the call is sent. */
int connection_call(Connection *connection, const char *method, json_t *parameters, unsigned flags,
                    uint64_t timeout_ns);

typedef struct Reply {
    json_t *parameters; /* an object; owned by the connection until the next reply or call */
    const char *error;  /* NULL: none; else like "io.profd.Control.NoSuchSession"; borrowed like
                         * parameters */
    bool continues;     /* more replies follow */
} Reply;

/*
 * Waits at most timeout_ns (UINT64_MAX: for ever), or until a signal (-EINTR); -ETIMEDOUT; -EPIPE:
 * closed; -EBADMSG: not Varlink, or not a valid reply of the last method (from a daemon of another
 * version). Fields that a newer daemon has added are ignored.
 */
int connection_receive(Connection *connection, uint64_t timeout_ns, Reply *ret);
/* After the reply to an upgraded call: reads raw bytes, 0 at their end, or a negative errno; waits
 * like connection_receive(). */
ssize_t connection_read(Connection *connection, void *buffer, size_t n, uint64_t timeout_ns);
/* Likewise: hands over the descriptor of the socket, which then blocks; a read fails with -EAGAIN
 * after so many seconds without a byte. The connection can only be freed after that. */
int connection_take_fd(Connection *connection, unsigned timeout_s);
/* The descriptor, borrowed, so that another thread can shut the socket down. */
int connection_fd(const Connection *connection);
