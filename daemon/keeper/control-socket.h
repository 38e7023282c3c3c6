/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The control socket. Any user may connect to it; the recorder decides what each may do. */

#define CONTROL_SOCKET_NAME "io.profd.Control"

/* Listens in the folder `runtime` and replaces a socket that nobody listens on any more. Must be
 * called while there is only one thread. Logs its failures. */
int control_socket_open(const char *runtime, int *ret_fd);
