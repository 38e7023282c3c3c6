/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The backlog of a sender. */

#include "send/sender-save.h"

/* Asks profd for what is next, if anything is. */
void sender_read_backlog(Sender *sender);
LossCounts sender_losses(const Sender *sender);
/* Logs what became too old or was deleted, if anything did. */
void sender_note_losses(Sender *sender);
