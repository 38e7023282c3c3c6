/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Requests of one recorder, answered one at a time. */

#include "keeper/rights/helper.h"
#include "keeper/rights/keeper-host.h"
#include "keeper/serve/slot.h"

/* What all recorders share, one after the other. */
typedef struct ServeContext {
    const KeeperHost *host;
    Slots *slots;
    int life;   /* a descriptor that changes when the keeper ends */
    int listen; /* the control socket; -1: none */
    uint32_t restarts;
    const char *elf; /* the program that reads ELF files; NULL: it is not there */
    Helpers helpers; /* that live; whoever reaps them says so by serve_helper_ended() */
} ServeContext;

typedef struct ServeLink {
    ServeContext *context;
    int fd;             /* -1: gone */
    KeeperLane lane;    /* in a helper: which one this is */
    bool may_take_over; /* nobody runs whom it would have to wait for */
    bool upgraded;
    bool is_waiting; /* asked to take over; serve_let_go() answers */
    bool is_ready;
    struct {
        pid_t pid;  /* the last one's; 0: none, or it is reaped */
        int status; /* with which it ended */
    } lanes[KEEPER_LANES];
    uint64_t refused;
} ServeLink;

/* Receives and answers a request; it was seen to be readable. -EPIPE: the recorder is gone. */
int serve_request(ServeLink *link);
/* Whether the process that was reaped was a helper of this link; how it ended is kept. */
bool serve_helper_ended(ServeLink *link, pid_t pid, int status);
/* It may take over now. */
int serve_let_go(ServeLink *link);
