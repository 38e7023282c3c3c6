/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Where a profd that is not root's keeps what it has, as other programs of a user do. */

#include "program/profd-option.h"

typedef struct UserFolders {
    char *store, *runtime; /* NULL: it was named, or, of the second, there is none */
    char **argv;           /* what was there, and these; ended by NULL */
    char *words[2];
} UserFolders;

/* -ENOENT: the environment tells of no place for recordings. */
int user_folders_find(const Options *options, int argc, char **argv, UserFolders *ret);
void user_folders_done(UserFolders *folders);
