/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Deliveries of a sender, and what follows from how they end. */

#include "send/sender-save.h"

/* Sets `events`. */
void sender_listen(Sender *sender);
/* Begins to send the interval. If that fails, *ret stays NULL, and the list still has the interval.
 */
void sender_deliver(Sender *sender, Interval *interval, uint64_t delay_ns, Delivery **ret);
void sender_on_problem(void *userdata, const DeliveryProblem *problem);
/* Whether a part of the range is being read or sent. */
bool sender_is_under_way(const Sender *sender, Range range);
/* A span is done, but for times that came again meanwhile. True: there are such. */
bool sender_settle(Sender *sender, Range range);
