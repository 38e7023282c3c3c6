/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Labels: their values as text, and groups of labels that agree in some of their keys. */

#include "export/export.h"
#include "util/buffer.h"
#include "util/hash-index.h"

typedef struct ExportGroups {
    uint32_t *of_label;  /* the group of each label of the profile */
    ProfileLabel *items; /* of each group the values of its keys; PROFILE_NONE for others */
    size_t n;
    HashIndex index;
} ExportGroups;

void export_groups_done(ExportGroups *groups);
int export_groups_fill(ExportGroups *groups, const Profile *profile, unsigned keys);

/* The keys that a reader without labels sees as outermost frames, the outermost first. */
enum { EXPORT_OUTER_KEYS = 8 };
extern const ProfileKey export_outer_keys[EXPORT_OUTER_KEYS];

/* The text of a text key, or the name of an event; false: it has no value, or another kind. */
bool export_label_bytes(const Profile *profile, const ProfileLabel *label, ProfileKey key,
                        Bytes *ret);
/* Appends what a person would call the value, unescaped: "nginx", "pid 12"; false: no value. */
bool export_label_text(const Profile *profile, const ProfileLabel *label, ProfileKey key,
                       Buffer *out);
