/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "profile/profile.h"

#include <stdlib.h>

/* Frees a profile with all of its tables; the builder makes them, see profile-builder.h. */

Profile *profile_free(Profile *profile) {
    if (!profile)
        return NULL;
    frame_table_free(profile->frames);
    stack_tree_free(profile->stacks);
    text_set_free(profile->texts);
    free(profile->events);
    free(profile->labels);
    free(profile->cells);
    free(profile);
    return NULL;
}
