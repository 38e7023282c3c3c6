/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Rights: which each process of profd keeps, and what none of them may do again. */

#include "keeper/rights/keeper-host.h"

/* Locked memory and descriptors, as much as we may give ourselves. */
void sandbox_raise_limits(void);
/* One line in the log on rights that recording all CPUs needs and that are not there. */
void sandbox_log_missing(void);
/* The keeper gives up all but its set, and all of its descendants with it. */
int sandbox_keeper(void);
/* A fork of it keeps what opening files takes. */
int sandbox_opener(const KeeperHost *host);
/* Another that opens files as the recorder's user, in no other group, when it puts its capabilities
 * aside. */
int sandbox_images(const KeeperHost *host);
/* Another keeps what changing the owner of a file takes. */
int sandbox_sealer(const KeeperHost *host);
/* Between fork and exec: the recorder's user, and no right at all. */
int sandbox_become_recorder(const KeeperHost *host);
/* Likewise for the program that reads ELF files, with its limits of memory; it has no group either.
 */
int sandbox_become_elf(const KeeperHost *host);
/* In the recorder, before it does anything: system calls that no recorder needs fail from now on.
 */
int sandbox_recorder(void);
