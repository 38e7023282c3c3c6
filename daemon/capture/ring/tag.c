/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/ring/tag.h"

#include <string.h>

/*
 * A tag is a struct of fixed layout in host order: it never leaves the machine and ends with the
 * boot. Another layout gets another version; events with an unknown version are closed.
 */

enum { TAG_MAGIC = 0x47544450, TAG_VERSION = 1 };

typedef struct TagBytes {
    uint32_t magic;
    uint16_t version;
    uint16_t kind;
    uint16_t event;
    uint16_t zero;
    uint32_t cpu;
    uint64_t identity;
    char name[32];
    uint64_t group; /* 0 in tags of older versions */
} TagBytes;

static_assert(sizeof(TagBytes) == KEEPER_TAG_SIZE, "a tag fills its room");

void tag_encode(const Tag *tag, uint8_t ret[KEEPER_TAG_SIZE]) {
    TagBytes bytes = {.magic = TAG_MAGIC,
                      .version = TAG_VERSION,
                      .kind = (uint16_t)tag->kind,
                      .event = tag->event,
                      .cpu = tag->cpu,
                      .identity = tag->identity,
                      .group = tag->group};

    memcpy(bytes.name, tag->name, strnlen(tag->name, sizeof(tag->name)));
    memcpy(ret, &bytes, sizeof(bytes));
}

bool tag_decode(const uint8_t bytes[KEEPER_TAG_SIZE], Tag *ret) {
    TagBytes tag;

    memcpy(&tag, bytes, sizeof(tag));
    if (tag.magic != TAG_MAGIC || tag.version != TAG_VERSION || tag.kind < TAG_SIDE_BAND ||
        tag.kind > TAG_ARENA)
        return false;
    *ret = (Tag){.kind = (TagKind)tag.kind,
                 .event = tag.event,
                 .cpu = tag.cpu,
                 .identity = tag.identity,
                 .group = tag.group};
    memcpy(ret->name, tag.name, sizeof(ret->name) - 1);
    return true;
}
