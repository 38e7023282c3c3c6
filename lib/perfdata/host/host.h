/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Collects a description of this host from uname, /proc and /sys; each part is optional. */

#include "perfdata/feature/environment.h"

/* Fills in everything that the host knows (not what belongs to one recording: events, times, build
 * ids). The caller sets VERSION, which is that of the recorder, and BPF programs, which need
 * special rights. `root` is "" except in tests, which provide their own /proc and /sys below it.
 * argv, ended by NULL, may be NULL. What cannot be read is left out; only a lack of memory and the
 * like fails. */
int pd_host_collect(PdEnvironment *env, const char *root, char *const *argv);
