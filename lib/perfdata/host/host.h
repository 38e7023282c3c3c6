/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* This host as an environment: uname, /proc and /sys, each part optional. */

#include "perfdata/feature/environment.h"

/* Fills what the host tells (everything but what belongs to one recording: events, times, build
 * ids). VERSION is that of whoever records, and BPF programs need rights of their own: both are
 * for the caller to set. `root` is "" but in tests, where /proc and /sys below it are read. argv,
 * ended by NULL, may be NULL. What cannot be read is left out; only memory and the like fail. */
int pd_host_collect(PdEnvironment *env, const char *root, char *const *argv);
