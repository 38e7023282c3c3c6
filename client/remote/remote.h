/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Calls to the daemon, for commands. All functions that return int return an ExitStatus and report
 * failures in one sentence, except remote_try(). Methods are named without their interface:
 * "ListSessions". Parameters are always consumed; json_object() means none, and NULL means that
 * building them failed, which makes the call fail. Replies contain only strings that are escaped
 * already (table_shown(), complain_shown()).
 */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/frame/command.h"

typedef struct Remote Remote;

/* Connects to the address of --socket, else to the default one. */
int remote_open(const Context *c, Remote **ret);
/* The same without messages: 0 or a negative errno; -ENOENT or -ECONNREFUSED: no daemon. */
int remote_try(const Context *c, Remote **ret);
Remote *remote_free(Remote *remote);
DEFINE_CLEANUP(Remote *, remote_free);

/* A word of the command line as a parameter; invalid UTF-8 is escaped, and then matches no name. */
json_t *remote_word(const char *word);

/* How long each reply may take; REMOTE_TIMEOUT_NS unless set; REMOTE_FOREVER. */
#define REMOTE_TIMEOUT_NS 30000000000ULL
#define REMOTE_FOREVER    UINT64_MAX
void remote_set_timeout(Remote *remote, uint64_t timeout_ns);

/* One call with one reply, which the caller owns; `ret` may be NULL. */
int remote_call(Remote *remote, const char *method, json_t *parameters, json_t **ret);

/* The same over a connection of its own; takes `parameters` also where nobody answers. */
int remote_ask(const Context *c, const char *method, json_t *parameters, json_t **ret);

/* Calls `step` for each of the names over one connection, or once with NULL where there is none. A
 * name that fails is no reason to leave out the others, a daemon that does not answer is. Returns
 * the first status that is not STATUS_OK; *ret_done is the array of what the steps put into it,
 * which is the caller's, and NULL without a connection. */
typedef int (*RemoteStep)(Context *c, Remote *remote, const char *name, void *userdata,
                          json_t **done);
int remote_for_each(Context *c, char **names, RemoteStep step, void *userdata, json_t **ret_done);

/* A call with several replies: `on_reply` gets each of them (borrowed) up to the last one, or until
 * it returns something other than STATUS_OK, which is then returned; the connection is unusable
 * after that. */
typedef int (*RemoteReply)(void *userdata, const json_t *reply);
int remote_each(Remote *remote, const char *method, json_t *parameters, RemoteReply on_reply,
                void *userdata);

/* The same, with `member` of each reply collected in an array that the caller owns. */
int remote_list(Remote *remote, const char *method, json_t *parameters, const char *member,
                json_t **ret);
/* The same over a connection of its own; takes `parameters` also where nobody answers. */
int remote_ask_list(const Context *c, const char *method, json_t *parameters, const char *member,
                    json_t **ret);

/* A call whose reply is followed by bytes: use remote_read() until it returns 0, or a negative
 * errno. The reply has their number ("bytes"). */
int remote_upgrade(Remote *remote, const char *method, json_t *parameters, json_t **ret);
/* From now on this error of the daemon is an answer too: it is not reported, and the status is
 * STATUS_NOT_FOUND. The name is borrowed. */
void remote_expect(Remote *remote, const char *error);
ssize_t remote_read(Remote *remote, void *buffer, size_t n);
/* Instead of remote_read(): hands over the descriptor, see connection_take_fd(). */
int remote_take_fd(Remote *remote, unsigned timeout_s);

/* For calls that print no messages when they fail. */
typedef struct Connection Connection;
Connection *remote_connection(Remote *remote);
