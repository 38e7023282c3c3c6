/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Prints sessions of the daemon for people. */

#include <jansson.h>

#include "client/frame/screen.h"

/* The colour of a session's state, which depends on whether it is degraded. */
Color session_color(const json_t *session);
/* Whether it is meant to record and records nothing. */
bool session_records_nothing(const json_t *session);
/* Appends what the whole daemon does, and since when: "0.1.0 on db4: recording since …". */
void session_put_title(Buffer *out, const json_t *status, uint64_t now_us);
/* Prints a block on a screen; `whole`: with details for a user who asked for this session. */
void session_show(const Screen *s, const json_t *session, bool whole, uint64_t now_us);
/* Appends a reason for being degraded: its meaning, its remedy, and its name. */
void session_put_reason(Buffer *out, const json_t *reason);
/* Prints reasons with their remedies for any object with a member "degraded"; if it has sessions
 * too, only the reasons that none of them has. */
void session_show_degraded(const Screen *s, const json_t *object);
