/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The events in the log of the gateway, and their message ids in the journal. */

#include "journal/journal.h"

extern const JournalProgram gateway_journal;
