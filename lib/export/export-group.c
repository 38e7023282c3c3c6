/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "export/export-group.h"

#include <errno.h>
#include <stdlib.h>

#include "util/text.h"

/* Labels of a profile are few compared with its cells, so what a format needs of them is worked out
 * once for each label and looked up for each cell. */

const ProfileKey export_outer_keys[EXPORT_OUTER_KEYS] = {
    PROFILE_EVENT, PROFILE_UNIT, PROFILE_CONTAINER, PROFILE_CGROUP,
    PROFILE_COMM,  PROFILE_PID,  PROFILE_TID,       PROFILE_CPU,
};

void export_groups_done(ExportGroups *groups) {
    hash_index_done(&groups->index);
    free(groups->items);
    free(groups->of_label);
}

static int export_groups_add(ExportGroups *groups, const ProfileLabel *wanted, uint32_t *ret) {
    Bytes bytes = {.data = (const uint8_t *)wanted->values, .size = sizeof(wanted->values)};
    uint64_t key = hash_bytes(0, bytes);
    size_t probe = 0;
    ProfileLabel *group;
    uint32_t number;

    while ((number = hash_index_next(&groups->index, key, &probe)) > 0)
        if (memcmp(&groups->items[number - 1], wanted, sizeof(*wanted)) == 0) {
            *ret = number - 1;
            return 0;
        }
    group = hash_index_append(&groups->index, key, &groups->items);
    if (!group)
        return -ENOMEM;
    *group = *wanted;
    *ret = (uint32_t)groups->n++;
    return 0;
}

int export_groups_fill(ExportGroups *groups, const Profile *profile, unsigned keys) {
    int r = 0;

    groups->of_label = calloc(profile->n_labels + 1, sizeof(*groups->of_label));
    if (!groups->of_label)
        return -ENOMEM;
    for (size_t i = 0; i < profile->n_labels && r == 0; i++) {
        ProfileLabel wanted = profile->labels[i];

        for (unsigned key = 0; key < PROFILE_KEYS; key++)
            if (!(keys & profile_key_bit(key)))
                wanted.values[key] = PROFILE_NONE;
        r = export_groups_add(groups, &wanted, &groups->of_label[i]);
    }
    return r;
}

bool export_label_bytes(const Profile *profile, const ProfileLabel *label, ProfileKey key,
                        Bytes *ret) {
    uint32_t text = label->values[key];

    if (text == PROFILE_NONE)
        return false;
    switch (key) {
    case PROFILE_EVENT:
        if (text >= profile->n_events)
            return false;
        text = profile->events[text].name;
        break;
    case PROFILE_COMM:
    case PROFILE_CGROUP:
    case PROFILE_UNIT:
    case PROFILE_CONTAINER:
        break;
    default:
        return false;
    }
    if (text >= text_set_count(profile->texts))
        return false;
    *ret = text_set_get(profile->texts, text);
    return ret->size > 0;
}

bool export_label_text(const Profile *profile, const ProfileLabel *label, ProfileKey key,
                       Buffer *out) {
    static const char *const names[PROFILE_KEYS] = {
        [PROFILE_PID] = "pid ", [PROFILE_TID] = "tid ", [PROFILE_CPU] = "cpu "};
    Bytes bytes;

    if (export_label_bytes(profile, label, key, &bytes)) {
        buffer_append(out, bytes.data, bytes.size);
        return true;
    }
    if (!names[key] || label->values[key] == PROFILE_NONE)
        return false;
    text_puts(out, names[key]);
    text_u64(out, label->values[key]);
    return true;
}
