/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Other commands show the sentences of `changed` too. */

#include "client/view/view.h"

/* Appends the sentences about a window, each ended by a NUL; none if nothing was recorded before.
 * An ExitStatus as of view_load(); what is missing was reported. */
int changed_sentences(Context *c, const ViewSettings *view, char **files, Buffer *out);
