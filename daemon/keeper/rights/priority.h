/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Makes the keeper, its helpers and the recorder's main thread run even if every CPU is busy. Call
 * it before rights are dropped; it does nothing without the right, or if a nice value was chosen
 * already. */
void priority_raise(void);
