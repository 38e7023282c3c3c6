/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Answers the requests of one recorder, one at a time. */

#include "keeper/rights/helper.h"
#include "keeper/rights/keeper-host.h"
#include "keeper/serve/slot.h"

/* What consecutive recorders share. */
typedef struct ServeContext {
    const KeeperHost *host;
    Slots *slots;
    int life;   /* a descriptor that becomes readable when the keeper ends */
    int listen; /* the control socket; -1: none */
    uint32_t restarts;
    const char *elf; /* path of the program that reads ELF files; NULL: it is not installed */
    Helpers helpers; /* living helpers; call serve_helper_ended() when one is reaped */
} ServeContext;

typedef struct ServeLink {
    ServeContext *context;
    int fd;             /* -1: gone */
    int kept;           /* what a helper is to close, until the next one comes; -1: none */
    KeeperLane lane;    /* in a helper: its own lane */
    bool may_take_over; /* no other recorder runs that it would have to wait for */
    bool upgraded;
    bool is_waiting; /* it asked to take over; serve_let_go() answers */
    bool is_ready;
    struct {
        pid_t pid;  /* of the last one; 0: none, or it is reaped */
        int status; /* its wait() status */
    } lanes[KEEPER_LANES];
    uint64_t refused;
} ServeLink;

/* Receives and answers one request; the socket must be readable. -EPIPE: the recorder is gone. */
int serve_request(ServeLink *link);
/* Whether the reaped process was a helper of this link; its status is kept. */
bool serve_helper_ended(ServeLink *link, pid_t pid, int status);
/* Tells the waiting recorder that it may take over now. */
int serve_let_go(ServeLink *link);
