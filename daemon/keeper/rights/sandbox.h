/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The rights of each process of profd, and how they are dropped for good. */

#include "keeper/rights/keeper-host.h"

/* Raises the limits of locked memory and descriptors as far as possible. */
void sandbox_raise_limits(void);
/* Whether this process may have rings of any size. */
bool sandbox_may_lock(void);
/* Logs one line about missing rights that recording all CPUs needs. */
void sandbox_log_missing(void);
/* The keeper, and so all its descendants, keeps only its set. */
int sandbox_keeper(void);
/* A fork of the keeper keeps only what opening files needs. */
int sandbox_opener(const KeeperHost *host);
/* The same; when it disables its capabilities, it opens files as the recorder's user, in no other
 * group. */
int sandbox_images(const KeeperHost *host);
/* Keeps only what changing the owner of a file needs. */
int sandbox_sealer(const KeeperHost *host);
/* Keeps nothing. */
int sandbox_closer(const KeeperHost *host);
/* Keeps only what reading the maps of other users' processes needs. */
int sandbox_maps(const KeeperHost *host);
/* Between fork and exec: becomes the recorder's user, without any rights. */
int sandbox_become_recorder(const KeeperHost *host);
/* The same for the program that reads ELF files, with limits of memory; it has no groups either. */
int sandbox_become_elf(const KeeperHost *host);
/* In the recorder, before anything else: system calls that no recorder needs fail from now on. */
int sandbox_recorder(void);
