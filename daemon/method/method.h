/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "recorder/daemon.h"

/* io.profd.Control: what its methods are, and what they hold. */
extern const DaemonMethods daemon_methods;
