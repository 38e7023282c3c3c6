/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The files in which a destination keeps its state. */

#include "send/send-state.h"

/* FOLDER/NAME.json. -ENOENT: there is none. A damaged file is renamed to NAME.json.damaged, and
 * -EBADMSG returned. */
int state_file_load(const char *folder, const char *name, SendState *ret, const char **ret_problem);
/* Replaces the file; after a power failure it is the old one or the new one. */
int state_file_save(const char *folder, const char *name, const SendState *state);
/* How many requests are in flight, in FOLDER/NAME.flight: it survives a kill, and needs no disk. */
int state_file_note_flights(const char *folder, const char *name, unsigned n);
unsigned state_file_flights(const char *folder, const char *name);
/* Whether this name of a destination can be that of a file. */
bool state_file_is_name(const char *name);
