/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A sender decides what its destination gets and when. This part writes its state to the disk, and
 * has what the other parts need. They use the struct, and destination.c makes it. */

#include "send/backlog.h"
#include "send/delivery.h"
#include "send/loss-note.h"
#include "source/source.h"
#include "util/log.h"

enum { SENDER_LIVE_MAX = 2 };

typedef struct Sender {
    const SendConfig *config;
    const char *state_folder;
    Source *source;
    uint64_t window_pause_ns; /* 0: the default one */
    BacklogRules rules;
    uint64_t spread_ns; /* how long after its end a live interval is sent */
    DeliverySettings settings;
    DeliveryEvents events;
    SendState state;
    LoopSource *timer;
    Delivery *live[SENDER_LIVE_MAX], *backlog;
    SourceJob *job; /* reads `window` for the backlog */
    Range window;
    Range again;      /* its time came again while a part of it was read or sent: another window */
    DiskJob *save;    /* a state that is being written */
    bool is_dirty;    /* it is not the last one */
    int flights_fd;   /* the note of flights + unsaved */
    unsigned flights; /* requests in flight */
    unsigned unsaved; /* requests that were answered since the last state that was written */
    unsigned saving;  /* of them, those whose end is in the state that is being written */
    uint64_t newest_ns;  /* end of the newest interval that was sent, refused or left out */
    unsigned failures;   /* of the engine, in a row */
    uint64_t wait_ns;    /* nothing is sent before; CLOCK_MONOTONIC */
    uint64_t backlog_ns; /* nothing of the backlog is read before */
    uint64_t offered_ns; /* when the newest interval of this run was offered; CLOCK_BOOTTIME */
    unsigned merge;      /* intervals of a window of the backlog */
    unsigned unreadable; /* attempts to read `window` that failed */
    long last_status;
    long error_status; /* see DestinationStatus */
    char last_error[256];
    uint64_t last_error_ns;
    LossNote loss;
    LogRate refused_rate, again_rate, warned_rate, save_rate;
} Sender;

LogField sender_field(const Sender *sender);
/* The state is written soon; while one is being written only the last of those that follow is. */
void sender_save(Sender *sender);
/* The same now, unless the worker cannot take it. */
int sender_hand_over(Sender *sender);
/* Writes how many requests may arrive twice. */
void sender_note(const Sender *sender);
/* Keeps a sentence for the status. */
void sender_keep_error(Sender *sender, const char *sentence);
bool sender_is_waiting(const Sender *sender);
/* The sender does what is due: soon, or at a time of CLOCK_MONOTONIC. */
void sender_wake(Sender *sender);
void sender_wake_at(Sender *sender, uint64_t monotonic_ns);
