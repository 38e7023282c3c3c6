/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The life of a sender; its live intervals are in sender-offer.h. */

#include "send/sender-save.h"

/* The members up to `settings` are set, and the state is loaded. */
int sender_start(Sender *sender);
/* Gives up what is in flight and writes the state. */
void sender_stop(Sender *sender);
