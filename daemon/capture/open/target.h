/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "capture/ring/ring-set.h"

/* Everything that runs on a CPU or in a control group, or the threads of a session. */
extern const TargetOps cpu_target;
/* All processes of the keeper's user; see follow/follow-process.h. */
extern const TargetOps process_target;
