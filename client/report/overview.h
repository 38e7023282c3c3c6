/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* profctl without a command. */

#include "client/frame/command.h"

/* Shows how profd is and what is hot, and which commands show more. An ExitStatus. */
int overview_show(Context *c);
