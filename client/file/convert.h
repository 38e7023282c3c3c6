/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "client/frame/command.h"

/* Does the work of `profctl convert IN -`. Returns an ExitStatus. */
int convert_to_stream(Context *c, const char *in);
