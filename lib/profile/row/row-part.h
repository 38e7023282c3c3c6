/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Numbers for labels and places of a profile, equal for those that some keys do not tell apart. */

#include "profile/row/profile-row.h"
#include "util/hash-index.h"

typedef struct RowPart {
    uint32_t *numbers; /* of each label or place */
    uint32_t *frames;  /* of places: the frame of each; NULL: it is the frame */
} RowPart;

int row_part_labels(RowPart *part, const Profile *profile, const RowKeys *keys);
int row_part_places(RowPart *part, const Profile *profile, const FrameNames *names,
                    const RowKeys *keys);
void row_part_done(RowPart *part);

static inline uint32_t row_part_frame(const RowPart *part, uint32_t place) {
    return part->frames ? part->frames[place] : place;
}
