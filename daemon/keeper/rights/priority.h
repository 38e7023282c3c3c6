/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Lets the keeper, its helpers and the recorder's main thread run when every CPU is busy. To be
 * called before rights are given up; without the right, or where somebody chose a nice value, it
 * does nothing. */
void priority_raise(void);
