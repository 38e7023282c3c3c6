/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Events that are known by their name alone. */

#include "capture/event/event-near.h"
#include "capture/event/event-spec.h"

/* -ENOENT: no such name; else the spec's type and config. */
int event_symbol(Bytes name, EventSpec *spec);
/* `auto` and its terms, with the name of the counter that it stands for. */
char *event_auto_name(Bytes text);
/* "r1a8". */
int event_raw(Bytes name, uint64_t *ret_config);
/* Whether perf counts this name by itself, so that it cannot be sampled. */
bool event_is_tool(Bytes name);
/* Each name that is the same on every machine: software, hardware and cache events. */
void event_each_symbol(void (*on_name)(void *userdata, const char *name), void *userdata);
/* Offers all of these names. */
void event_near_offer_symbols(EventNear *near);
