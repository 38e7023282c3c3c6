/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The folders of a profd that does not run as root, in the usual places of a user's programs. */

#include "program/profd-option.h"

typedef struct UserFolders {
    char *store, *runtime; /* NULL: an option gave it, or (runtime only) there is none */
    char **argv;           /* the original arguments and these, ended by NULL */
    char *words[2];
} UserFolders;

/* -ENOENT: the environment has no place for recordings. */
int user_folders_find(const Options *options, int argc, char **argv, UserFolders *ret);
void user_folders_done(UserFolders *folders);
