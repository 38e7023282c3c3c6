/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Requests of one recorder, answered one at a time. */

#include "keeper/host.h"
#include "keeper/slot.h"

/* What all recorders share, one after the other. */
typedef struct ServeContext {
    const KeeperHost *host;
    Slots *slots;
    int life;   /* a descriptor that changes when the keeper ends */
    int listen; /* the control socket; -1: none */
    uint32_t restarts;
    unsigned openers; /* that live; whoever reaps them counts them down */
} ServeContext;

typedef struct ServeLink {
    ServeContext *context;
    int fd;             /* -1: gone */
    bool may_take_over; /* nobody runs whom it would have to wait for */
    bool upgraded;
    bool is_waiting; /* asked to take over; serve_let_go() answers */
    bool is_ready;
    pid_t opener; /* the last one; 0: none, or it is reaped */
    uint64_t refused;
} ServeLink;

/* Receives and answers a request; it was seen to be readable. -EPIPE: the recorder is gone. */
int serve_request(ServeLink *link);
/* It may take over now. */
int serve_let_go(ServeLink *link);
