/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Live intervals of a sender. */

#include "send/sender-save.h"

void sender_offer(Sender *sender, Interval *interval);
