/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Kinds of event that the log tells of, and their numbers in the journal. */

/* MESSAGE_ID= of a PROFD_EVENT=; NULL: no event has that name. */
const char *event_id(const char *name);
