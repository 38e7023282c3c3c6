/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The events in the log, and their message ids in the journal. */

#include "journal/journal.h"

extern const JournalProgram profd_journal;
