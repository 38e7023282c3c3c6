/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finds names of functions where every view looks for them. */

#include "client/frame/context.h"
#include "profile/frame-names.h"
#include "profile/profile.h"

typedef struct ViewResolver ViewResolver;

typedef struct ViewResolverOptions {
    char **files; /* recordings, ended by NULL; archives among them have binaries; or NULL */
    const char *binaries;   /* folder of what the running profd has kept; NULL: not known */
    const Context *context; /* how to ask the running profd, where that folder cannot be read */
    const char *host;       /* of the running profd that is shown; NULL: that of the files */
    bool inlined;
    bool merges_unnamed; /* code of a file without symbols is called as its file */
    bool servers;        /* ask those of DEBUGINFOD_URLS */
    bool progress;       /* show on stderr that it takes long */
} ViewResolverOptions;

/* 0 or a negative errno: -ENOMEM, or why an archive cannot be unpacked. */
int view_resolver_new(const ViewResolverOptions *options, ViewResolver **ret);
ViewResolver *view_resolver_free(ViewResolver *resolver);
DEFINE_CLEANUP(ViewResolver *, view_resolver_free);

/* Adds names for the frames that have none yet. 0 or -ENOMEM. */
int view_resolver_name(ViewResolver *resolver, const Profile *profile, FrameNames *names);
