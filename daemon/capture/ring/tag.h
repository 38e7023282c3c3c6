/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What a recorder notes about an event at the keeper, so that the next one knows it again. Read
 * back, it may be another version's.
 */

#include <stdbool.h>
#include <stdint.h>

#include "keeper/request/keeper-client.h"

/* What the ring holds that the event writes into. */
typedef enum TagKind { TAG_SIDE_BAND = 1, TAG_SAMPLES = 2, TAG_DATA = 3 } TagKind;

typedef struct Tag {
    TagKind kind;
    uint16_t event; /* in the session's order */
    uint32_t cpu;
    uint64_t identity; /* of the session: its name and what it is to count */
    uint64_t group;    /* the number of the control group; 0: none, or not known */
    char name[32];     /* of the session, cut where it is longer; for people */
} Tag;

void tag_encode(const Tag *tag, uint8_t ret[KEEPER_TAG_SIZE]);
/* False: nothing of ours. */
bool tag_decode(const uint8_t bytes[KEEPER_TAG_SIZE], Tag *ret);
