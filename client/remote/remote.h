/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Calls to the daemon, for commands. All functions that return int return an ExitStatus; what
 * failed was said in one sentence, but by remote_try(). Methods are named without their interface:
 * "ListSessions". Parameters are taken, whatever comes of the call; json_object() means none,
 * and NULL that they could not be made, which fails the call. What comes
 * back holds only strings that are safe to show as they are (table_shown(), complain_shown()).
 */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/frame/command.h"

typedef struct Remote Remote;

/* Where --socket says, else at its place. */
int remote_open(const Context *c, Remote **ret);
/* The same without a word: 0 or a negative errno; -ENOENT or -ECONNREFUSED: no daemon. */
int remote_try(const Context *c, Remote **ret);
Remote *remote_free(Remote *remote);
DEFINE_CLEANUP(Remote *, remote_free);

/* A word of the command line as a parameter; what is no UTF-8 is escaped, which no name can be. */
json_t *remote_word(const char *word);

/* How long each reply may take, REMOTE_TIMEOUT_NS unless set; REMOTE_FOREVER. */
#define REMOTE_TIMEOUT_NS 30000000000ULL
#define REMOTE_FOREVER    UINT64_MAX
void remote_set_timeout(Remote *remote, uint64_t timeout_ns);

/* One call, one reply, which is the caller's; `ret` may be NULL. */
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

/* A call with several replies: `on_reply` gets each of them (borrowed) until one is the last or
 * it returns something else than STATUS_OK, which is then returned, and the connection is of no
 * more use. */
typedef int (*RemoteReply)(void *userdata, const json_t *reply);
int remote_each(Remote *remote, const char *method, json_t *parameters, RemoteReply on_reply,
                void *userdata);

/* The same, with `member` of each reply gathered in an array, which is the caller's. */
int remote_list(Remote *remote, const char *method, json_t *parameters, const char *member,
                json_t **ret);
/* The same over a connection of its own; takes `parameters` also where nobody answers. */
int remote_ask_list(const Context *c, const char *method, json_t *parameters, const char *member,
                    json_t **ret);

/* A call whose reply is followed by bytes: remote_read() up to 0 at their end, or a negative
 * errno. The number announced is in the reply ("bytes"). */
int remote_upgrade(Remote *remote, const char *method, json_t *parameters, json_t **ret);
ssize_t remote_read(Remote *remote, void *buffer, size_t n);

/* For calls that say nothing when they fail. */
typedef struct Connection Connection;
Connection *remote_connection(Remote *remote);
