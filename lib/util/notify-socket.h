/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Notifications to the service manager, as sd_notify() sends them, without ever waiting long. They
 * do nothing where no service manager listens. */

#include <stdint.h>

/* Sends lines such as "WATCHDOG=1". With wait_ms 0 a message that finds no room is dropped. */
void notify_socket_send(const char *text, unsigned wait_ms);
void notify_socket_ready(void);
void notify_socket_reloading(void);
void notify_socket_stopping(void);
/* How often the watchdog wants to be fed; 0: there is none. */
uint64_t notify_socket_watchdog_ns(void);
