/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "recorder/daemon.h"

/* io.profd.Control: its methods, and the resources that their calls hold. */
extern const DaemonMethods daemon_methods;
