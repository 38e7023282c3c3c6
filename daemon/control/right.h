/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Who is at the other end of a connection, as the kernel reports it, and what that user may do. */

#include <stdbool.h>
#include <sys/types.h>

/* Each right includes those before it. */
typedef enum Right {
    RIGHT_NOTHING, /* may not even connect */
    RIGHT_ANYONE,
    RIGHT_READ,  /* group profd-read */
    RIGHT_ADMIN, /* root, group profd-admin, and the user that the recorder runs as */
} Right;

typedef struct Peer {
    uid_t uid;
    gid_t gid;
    pid_t pid;
    Right right;
} Peer;

/* The groups that give rights; either may be missing on this host. */
typedef struct Groups {
    gid_t read, admin;
    bool has_read, has_admin;
} Groups;

/* Looks up the groups profd-read and profd-admin. */
Groups groups_find(void);
/* Reads the credentials of the moment when the other end connected. */
int peer_of(int fd, const Groups *groups, Peer *ret);
