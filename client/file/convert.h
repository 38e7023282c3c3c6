/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "client/frame/command.h"

/* Does what `profctl convert IN -` does. Returns an ExitStatus. */
int convert_to_stream(Context *c, const char *in);
