/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Tells systemd, if it started us, that the service is alive. */
void watchdog_feed(void);
