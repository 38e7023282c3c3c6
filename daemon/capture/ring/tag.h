/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What a recorder notes about an event at the keeper, so that the next recorder recognises it. The
 * tag may come from another version of profd.
 */

#include <stdbool.h>
#include <stdint.h>

#include "keeper/request/keeper-client.h"

/* What the ring of the event contains. */
typedef enum TagKind {
    TAG_SIDE_BAND = 1,
    TAG_SAMPLES = 2,
    TAG_DATA = 3,
    TAG_ARENA = 4 /* no event: memory for samples of the session */
} TagKind;

typedef struct Tag {
    TagKind kind;
    uint16_t event; /* its number in the session */
    uint32_t cpu;
    uint64_t identity; /* of the session: its name and what it counts */
    uint64_t group;    /* the number of the control group; 0: none, or unknown */
    char name[32];     /* of the session, possibly truncated; for people */
} Tag;

void tag_encode(const Tag *tag, uint8_t ret[KEEPER_TAG_SIZE]);
/* Returns false if the tag is not ours. */
bool tag_decode(const uint8_t bytes[KEEPER_TAG_SIZE], Tag *ret);
