/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Sessions of the daemon as people read them. */

#include <jansson.h>

#include "client/frame/screen.h"

/* Of a session's state, given whether it is degraded. */
Color session_color(const json_t *session);
/* A block of a screen; `whole`: with what only who looks at this one session wants to know. */
void session_show(const Screen *s, const json_t *session, bool whole, uint64_t now_us);
/* A reason why something is degraded: what it means, what helps, and its name. */
void session_put_reason(Buffer *out, const json_t *reason);
/* Reasons with their remedies, of anything that has a member "degraded"; where it has sessions
 * too, those reasons that none of them names. */
void session_show_degraded(const Screen *s, const json_t *object);
