/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Tells systemd, where it started us, that the service does not hang. */
void watchdog_feed(void);
