/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "profile/intake/builder-private.h"

/* What is remembered of lookups has numbers of the profile, and so ends with them. */

void builder_forget_lookups(ProfileBuilder *builder) {
    builder->last_label.is_set = false;
    builder_groups_forget(builder);
    builder_frames_forget(builder);
    builder_chains_forget(builder);
}
