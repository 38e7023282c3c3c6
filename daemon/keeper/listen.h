/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The control socket, which any user may reach: what who may do is decided behind it. */

#define LISTEN_NAME "io.profd.Control"

/* Listens below the folder `runtime`, in the place of a socket that nobody listens on any more.
 * Only while there is one thread. What fails is logged. */
int listen_open(const char *runtime, int *ret_fd);
