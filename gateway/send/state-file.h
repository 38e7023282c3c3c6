/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The files in which a destination keeps its state. */

#include "send/send-state.h"

#define STATE_SUFFIX ".json"

/* FOLDER/NAME.json. -ENOENT: there is none. A damaged file is renamed to NAME.json.damaged, and
 * -EBADMSG returned. */
int state_file_load(const char *folder, const char *name, SendState *ret, const char **ret_problem);
/* Replaces FOLDER/NAME and its suffix, which is STATE_SUFFIX here, by this text; after a power
 * failure it is the old one or the new one. */
int state_file_save(const char *folder, const char *name, const char *suffix, const Buffer *text);
/* FOLDER/NAME.flight has the number of requests whose end is not in the state yet. It changes
 * often, so it is not synced: it survives a kill. Opens it for state_file_put_flights(); a negative
 * errno. */
int state_file_open_flights(const char *folder, const char *name);
void state_file_put_flights(int fd, unsigned n);
/* As it was left; 0 if there is none. */
unsigned state_file_flights(const char *folder, const char *name);
/* Whether this name of a destination can be that of a file. */
bool state_file_is_name(const char *name);
