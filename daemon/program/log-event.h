/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The events in the log, and their message ids in the journal. */

/* MESSAGE_ID= for a PROFD_EVENT=; NULL: no event has that name. */
const char *log_event_id(const char *name);
